/** The dialog that starts an operation on what a list shows: it counts first, and asks. */
import Alert from '@cloudscape-design/components/alert';
import Box from '@cloudscape-design/components/box';
import FormField from '@cloudscape-design/components/form-field';
import Input from '@cloudscape-design/components/input';
import SpaceBetween from '@cloudscape-design/components/space-between';
import StatusIndicator from '@cloudscape-design/components/status-indicator';
import { useState, type ReactNode } from 'react';

import { api, take, type Schemas } from '../api/client';
import { number } from '../form/typed';
import { useLive } from '../live';
import { chosenInWords, counted, WORDS, type Many, type Operation } from '../operations';
import { FormDialog } from './form-dialog';
import { Reason } from './parts';
import { useProgress } from './progress';

type Estimate = Schemas['Estimate'];
interface Asks {
  verb: string;
  /** What it does, and to which of them. */
  text: string;
  rate: string;
}

const ASKS: Record<Many['action'], Asks> = {
  cancel_jobs: { verb: 'Cancel', text: 'Jobs that start in the meantime are skipped. Running jobs are asked to stop only if you filter by the status running.', rate: '50' },
  replay_jobs: { verb: 'Replay', text: 'A new job does the work of each again; the ended jobs stay as they are. Without a filter by status: those that succeeded, failed or were killed.', rate: '10' },
  pause_tasks: { verb: 'Pause', text: 'Active tasks are paused: none of their runs starts until you resume them.', rate: '10' },
  resume_tasks: { verb: 'Resume', text: 'Paused tasks are resumed. Runs that were due during the pause do not start.', rate: '10' },
  delete_tasks: { verb: 'Delete', text: 'Their future runs are deleted too. Past runs stay in the history.', rate: '10' },
};

/** Mounted while it is open. */
export function ManyDialog({ many, owner, onClose }: { many: Many; owner: string | undefined; onClose: () => void }): ReactNode {
  const { verb, text, rate: usual } = ASKS[many.action];
  const { of } = WORDS[many.action];
  const [rate, setRate] = useState(usual);
  const [limit, setLimit] = useState('');
  const [reason, setReason] = useState('');
  const show = useProgress();
  const found = useLive('count', async () => (await request(many, { dry_run: true }, owner)) as Estimate, 0);
  const chosen = found.data === null ? [] : chosenInWords(found.data.filter);
  const count = found.data?.matched ?? 0;
  const start = async (): Promise<void> => {
    const asked = { rate: number(rate), ...(limit.trim() !== '' && { limit: number(limit) }), ...(reason.trim() !== '' && { reason: reason.trim() }) };
    const made = (await request(many, asked, owner)) as Operation;
    show(made.id, count, owner);
  };
  return (
    <FormDialog title={`${verb} all ${of}s that match?`} yes={`${verb} ${counted(count, of)}`} disabled={count === 0} fields={['rate', 'limit', 'reason']} values={{ rate, limit, reason }} act={start} onClose={onClose}>
      {(errors) => (
        <SpaceBetween size="m">
          {found.loading ? (
            <StatusIndicator type="loading">Counting</StatusIndicator>
          ) : found.error !== null ? (
            <Alert type="error" header={`Could not count the ${of}s`}>{found.error.message}</Alert>
          ) : (
            <Box>
              <Box variant="strong">{found.data?.complete === false ? 'At least ' : ''}{counted(count, of)}</Box> {count === 1 ? 'matches' : 'match'} at present
              {chosen.length === 0 ? `: all ${of}s` : <>: <Reason text={chosen.join('; ')} /></>}.
            </Box>
          )}
          <Box>{text}</Box>
          {many.action === 'pause_tasks' && (
            <FormField label={<>Reason <i>– optional</i></>} errorText={errors['reason']}>
              <Input value={reason} onChange={({ detail }) => setReason(detail.value)} />
            </FormField>
          )}
          <FormField label={of === 'job' ? 'Jobs per second' : 'Tasks per second'} errorText={errors['rate']}>
            <Input type="number" value={rate} onChange={({ detail }) => setRate(detail.value)} />
          </FormField>
          <FormField label={<>Limit <i>– optional</i></>} errorText={errors['limit']}>
            <Input type="number" value={limit} onChange={({ detail }) => setLimit(detail.value)} />
          </FormField>
        </SpaceBetween>
      )}
    </FormDialog>
  );
}

/** Start it, or count with `dry_run`. */
function request(many: Many, asked: object, owner: string | undefined): Promise<Operation | Estimate> {
  const params = { query: { owner } };
  switch (many.action) {
    case 'cancel_jobs':
      return take<Operation | Estimate>(api.POST('/api/v1/jobs/cancel', { params, body: { ...many.body, ...asked } }));
    case 'replay_jobs':
      return take<Operation | Estimate>(api.POST('/api/v1/jobs/replay', { params, body: { ...many.body, ...asked } }));
    case 'pause_tasks':
      return take<Operation | Estimate>(api.POST('/api/v1/tasks/pause', { params, body: { ...many.body, ...asked } }));
    case 'resume_tasks':
      return take<Operation | Estimate>(api.POST('/api/v1/tasks/resume', { params, body: { ...many.body, ...asked } }));
    case 'delete_tasks':
      return take<Operation | Estimate>(api.POST('/api/v1/tasks/delete', { params, body: { ...many.body, ...asked } }));
  }
}
