import { jsx as _jsx, jsxs as _jsxs } from "react/jsx-runtime";
/** A day, week or month chosen beside its cron expression, which is the only thing that is kept. */
import Checkbox from '@cloudscape-design/components/checkbox';
import FormField from '@cloudscape-design/components/form-field';
import SpaceBetween from '@cloudscape-design/components/space-between';
import TimeInput from '@cloudscape-design/components/time-input';
import { useState } from 'react';
import { Choice } from './fields';
import { changedTo, cronOf, isTime, LAST_DAY, repeatOf, WEEKDAYS } from './repeats';
const CRON = 'cron';
const OFTEN = [
    { value: '* * * * *', label: 'Every minute' },
    { value: '*/5 * * * *', label: 'Every 5 minutes' },
    { value: '0 * * * *', label: 'Every hour' },
];
const REPEATS = [
    ...OFTEN,
    { value: 'day', label: 'Every day' },
    { value: 'week', label: 'Every week', description: 'On the days that you choose' },
    { value: 'month', label: 'Every month', description: 'On one day, or on the last' },
];
const OTHER = { value: CRON, label: 'Other' };
const DAYS = [...Array.from({ length: 31 }, (_, at) => ({ value: String(at + 1), label: String(at + 1) })), { value: LAST_DAY, label: 'Last day of the month' }];
const FROM_MONDAY = [1, 2, 3, 4, 5, 6, 0];
export function RepeatPicker({ cron, onChange }) {
    const repeat = repeatOf(cron);
    const chosen = OFTEN.some(({ value }) => value === cron.trim()) ? cron.trim() : (repeat?.every ?? CRON);
    const choose = (value) => {
        if (value === CRON)
            return;
        onChange(OFTEN.some((each) => each.value === value) ? value : cronOf(changedTo(value, repeat)));
    };
    return (_jsxs(SpaceBetween, { size: "s", children: [_jsx(FormField, { label: "Repeats", children: _jsx(Choice, { value: chosen, options: chosen === CRON ? [...REPEATS, OTHER] : REPEATS, onChange: choose }) }), repeat?.every === 'week' && (_jsx(FormField, { label: "On", children: _jsx(SpaceBetween, { direction: "horizontal", size: "s", children: FROM_MONDAY.map((day) => (_jsx(Checkbox, { checked: repeat.days.includes(day), disabled: repeat.days.length === 1 && repeat.days.includes(day), onChange: ({ detail }) => onChange(cronOf({ ...repeat, days: FROM_MONDAY.filter((each) => (each === day ? detail.checked : repeat.days.includes(each))).sort() })), children: WEEKDAYS[day] }, day))) }) })), repeat?.every === 'month' && (_jsx(FormField, { label: "On day", children: _jsx(Choice, { value: repeat.day, options: DAYS, onChange: (day) => onChange(cronOf({ ...repeat, day })) }) })), repeat !== null && _jsx(TimeOfDay, { time: repeat.time, onChange: (time) => onChange(cronOf({ ...repeat, time })) })] }));
}
/** Keeps what is being typed until it is a time. */
function TimeOfDay({ time, onChange }) {
    const [typed, setTyped] = useState(null);
    return (_jsx(FormField, { label: "At", children: _jsx(TimeInput, { value: typed ?? time, format: "hh:mm", placeholder: "hh:mm", ariaLabel: "Time of day", onChange: ({ detail }) => {
                setTyped(detail.value);
                if (isTime(detail.value))
                    onChange(detail.value);
            }, onBlur: () => setTyped(null) }) }));
}
