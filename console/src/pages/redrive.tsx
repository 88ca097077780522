/** Run many dead letters again, at a rate. */
import Box from '@cloudscape-design/components/box';
import Button from '@cloudscape-design/components/button';
import FormField from '@cloudscape-design/components/form-field';
import Input from '@cloudscape-design/components/input';
import Modal from '@cloudscape-design/components/modal';
import SpaceBetween from '@cloudscape-design/components/space-between';
import { useState, type ReactNode } from 'react';

import { api, apiError, take, type Schemas } from '../api/client';
import { errorsOf, type Refused } from '../form/mended';
import { useNotices } from '../parts/notices';
import { useProgress } from '../parts/progress';

type Filter = Pick<Schemas['RedriveRequest'], 'fingerprint' | 'task' | 'type'>;

/** The dialog that starts one. Its id goes into the address: a reload or a shared address shows its progress. */
export function RedriveDialog({ filter, expected, owner, onClose }: { filter: Filter | null; expected: number; owner: string | undefined; onClose: () => void }): ReactNode {
  const [rate, setRate] = useState('10');
  const [limit, setLimit] = useState('');
  const [refused, setRefused] = useState<Refused | null>(null);
  const [busy, setBusy] = useState(false);
  const show = useProgress();
  const { failed } = useNotices();
  const start = async (): Promise<void> => {
    setBusy(true);
    setRefused(null);
    try {
      const chosen = Object.values(filter ?? {}).some((value) => value !== undefined && value !== null);
      const body = { ...filter, all: !chosen, rate: Number(rate), ...(limit.trim() === '' ? {} : { limit: Number(limit) }) };
      const made = await take(api.POST('/api/v1/dead-letters/redrive', { params: { query: { owner } }, body }));
      show(made.id, expected, owner);
      onClose();
    } catch (error) {
      const told = apiError(error);
      if (told.details.length > 0) setRefused({ error: told, sent: { rate, limit } });
      else failed('The jobs do not run again', told);
    } finally {
      setBusy(false);
    }
  };
  const errors = errorsOf(refused, () => ({ rate, limit }));
  return (
    <Modal
      visible={filter !== null}
      onDismiss={onClose}
      header="Run failed jobs again"
      closeAriaLabel="Close"
      footer={
        <Box float="right">
          <SpaceBetween direction="horizontal" size="xs">
            <Button variant="link" onClick={onClose}>
              Cancel
            </Button>
            <Button variant="primary" loading={busy} onClick={() => void start()}>
              Run again
            </Button>
          </SpaceBetween>
        </Box>
      }
    >
      <SpaceBetween size="m">
        <Box>
          {expected} {expected === 1 ? 'job' : 'jobs'} at present. Each starts again with all its attempts. Jobs that fail from now on are not included.
        </Box>
        <FormField label="Jobs per second" errorText={errors['rate']}>
          <Input type="number" value={rate} onChange={({ detail }) => setRate(detail.value)} />
        </FormField>
        <FormField label={<>Limit <i>– optional</i></>} description="The earliest jobs first" errorText={errors['limit']}>
          <Input type="number" value={limit} onChange={({ detail }) => setLimit(detail.value)} />
        </FormField>
      </SpaceBetween>
    </Modal>
  );
}
