import Alert from '@cloudscape-design/components/alert';
import Box from '@cloudscape-design/components/box';
import Button from '@cloudscape-design/components/button';
import Header from '@cloudscape-design/components/header';
import SpaceBetween from '@cloudscape-design/components/space-between';
import Table from '@cloudscape-design/components/table';
import { useState, type ReactNode } from 'react';

import { api, take, type Schemas } from '../api/client';
import { useLive } from '../live';
import { pageOfDocs } from '../docs';
import { DocsLink } from '../parts/docs-link';
import { useCalls } from '../parts/job-calls';
import { ofOwner, pageOfJob } from '../parts/links';
import { Empty, Failed, NotForRole, Stale, To, useTitle, Words } from '../parts/parts';
import { Progress } from '../parts/progress';
import { useTaskNames } from '../parts/task-names';
import { Ago } from '../parts/time';
import { ofEach, useOwnersToMerge, useWhose, WhoseChoice, type Owned } from '../parts/whose';
import { errorInWords, termOf } from '../words';
import { RedriveDialog } from './redrive';

/** The API may say what the latest job of a group calls. */
type Group = Owned<Schemas['DeadLetterGroup']> & { calls?: string | null };

const OFTEN = 5_000;
const SELDOM = 15_000; // of several owners: one call for each

interface Found {
  items: Group[];
  scanned: number;
  complete: boolean;
}

const of = (owner: string | undefined): Promise<Found> => take(api.GET('/api/v1/dead-letters', { params: { query: { owner } } }));

/** Those of several owners, the most frequent first. */
async function all(owners: Parameters<typeof ofEach>[0]): Promise<Found> {
  let [scanned, complete] = [0, true];
  const { found, complete: everyone } = await ofEach(owners, async (owner) => {
    const one = await of(owner);
    scanned += one.scanned;
    complete &&= one.complete;
    return one.items;
  });
  return { items: found.sort((one, other) => other.count - one.count), scanned, complete: complete && everyone };
}

/** The first task by its name, and how many others there are. */
function namesOf(ids: readonly string[], nameOf: (id: string) => string | undefined): string {
  const first = ids[0];
  if (first === undefined) return '–';
  return `${nameOf(first) ?? first}${ids.length > 1 ? ` and ${ids.length - 1} more` : ''}`;
}

/** A way to the refused messages, in a stage that has intake queues. */
function IntakeLink({ owner }: { owner: string | undefined }): ReactNode {
  const live = useLive(`intake of ${owner ?? ''}`, () => take(api.GET('/api/v1/intake/dead-letters', { params: { query: { owner, limit: 1 } } })), 0);
  if (live.data === null) return null; // 404: the stage has none
  return <To href={`/dead-letters/intake${ofOwner(owner)}`}>Intake{live.data.items.length > 0 ? ': there are refused messages' : ''}</To>;
}

export default function DeadLetters(): ReactNode {
  useTitle('Failed jobs');
  const { owner, several, mayChange, mayChangeOf } = useWhose();
  const merged = several !== null;
  const owners = useOwnersToMerge();
  const live = useLive(`groups ${several ?? ''} ${owner ?? ''}`, () => (merged ? all(owners) : of(owner)), merged ? SELDOM : OFTEN);
  const [chosen, setChosen] = useState<{ fingerprint?: string; count: number; owner: string | undefined } | null>(null);
  const ownerOf = (group: Group): string | undefined => group.owner?.id ?? owner;
  const groups = live.data?.items ?? [];
  const callsOf = useCalls(groups.filter((group) => !group.calls).map((group) => ({ id: group.job_id, owner: ownerOf(group) })));
  const nameOf = useTaskNames(groups.flatMap((group) => group.task_ids.slice(0, 1).map((id) => ({ id, owner: ownerOf(group) }))));
  const count = groups.reduce((sum, group) => sum + group.count, 0);
  if (live.error?.status === 403) return <NotForRole text={live.error.message} />;
  return (
    <SpaceBetween size="m">
      <Progress onEnd={live.reload} />
      <RedriveDialog filter={chosen === null ? null : { fingerprint: chosen.fingerprint }} expected={chosen?.count ?? 0} owner={chosen?.owner} onClose={() => setChosen(null)} />
      {live.data?.complete === false && <Alert type="info">There are more failed jobs. This page counts the latest {live.data.scanned}.</Alert>}
      <Table<Group>
        variant="full-page"
        stickyHeader
        contentDensity="compact"
        wrapLines
        items={groups}
        loading={live.loading}
        loadingText="Loading failed jobs"
        ariaLabels={{ tableLabel: 'Failed jobs', selectionGroupLabel: '' }}
        header={
          <SpaceBetween size="xs">
            <Header
              variant="awsui-h1-sticky"
              counter={live.data === null ? undefined : `(${count})`}
              description={`Jobs that failed or were killed, by error. Errors that differ only in ids, numbers or times are grouped. The API calls them ${termOf('failed job')}s.`}
              actions={
                <SpaceBetween direction="horizontal" size="xs">
                  <Button iconName="refresh" ariaLabel="Refresh" onClick={live.reload} />
                  {mayChange && !merged && (
                    <Button disabled={count === 0} onClick={() => setChosen({ count, owner })}>
                      Run all again
                    </Button>
                  )}
                </SpaceBetween>
              }
            >
              Failed jobs
            </Header>
            <Stale live={live} />
          </SpaceBetween>
        }
        filter={<div className="filters"><SpaceBetween direction="horizontal" size="m" alignItems="center"><WhoseChoice /><IntakeLink owner={owner} /></SpaceBetween></div>}
        empty={live.error !== null && live.data === null ? <Failed error={live.error} what="failed jobs" retry={live.reload} /> : (
          <Empty title="No failed jobs">
            <Box variant="p" color="inherit">A job is listed here when its last attempt has failed or was killed. You correct the cause, and run the job again.</Box>
            <DocsLink href={pageOfDocs('guides/redrive')}>Run failed jobs again</DocsLink>
          </Empty>
        )}
        columnDefinitions={[
          ...(merged ? [{ id: 'owner', header: 'Owner', cell: (group: Group) => group.owner?.username ?? '–' }] : []),
          {
            id: 'error',
            header: 'Error',
            isRowHeader: true,
            cell: (group) => {
              const text = group.error === null ? '(running again)' : errorInWords(group.error);
              return group.fingerprint === null ? <Words>{text}</Words> : <To href={`/dead-letters/${group.fingerprint}${ofOwner(ownerOf(group))}`}><Words>{text}</Words></To>;
            },
            minWidth: 200,
          },
          { id: 'count', header: 'Jobs', cell: (group) => group.count },
          { id: 'calls', header: 'Calls', cell: (group) => <Words>{group.calls ?? callsOf(group.job_id, ownerOf(group)) ?? group.types.join(', ')}</Words>, minWidth: 150 },
          { id: 'tasks', header: 'Tasks', cell: (group) => <Words>{namesOf(group.task_ids, (id) => nameOf(id, ownerOf(group)))}</Words>, minWidth: 120 },
          { id: 'last', header: 'Last', cell: (group) => <Ago at={group.last_at} /> },
          { id: 'first', header: 'First', cell: (group) => <Ago at={group.first_at} /> },
          { id: 'sample', header: 'Latest job', cell: (group) => <To href={pageOfJob(group.job_id, ownerOf(group))}><Words>{group.job_id}</Words></To>, minWidth: 150 },
          {
            id: 'redrive',
            header: 'Action',
            minWidth: 110,
            cell: (group) =>
              group.fingerprint === null || !mayChangeOf(ownerOf(group)) ? null : (
                <Button variant="inline-link" ariaLabel={`Run again: ${group.count} jobs`} onClick={() => setChosen({ fingerprint: group.fingerprint ?? undefined, count: group.count, owner: ownerOf(group) })}>
                  Run again
                </Button>
              ),
          },
        ]}
      />
    </SpaceBetween>
  );
}
