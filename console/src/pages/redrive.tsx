/** Run many dead letters again, at a rate; how far it is, and a way to stop it. */
import Alert from '@cloudscape-design/components/alert';
import Box from '@cloudscape-design/components/box';
import Button from '@cloudscape-design/components/button';
import FormField from '@cloudscape-design/components/form-field';
import Input from '@cloudscape-design/components/input';
import Modal from '@cloudscape-design/components/modal';
import ProgressBar from '@cloudscape-design/components/progress-bar';
import SpaceBetween from '@cloudscape-design/components/space-between';
import { useState, type ReactNode } from 'react';
import { useSearchParams } from 'react-router';

import { api, apiError, take, type Schemas } from '../api/client';
import { fieldErrors, type FieldErrors } from '../form/draft';
import { useLive } from '../live';
import { useNotices } from '../parts/notices';
import { useWhose } from '../parts/whose';

type Filter = Pick<Schemas['RedriveRequest'], 'fingerprint' | 'task' | 'type'>;

/** The dialog that starts one. Its id goes into the address: whoever reloads or shares that sees how far it is. */
export function RedriveDialog({ filter, expected, user, onClose }: { filter: Filter | null; expected: number; user: string | undefined; onClose: () => void }): ReactNode {
  const [rate, setRate] = useState('10');
  const [limit, setLimit] = useState('');
  const [errors, setErrors] = useState<FieldErrors>({});
  const [busy, setBusy] = useState(false);
  const [, setQuery] = useSearchParams();
  const { failed } = useNotices();
  const start = async (): Promise<void> => {
    setBusy(true);
    setErrors({});
    try {
      const chosen = Object.values(filter ?? {}).some((value) => value !== undefined && value !== null);
      const body = { ...filter, all: !chosen, rate: Number(rate), ...(limit.trim() === '' ? {} : { limit: Number(limit) }) };
      const made = await take(api.POST('/api/v1/dead-letters/redrive', { params: { query: { user } }, body }));
      setQuery(
        (before) => {
          const next = new URLSearchParams(before);
          next.set('redrive', made.id);
          next.set('of', String(expected));
          if (user === undefined) next.delete('whose');
          else next.set('whose', user);
          return next;
        },
        { replace: true },
      );
      onClose();
    } catch (error) {
      const told = apiError(error);
      if (told.details.length > 0) setErrors(fieldErrors(told));
      else failed('The redrive did not start', told);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Modal
      visible={filter !== null}
      onDismiss={onClose}
      header="Run them again"
      closeAriaLabel="Close"
      footer={
        <Box float="right">
          <SpaceBetween direction="horizontal" size="xs">
            <Button variant="link" onClick={onClose}>
              Cancel
            </Button>
            <Button variant="primary" loading={busy} onClick={() => void start()}>
              Redrive
            </Button>
          </SpaceBetween>
        </Box>
      }
    >
      <SpaceBetween size="m">
        <Box>
          {expected} {expected === 1 ? 'job' : 'jobs'} at present, each from the start with all its attempts. What fails from now on is left alone.
        </Box>
        <FormField label="Jobs per second" errorText={errors['rate']}>
          <Input type="number" value={rate} onChange={({ detail }) => setRate(detail.value)} />
        </FormField>
        <FormField label={<>Jobs at most <i>– optional</i></>} description="The latest first" errorText={errors['limit']}>
          <Input type="number" value={limit} onChange={({ detail }) => setLimit(detail.value)} />
        </FormField>
      </SpaceBetween>
    </Modal>
  );
}

/** The one that the address names. */
export function RedriveProgress({ onEnd }: { onEnd: () => void }): ReactNode {
  const [query, setQuery] = useSearchParams();
  const id = query.get('redrive');
  const expected = Number(query.get('of') ?? '0');
  const whose = useWhose();
  const user = query.get('whose') ?? whose.user; // of everybody's dead letters, one user's are redriven
  const { failed } = useNotices();
  const live = useLive(
    `redrive ${id ?? ''} ${user ?? ''}`,
    async () => {
      if (id === null) return null;
      const found = await take(api.GET('/api/v1/dead-letters/redrives/{redrive_id}', { params: { path: { redrive_id: id } } }));
      if (found.state !== 'running') onEnd();
      return found;
    },
    (found) => (id !== null && (found === null || found.state === 'running') ? 1_000 : 0),
  );
  const found = live.data;
  if (id === null || found === null) return null;
  const close = (): void =>
    setQuery((before) => {
      const next = new URLSearchParams(before);
      next.delete('redrive');
      next.delete('of');
      next.delete('whose');
      return next;
    }, { replace: true });
  const abort = async (): Promise<void> => {
    try {
      await take(api.POST('/api/v1/dead-letters/redrives/{redrive_id}/abort', { params: { path: { redrive_id: id }, query: { user } } }));
      live.reload();
    } catch (error) {
      failed('Not aborted', error);
    }
  };
  const running = found.state === 'running';
  const total = Math.max(found.limit ?? expected, found.found, 1);
  return (
    <Alert
      type={running ? 'info' : found.state === 'aborted' ? 'warning' : 'success'}
      header={running ? 'Redrive' : found.state === 'aborted' ? 'Redrive aborted' : 'Redrive done'}
      dismissible={!running}
      onDismiss={close}
      action={running && whose.mayChange ? <Button onClick={() => void abort()}>Abort</Button> : undefined}
    >
      <ProgressBar
        value={running ? (100 * found.found) / total : 100}
        description={`${found.redriven} run again at ${found.rate}/s, ${found.skipped} skipped`}
        status={running ? 'in-progress' : found.state === 'aborted' ? 'error' : 'success'}
        resultText={found.state === 'aborted' ? 'Stopped before the end' : 'All of them'}
        ariaLabel="Redrive"
      />
    </Alert>
  );
}
