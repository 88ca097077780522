import Box from '@cloudscape-design/components/box';
import Button from '@cloudscape-design/components/button';
import Header from '@cloudscape-design/components/header';
import Input from '@cloudscape-design/components/input';
import Multiselect from '@cloudscape-design/components/multiselect';
import Pagination from '@cloudscape-design/components/pagination';
import SegmentedControl from '@cloudscape-design/components/segmented-control';
import Select from '@cloudscape-design/components/select';
import SpaceBetween from '@cloudscape-design/components/space-between';
import { useState, type ReactNode } from 'react';
import { useNavigate } from 'react-router';

import { api, take, type Job } from '../api/client';
import { JOB_LOOKS } from '../colours';
import { InstantField } from '../form/instant';
import { useLive, useSettled } from '../live';
import { pageOfDocs } from '../docs';
import { toCancel, toReplayMany, type CancelFilter, type ChosenJobs, type Many, type ReplayFilter } from '../operations';
import { DocsLink } from '../parts/docs-link';
import { ofOwner } from '../parts/links';
import { JobTable } from '../parts/job-table';
import { ManyDialog } from '../parts/many-dialog';
import { usePages } from '../parts/pages';
import { Empty, Failed, NotForRole, Stale, useTitle } from '../parts/parts';
import { Progress } from '../parts/progress';
import { useQuery } from '../parts/query';
import { TaskChoice } from '../parts/task-choice';
import { MOST_USERS, ofEach, useOwnersToMerge, useWhose, WhoseChoice, type Owned } from '../parts/whose';
import { BETWEEN, bounds, spanOptions } from '../times';

const LIMIT = 50;
const OFTEN = 2_000;
const SELDOM = 15_000; // of several owners: one call for each
const STATUSES = Object.keys(JOB_LOOKS).map((value) => ({ value, label: value.charAt(0).toUpperCase() + value.slice(1) }));
const FILTERS = { status: '', type: '', task: '', tag: '', time: '', from: '', to: '' };

interface Found {
  items: Owned<Job>[];
  cursor: string | null;
  /** Of several owners: whether all were asked for. */
  complete?: boolean;
}

export default function Jobs(): ReactNode {
  useTitle('Jobs');
  const navigate = useNavigate();
  const [query, set] = useQuery();
  const { owner, several, mayChange, creates } = useWhose();
  const merged = several !== null;
  const owners = useOwnersToMerge();
  const [many, setMany] = useState<Many | null>(null);
  const upcoming = query.get('view') === 'ahead';
  const { status, type, task, tag, time, from, to } = Object.fromEntries(Object.keys(FILTERS).map((name) => [name, query.get(name) ?? ''])) as typeof FILTERS;
  const statuses = status.split(',').filter((each): each is Job['status'] => Object.hasOwn(JOB_LOOKS, each));
  const chosen = STATUSES.filter(({ value }) => (statuses as string[]).includes(value));
  const settled = useSettled(tag.trim(), 300);
  const types = useLive('types', () => take(api.GET('/api/v1/types')), 0);
  const filter = JSON.stringify([owner, several, upcoming, status, type, task, settled, time, from, to]);
  const pages = usePages(filter);
  const ask = (owner: string | undefined, cursor: string | undefined): Promise<Found> =>
    take(
      api.GET('/api/v1/jobs', {
        params: {
          query: {
            upcoming: upcoming || undefined,
            status: statuses.length === 0 ? undefined : statuses,
            type: type || undefined,
            task: task || undefined,
            tag: settled || undefined,
            ...bounds(query, upcoming, Date.now()),
            limit: LIMIT,
            cursor,
            owner,
          },
        },
      }),
    );
  const live = useLive<Found>(`${filter}${pages.cursor ?? ''}`, () => (merged ? all(upcoming, owners, (owner) => ask(owner, undefined)) : ask(owner, pages.cursor)), merged ? SELDOM : OFTEN);
  const narrowed = [status, type, task, settled, time].some((each) => each !== '');
  const typeOptions = [{ value: '', label: 'Any type' }, ...(types.data?.items ?? []).map((each) => ({ value: each.type, label: each.type }))];
  const spans = spanOptions(upcoming);
  const order = upcoming ? 'Upcoming jobs, soonest first.' : 'Past jobs, latest first.';
  const shown = (now: number): ChosenJobs => ({ status: statuses, type, task, tag: settled, ...bounds(query, upcoming, now) });
  const cancellable = (now = Date.now()): CancelFilter | null => toCancel(shown(now), upcoming, now);
  const replayable = (now = Date.now()): ReplayFilter | null => toReplayMany(shown(now), upcoming, now);
  const start = (action: Many['action'], body: Many['body'] | null): void => setMany(body === null ? null : ({ action, body } as Many));
  if (live.error?.status === 403) return <NotForRole text={live.error.message} />;
  return (
    <>
      <Progress onEnd={live.reload} />
      {many !== null && <ManyDialog many={many} owner={owner} onClose={() => setMany(null)} />}
      <JobTable
        variant="full-page"
        jobs={live.data?.items ?? []}
        loading={live.loading}
        loadingText="Loading jobs"
        ariaLabels={{ tableLabel: 'Jobs', selectionGroupLabel: '' }}
        columns={[
          'status', // first, so that a phone shows it
          'calls',
          'scheduled',
          ...(merged ? (['owner'] as const) : []),
          'task',
          ...(upcoming ? [] : (['delay', 'duration', 'attempts'] as const)),
          'reason',
          'job',
        ]}
        header={
          <SpaceBetween size="xs">
            <Header
              variant="awsui-h1-sticky"
              description={merged ? `${order} The first ${LIMIT}${live.data?.complete === false ? ` of the first ${MOST_USERS} users` : ''}: choose an owner to see more.` : order}
              actions={
                <SpaceBetween direction="horizontal" size="xs">
                  <Button iconName="refresh" ariaLabel="Refresh" onClick={live.reload} />
                  {mayChange && !merged && (
                    <Button disabled={cancellable() === null} onClick={() => start('cancel_jobs', cancellable())}>
                      Cancel all that match
                    </Button>
                  )}
                  {mayChange && !merged && !upcoming && (
                    <Button disabled={replayable() === null} onClick={() => start('replay_jobs', replayable())}>
                      Replay all that match
                    </Button>
                  )}
                  {creates !== null && (
                    <Button variant="primary" onClick={() => void navigate(`/jobs/new${ofOwner(owner)}`)}>
                      Post job
                    </Button>
                  )}
                </SpaceBetween>
              }
            >
              Jobs
            </Header>
            <Stale live={live} />
          </SpaceBetween>
        }
        filter={
          <SpaceBetween size="xs">
            <div className="filters">
              <SegmentedControl
                label="Which jobs"
                selectedId={upcoming ? 'ahead' : 'past'}
                options={[{ id: 'past', text: 'History' }, { id: 'ahead', text: 'Upcoming' }]}
                onChange={({ detail }) => set({ view: detail.selectedId === 'ahead' ? 'ahead' : '' })}
              />
              <WhoseChoice />
              <Multiselect
                ariaLabel="Status"
                options={STATUSES}
                selectedOptions={chosen}
                hideTokens
                placeholder={chosen.map(({ label }) => label).join(', ') || 'Any status'}
                onChange={({ detail }) => set({ status: detail.selectedOptions.map(({ value }) => value).join(',') })}
              />
              <Select
                ariaLabel="Type"
                options={typeOptions}
                selectedOption={typeOptions.find((each) => each.value === type) ?? { value: type, label: type }}
                onChange={({ detail }) => set({ type: detail.selectedOption.value ?? '' })}
              />
              {!merged && <TaskChoice task={task} owner={owner} onChange={(chosen) => set({ task: chosen })} />}
              <Select ariaLabel="Time" options={spans} selectedOption={spans.find((each) => each.value === time) ?? spans[0] ?? null} onChange={({ detail }) => set({ time: detail.selectedOption.value ?? '', from: '', to: '' })} />
              <Input type="search" value={tag} placeholder="Tag" ariaLabel="Tag" onChange={({ detail }) => set({ tag: detail.value })} />
            </div>
            {time === BETWEEN && (
              <div className="filters">
                <InstantField label="From" value={from} error={undefined} onChange={(value) => set({ from: value })} />
                <InstantField label="Until" value={to} error={undefined} onChange={(value) => set({ to: value })} />
              </div>
            )}
          </SpaceBetween>
        }
        pagination={merged ? undefined : <Pagination {...pages.bar(live.data?.cursor)} ariaLabels={{ nextPageLabel: 'Next page', previousPageLabel: 'Previous page', pageLabel: (n) => `Page ${n}` }} />}
        empty={
          live.error !== null && live.data === null ? (
            <Failed error={live.error} what="jobs" retry={live.reload} />
          ) : narrowed ? (
            <Empty title="No matching jobs">
              <Button onClick={() => set(FILTERS)}>Clear filters</Button>
            </Empty>
          ) : (
            <Empty title={upcoming ? 'No upcoming jobs' : 'No jobs yet'}>
              <Box variant="p" color="inherit">
                A job calls a target once: now, after a delay, or at a time. The form copies its request as curl or Python, too.
              </Box>
              {creates !== null && <Button onClick={() => void navigate(`/jobs/new${ofOwner(owner)}`)}>Post {upcoming ? 'a job' : owner === undefined ? 'your first job' : 'the first job'}</Button>}
              <DocsLink href={pageOfDocs('get-started/first-job')}>Your first job</DocsLink>
            </Empty>
          )
        }
      />
    </>
  );
}

/** The first jobs of all owners, in the order of the view. */
async function all(upcoming: boolean, owners: Parameters<typeof ofEach>[0], ask: (owner: string) => Promise<Found>): Promise<Found> {
  const { found, complete } = await ofEach(owners, async (owner) => (await ask(owner)).items);
  found.sort((one, other) => (upcoming ? 1 : -1) * one.scheduled_at.localeCompare(other.scheduled_at));
  return { items: found.slice(0, LIMIT), cursor: null, complete };
}
