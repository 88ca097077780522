/** Numbers as fields of a form. */
import FormField from '@cloudscape-design/components/form-field';
import Input from '@cloudscape-design/components/input';
import type { ReactNode } from 'react';

import { secondsInWords } from '../words';

export function Number({ label, value, error, onChange }: { label: ReactNode; value: string; error: string | undefined; onChange: (value: string) => void }): ReactNode {
  return (
    <FormField label={label} errorText={error}>
      <Input type="number" value={value} onChange={({ detail }) => onChange(detail.value)} />
    </FormField>
  );
}

/** A number of seconds, with what it is in minutes, hours or days below. */
export function Seconds({ label, description, value, error, note, onChange }: { label: ReactNode; description?: string; value: string; error: string | undefined; note?: string; onChange: (value: string) => void }): ReactNode {
  const words = secondsInWords(value);
  return (
    <FormField label={label} description={description} constraintText={[words, note].filter(Boolean).join('. ') || undefined} errorText={error}>
      <Input type="number" value={value} onChange={({ detail }) => onChange(detail.value)} />
    </FormField>
  );
}
