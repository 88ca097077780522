/** How far an operation is, and a way to stop it. The address names it: a reload or a shared address shows it again. */
import Alert from '@cloudscape-design/components/alert';
import Box from '@cloudscape-design/components/box';
import Button from '@cloudscape-design/components/button';
import ProgressBar from '@cloudscape-design/components/progress-bar';
import type { ReactNode } from 'react';
import { useSearchParams } from 'react-router';

import { api, take } from '../api/client';
import { useLive } from '../live';
import { countsInWords, headerOf, WORDS } from '../operations';
import { useNotices } from './notices';
import { useWhose } from './whose';

/** Show an operation of `owner`, of which about `expected` jobs or tasks match. */
export function useProgress(): (id: string, expected: number, owner: string | undefined) => void {
  const [, setQuery] = useSearchParams();
  return (id, expected, owner) =>
    setQuery(
      (before) => {
        const next = without(before);
        next.set('operation', id);
        next.set('of', String(expected));
        if (owner !== undefined) next.set('whose', owner);
        return next;
      },
      { replace: true },
    );
}

function without(query: URLSearchParams): URLSearchParams {
  const next = new URLSearchParams(query);
  for (const name of ['operation', 'of', 'whose']) next.delete(name);
  return next;
}

/** Abort it; the notice of an error is shown. */
export function useAbort(after: () => void): (id: string, owner: string | undefined) => Promise<void> {
  const { failed } = useNotices();
  return async (id, owner) => {
    try {
      await take(api.POST('/api/v1/operations/{operation_id}/abort', { params: { path: { operation_id: id }, query: { owner } } }));
    } catch (error) {
      failed('Not aborted', error);
    } finally {
      after();
    }
  };
}

/** The one that the address names. */
export function Progress({ onEnd }: { onEnd: () => void }): ReactNode {
  const [query, setQuery] = useSearchParams();
  const id = query.get('operation');
  const expected = Number(query.get('of') ?? '0');
  const whose = useWhose();
  const owner = query.get('whose') ?? whose.owner; // of everybody's dead letters, one user's are redriven
  const live = useLive(
    `operation ${id ?? ''} ${owner ?? ''}`,
    async () => {
      if (id === null) return null;
      const found = await take(api.GET('/api/v1/operations/{operation_id}', { params: { path: { operation_id: id }, query: { owner } } }));
      if (found.status !== 'running') onEnd();
      return found;
    },
    (found) => (id !== null && (found === null || found.status === 'running') ? 1_000 : 0),
  );
  const abort = useAbort(live.reload);
  const found = live.data;
  if (id === null || found === null) return null;
  const running = found.status === 'running';
  const total = Math.max(found.limit ?? expected, found.matched, 1);
  const { name } = WORDS[found.action];
  return (
    <Box margin={{ bottom: 'm' }}>
      <Alert
        type={running ? 'info' : found.status === 'aborted' || found.failed + found.conflicts > 0 ? 'warning' : 'success'}
        header={headerOf(found)}
        dismissible={!running}
        onDismiss={() => setQuery(without, { replace: true })}
        action={running && whose.mayChangeOf(owner) ? <Button onClick={() => void abort(id, owner)}>Abort</Button> : undefined}
      >
        <ProgressBar
          value={running ? (100 * found.matched) / total : 100}
          description={countsInWords(found)}
          status={running ? 'in-progress' : found.status === 'aborted' ? 'error' : 'success'}
          resultText={found.status === 'aborted' ? 'Aborted' : 'Complete'}
          ariaLabel={name}
        />
      </Alert>
    </Box>
  );
}
