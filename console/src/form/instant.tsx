/** A date and a time of day in the viewer's zone, as one instant. */
import DatePicker from '@cloudscape-design/components/date-picker';
import FormField from '@cloudscape-design/components/form-field';
import SpaceBetween from '@cloudscape-design/components/space-between';
import TimeInput from '@cloudscape-design/components/time-input';
import { useState, type ReactNode } from 'react';

import { VIEWERS_ZONE } from '../parts/time';
import { instantOf, partsOf } from './instants';

interface Props {
  label: ReactNode;
  description?: string;
  value: string;
  error: string | undefined;
  onChange: (value: string) => void;
}

export function InstantField({ label, description, value, error, onChange }: Props): ReactNode {
  const [parts, setParts] = useState(() => partsOf(value));
  const set = (date: string, time: string): void => {
    setParts({ date, time });
    onChange(instantOf(date, time));
  };
  return (
    <FormField label={label} description={description} constraintText={`In your time zone, ${VIEWERS_ZONE}`} errorText={error}>
      <SpaceBetween direction="horizontal" size="xs">
        <DatePicker
          value={parts.date}
          placeholder="YYYY/MM/DD"
          openCalendarAriaLabel={(chosen) => (chosen ? `Choose a date, ${chosen} is chosen` : 'Choose a date')}
          onChange={({ detail }) => set(detail.value, parts.time)}
        />
        <TimeInput value={parts.time} format="hh:mm:ss" placeholder="hh:mm:ss" ariaLabel="Time" onChange={({ detail }) => set(parts.date, detail.value)} />
      </SpaceBetween>
    </FormField>
  );
}
