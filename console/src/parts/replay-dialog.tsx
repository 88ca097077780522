/** The dialog that replays an ended job: a new job does its work again, as it was or with another payload. */
import Box from '@cloudscape-design/components/box';
import Checkbox from '@cloudscape-design/components/checkbox';
import FormField from '@cloudscape-design/components/form-field';
import Input from '@cloudscape-design/components/input';
import SpaceBetween from '@cloudscape-design/components/space-between';
import { useRef, useState, type ReactNode } from 'react';
import { useNavigate } from 'react-router';

import { api, take, type Job } from '../api/client';
import { optional } from '../form/fields';
import { Json } from '../form/payload';
import { toReplay } from '../replay';
import { FormDialog } from './form-dialog';
import { pageOfJob } from './links';
import { useNotices } from './notices';

/** Mounted while it is open. */
export function ReplayDialog({ job, owner, onClose }: { job: Job; owner: string | undefined; onClose: () => void }): ReactNode {
  const navigate = useNavigate();
  const { done } = useNotices();
  const [payload, setPayload] = useState<unknown>(job.payload);
  const [broken, setBroken] = useState(false);
  const [delay, setDelay] = useState('');
  const [keepOrdering, setKeepOrdering] = useState(false);
  const [key] = useState(() => crypto.randomUUID());
  const tries = useRef(0);
  const act = async (): Promise<void> => {
    const header = { 'Idempotency-Key': `${key}-${tries.current}` };
    try {
      const body = toReplay(job, { payload, delay, keepOrdering });
      const made = await take(api.POST('/api/v1/jobs/{job_id}/replay', { params: { path: { job_id: job.id }, query: { owner }, header }, body }));
      done('A new job does the work again.');
      void navigate(pageOfJob(made.id, owner));
    } catch (error) {
      tries.current += 1; // what is sent next may be another request
      throw error;
    }
  };
  return (
    <FormDialog title="Replay this job?" yes="Replay" fields={['payload', 'delay', 'keep_ordering']} values={{ payload, delay, keep_ordering: keepOrdering }} disabled={broken} act={act} onClose={onClose}>
      {(errors) => (
        <SpaceBetween size="m">
          <Box>A new job does the work of this one. This job stays as it is. The new job has no key, and does not expire.</Box>
          <Json label="Payload" rows={8} value={job.payload} error={errors['payload']} onChange={setPayload} onBroken={setBroken} />
          <FormField label={optional('Delay')} constraintText="Such as 30m or 2h. Without it, the job starts now." errorText={errors['delay']}>
            <Input value={delay} onChange={({ detail }) => setDelay(detail.value)} />
          </FormField>
          {job.ordering_key !== null && (
            <Checkbox checked={keepOrdering} onChange={({ detail }) => setKeepOrdering(detail.checked)}>
              Wait for the earlier jobs of its ordering key
            </Checkbox>
          )}
        </SpaceBetween>
      )}
    </FormDialog>
  );
}
