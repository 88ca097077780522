/** A dialog that asks for the reason of what it does. */
import FormField from '@cloudscape-design/components/form-field';
import Input from '@cloudscape-design/components/input';
import SpaceBetween from '@cloudscape-design/components/space-between';
import { useState, type ReactNode } from 'react';

import { optional } from '../form/fields';
import { FormDialog } from './form-dialog';

export interface Reasoned {
  title: string;
  text: string;
  yes: string;
  /** Where the reason is shown. */
  shown: string;
  act: (reason: string | undefined) => Promise<void>;
}

/** Mounted while it is open. */
export function ReasonDialog({ title, text, yes, shown, act, onClose }: Reasoned & { onClose: () => void }): ReactNode {
  const [reason, setReason] = useState('');
  return (
    <FormDialog title={title} yes={yes} fields={['reason']} values={{ reason }} act={() => act(reason.trim() || undefined)} onClose={onClose}>
      {(errors) => (
        <SpaceBetween size="m">
          <div>{text}</div>
          <FormField label={optional('Reason')} constraintText={shown} errorText={errors['reason']}>
            <Input value={reason} onChange={({ detail }) => setReason(detail.value)} autoFocus />
          </FormField>
        </SpaceBetween>
      )}
    </FormDialog>
  );
}

/** What the dialog says before tasks are paused. */
export const PAUSE_TASKS = { text: 'None of the runs starts until you resume. Runs that fall due in the meantime do not start later.', yes: 'Pause', shown: 'Shown with the task, and with each run that does not start' };
