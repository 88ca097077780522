/** A day, week or month chosen beside its cron expression, which is the only thing that is kept. */
import Checkbox from '@cloudscape-design/components/checkbox';
import FormField from '@cloudscape-design/components/form-field';
import SpaceBetween from '@cloudscape-design/components/space-between';
import TimeInput from '@cloudscape-design/components/time-input';
import { useState, type ReactNode } from 'react';

import { Choice } from './fields';
import { changedTo, cronOf, everyWeekday, isEveryWeekday, isTime, LAST_DAY, repeatOf, WEEKDAYS, type Repeat } from './repeats';

const CRON = 'cron';
const WEEKDAY = 'weekday';
const OFTEN = [
  { value: '* * * * *', label: 'Every minute' },
  { value: '*/5 * * * *', label: 'Every 5 minutes' },
  { value: '0 * * * *', label: 'Every hour' },
];
const REPEATS = [
  ...OFTEN,
  { value: 'day', label: 'Every day' },
  { value: WEEKDAY, label: 'Every weekday', description: 'Monday to Friday' },
  { value: 'week', label: 'Every week', description: 'On the days that you choose' },
  { value: 'month', label: 'Every month', description: 'On one day, or on the last' },
];
const OTHER = { value: CRON, label: 'Other' };
const DAYS = [...Array.from({ length: 31 }, (_, at) => ({ value: String(at + 1), label: String(at + 1) })), { value: LAST_DAY, label: 'Last day of the month' }];
const FROM_MONDAY = [1, 2, 3, 4, 5, 6, 0];

export function RepeatPicker({ cron, onChange }: { cron: string; onChange: (cron: string) => void }): ReactNode {
  const repeat = repeatOf(cron);
  const chosen = OFTEN.some(({ value }) => value === cron.trim()) ? cron.trim() : (repeat === null ? CRON : isEveryWeekday(repeat) ? WEEKDAY : repeat.every);
  const choose = (value: string): void => {
    if (value === CRON) return;
    if (OFTEN.some((each) => each.value === value)) onChange(value);
    else onChange(cronOf(value === WEEKDAY ? everyWeekday(repeat) : changedTo(value as Repeat['every'], repeat)));
  };
  return (
    <SpaceBetween size="s">
      <FormField label="Repeats">
        <Choice value={chosen} options={chosen === CRON ? [...REPEATS, OTHER] : REPEATS} onChange={choose} />
      </FormField>
      {repeat?.every === 'week' && (
        <FormField label="On">
          <SpaceBetween direction="horizontal" size="s">
            {FROM_MONDAY.map((day) => (
              <Checkbox
                key={day}
                checked={repeat.days.includes(day)}
                disabled={repeat.days.length === 1 && repeat.days.includes(day)}
                onChange={({ detail }) => onChange(cronOf({ ...repeat, days: FROM_MONDAY.filter((each) => (each === day ? detail.checked : repeat.days.includes(each))).sort() }))}
              >
                {WEEKDAYS[day]}
              </Checkbox>
            ))}
          </SpaceBetween>
        </FormField>
      )}
      {repeat?.every === 'month' && (
        <FormField label="On day">
          <Choice value={repeat.day} options={DAYS} onChange={(day) => onChange(cronOf({ ...repeat, day }))} />
        </FormField>
      )}
      {repeat !== null && <TimeOfDay time={repeat.time} onChange={(time) => onChange(cronOf({ ...repeat, time }))} />}
    </SpaceBetween>
  );
}

/** Keeps what is being typed until it is a time. */
function TimeOfDay({ time, onChange }: { time: string; onChange: (time: string) => void }): ReactNode {
  const [typed, setTyped] = useState<string | null>(null);
  return (
    <FormField label="At">
      <TimeInput
        value={typed ?? time}
        format="hh:mm"
        placeholder="hh:mm"
        ariaLabel="Time of day"
        onChange={({ detail }) => {
          setTyped(detail.value);
          if (isTime(detail.value)) onChange(detail.value);
        }}
        onBlur={() => setTyped(null)}
      />
    </FormField>
  );
}
