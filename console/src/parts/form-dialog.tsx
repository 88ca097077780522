/** A dialog with a form: what the API finds wrong stands at its fields, and it stays open until it was done. */
import Alert from '@cloudscape-design/components/alert';
import Box from '@cloudscape-design/components/box';
import Button from '@cloudscape-design/components/button';
import Modal from '@cloudscape-design/components/modal';
import SpaceBetween from '@cloudscape-design/components/space-between';
import { useId, useState, type ReactNode } from 'react';

import { apiError } from '../api/client';
import { leftOver, ofLists, type FieldErrors } from '../form/draft';
import { errorsOf, type Refused } from '../form/mended';
import { ErrorText } from './parts';

interface Props {
  title: string;
  /** What the button says that does it. */
  yes: string;
  /** The fields at which errors are shown; others are told above. */
  fields: readonly string[];
  /** What is typed, by the API's names: the error of a field goes when its value changes. */
  values: object;
  /** Whether there is nothing to do. */
  disabled?: boolean;
  /** False: the dialog stays open, for a next step. */
  act: () => Promise<void | boolean>;
  onClose: () => void;
  children: (errors: FieldErrors) => ReactNode;
}

/** Mounted while it is open, so that it begins empty each time. */
export function FormDialog({ title, yes, fields, values, disabled = false, act, onClose, children }: Props): ReactNode {
  const id = useId();
  const [refused, setRefused] = useState<Refused | null>(null);
  const [busy, setBusy] = useState(false);
  const submit = async (): Promise<void> => {
    setBusy(true);
    setRefused(null);
    try {
      if ((await act()) === false) setBusy(false);
      else onClose();
    } catch (error) {
      setRefused({ error: apiError(error), sent: values });
      setBusy(false);
    }
  };
  const errors = ofLists(errorsOf(refused, () => values), fields, refused?.sent ?? values);
  const elsewhere = leftOver(errors, fields);
  const said = refused !== null && refused.error.details.length === 0 ? <ErrorText error={refused.error} /> : elsewhere.length > 0 ? elsewhere.join('; ') : null;
  return (
    <Modal
      visible
      onDismiss={onClose}
      header={title}
      closeAriaLabel="Close"
      footer={
        <Box float="right">
          <SpaceBetween direction="horizontal" size="xs">
            <Button variant="link" formAction="none" onClick={onClose}>
              Cancel
            </Button>
            <Button variant="primary" form={id} loading={busy} disabled={disabled}>
              {yes}
            </Button>
          </SpaceBetween>
        </Box>
      }
    >
      <form
        id={id}
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        <SpaceBetween size="m">
          {said !== null && <Alert type="error">{said}</Alert>}
          {children(errors)}
        </SpaceBetween>
      </form>
    </Modal>
  );
}
