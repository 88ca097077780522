import Box from '@cloudscape-design/components/box';
import Button from '@cloudscape-design/components/button';
import Header from '@cloudscape-design/components/header';
import Pagination from '@cloudscape-design/components/pagination';
import SpaceBetween from '@cloudscape-design/components/space-between';
import StatusIndicator from '@cloudscape-design/components/status-indicator';
import Table from '@cloudscape-design/components/table';
import type { ReactNode } from 'react';

import { api, take } from '../api/client';
import { GOES_ON, type Look } from '../colours';
import { useLive } from '../live';
import { chosenInWords, WORDS, type Operation } from '../operations';
import { pageOfDocs } from '../docs';
import { DocsLink } from '../parts/docs-link';
import { ofOwner } from '../parts/links';
import { usePages } from '../parts/pages';
import { Empty, Failed, NotForRole, Reason, Stale, To, useTitle } from '../parts/parts';
import { Progress, useAbort } from '../parts/progress';
import { Ago } from '../parts/time';
import { ofEach, useOwnersToMerge, useWhose, WhoseChoice, type Owned } from '../parts/whose';

type Row = Owned<Operation>;

const LIMIT = 20;
const OFTEN = 2_000; // while one runs
const SELDOM = 15_000;
const LOOKS: Record<Operation['status'], Look> = { running: GOES_ON, done: { type: 'success' }, aborted: { type: 'stopped' } };
const NAMES: Record<Operation['status'], string> = { running: 'Running', done: 'Done', aborted: 'Aborted' };

interface Found {
  items: Row[];
  cursor: string | null;
}

/** The first page of several owners: those that run before the ended ones, each the newest first. */
async function all(owners: Parameters<typeof ofEach>[0], ask: (owner: string) => Promise<Found>): Promise<Found> {
  const { found } = await ofEach(owners, async (owner) => (await ask(owner)).items);
  found.sort((one, other) => Number(other.status === 'running') - Number(one.status === 'running') || other.started_at.localeCompare(one.started_at));
  return { items: found, cursor: null };
}

/** What was started on many jobs or tasks: cancellations, redrives, and the like. */
export default function Operations(): ReactNode {
  useTitle('Operations');
  const { owner, several, mayChangeOf } = useWhose();
  const merged = several !== null;
  const owners = useOwnersToMerge();
  const key = `operations ${several ?? ''} ${owner ?? ''}`;
  const pages = usePages(key);
  const ask = (owner: string | undefined, cursor: string | undefined): Promise<Found> => take(api.GET('/api/v1/operations', { params: { query: { limit: LIMIT, cursor, owner } } }));
  const live = useLive<Found>(
    `${key} ${pages.cursor ?? ''}`,
    () => (merged ? all(owners, (owner) => ask(owner, undefined)) : ask(owner, pages.cursor)),
    (found) => (!merged && found?.items.some(({ status }) => status === 'running') ? OFTEN : SELDOM),
  );
  const abort = useAbort(live.reload);
  if (live.error?.status === 403) return <NotForRole text={live.error.message} />;
  return (
    <SpaceBetween size="m">
      <Progress onEnd={live.reload} />
      <Table<Row>
        variant="full-page"
        stickyHeader
        contentDensity="compact"
        wrapLines
        trackBy="id"
        items={live.data?.items ?? []}
        loading={live.loading}
        loadingText="Loading operations"
        ariaLabels={{ tableLabel: 'Operations', selectionGroupLabel: '' }}
        header={
          <SpaceBetween size="xs">
            <Header
              variant="awsui-h1-sticky"
              description="One action on many jobs or tasks. Running operations first, then those that ended in the last 90 days."
              actions={<Button iconName="refresh" ariaLabel="Refresh" onClick={live.reload} />}
            >
              Operations
            </Header>
            <Stale live={live} />
          </SpaceBetween>
        }
        filter={<div className="filters"><WhoseChoice /></div>}
        pagination={merged ? undefined : <Pagination {...pages.bar(live.data?.cursor)} ariaLabels={{ nextPageLabel: 'Next page', previousPageLabel: 'Previous page', pageLabel: (n) => `Page ${n}` }} />}
        empty={
          live.error !== null && live.data === null ? (
            <Failed error={live.error} what="operations" retry={live.reload} />
          ) : (
            <Empty title="No operations yet">
              <Box variant="p" color="inherit">
                An operation changes many jobs or tasks. Start one with <i>Cancel all that match</i> on <To href={`/jobs${ofOwner(owner)}`}>Jobs</To>, <i>All that match</i> on <To href={`/tasks${ofOwner(owner)}`}>Tasks</To>, or <i>Run again</i> on <To href={`/dead-letters${ofOwner(owner)}`}>Failed jobs</To>.
              </Box>
              <DocsLink href={pageOfDocs('guides/many-at-once')}>Many at once</DocsLink>
            </Empty>
          )
        }
        columnDefinitions={[
          { id: 'what', header: 'Operation', isRowHeader: true, cell: ({ action }) => WORDS[action].name, minWidth: 150 },
          ...(merged ? [{ id: 'owner', header: 'Owner', cell: (each: Row) => each.owner?.username ?? '–' }] : []),
          { id: 'status', header: 'Status', cell: ({ status }) => <StatusIndicator {...LOOKS[status]}>{NAMES[status]}</StatusIndicator>, minWidth: 115 },
          {
            id: 'action',
            header: 'Action',
            cell: (each) =>
              each.status !== 'running' || !mayChangeOf(each.owner?.id ?? owner) ? null : (
                <Button variant="inline-link" ariaLabel={`Abort the ${WORDS[each.action].name.toLowerCase()}`} onClick={() => void abort(each.id, each.owner?.id ?? owner)}>
                  Abort
                </Button>
              ),
          },
          { id: 'chosen', header: 'Filter', cell: ({ filter }) => <Reason text={chosenInWords(filter).join('; ') || 'All'} />, minWidth: 220 },
          { id: 'matched', header: 'Matched', cell: ({ matched }) => matched },
          { id: 'done', header: 'Done', cell: ({ done }) => done },
          { id: 'skipped', header: 'Skipped', cell: ({ skipped }) => skipped },
          { id: 'failed', header: 'Failed', cell: ({ failed }) => failed },
          { id: 'rate', header: 'Rate', cell: ({ rate }) => `${rate}/s` },
          { id: 'started', header: 'Started', cell: ({ started_at }) => <Ago at={started_at} /> },
          { id: 'ended', header: 'Ended', cell: ({ ended_at }) => <Ago at={ended_at} /> },
        ]}
      />
    </SpaceBetween>
  );
}
