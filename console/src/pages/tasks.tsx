import Box from '@cloudscape-design/components/box';
import Button from '@cloudscape-design/components/button';
import ButtonDropdown from '@cloudscape-design/components/button-dropdown';
import Header from '@cloudscape-design/components/header';
import Input from '@cloudscape-design/components/input';
import Pagination from '@cloudscape-design/components/pagination';
import Select from '@cloudscape-design/components/select';
import SpaceBetween from '@cloudscape-design/components/space-between';
import Table, { type TableProps } from '@cloudscape-design/components/table';
import { useEffect, useState, type ReactNode } from 'react';
import { useNavigate } from 'react-router';

import { api, apiError, take, type Job, type ListedTask, type Schemas } from '../api/client';
import { useLive, useSettled } from '../live';
import { pageOfDocs } from '../docs';
import { toChange, type Many } from '../operations';
import { DocsLink } from '../parts/docs-link';
import { ManyDialog } from '../parts/many-dialog';
import { useNotices } from '../parts/notices';
import { usePages } from '../parts/pages';
import { ofOwner, pageOfJob, pageOfTask } from '../parts/links';
import { Empty, Failed, NotForRole, Stale, To, useConfirm, useTitle, Words } from '../parts/parts';
import { Progress } from '../parts/progress';
import { useQuery } from '../parts/query';
import { PAUSE_TASKS, ReasonDialog, type Reasoned } from '../parts/reason-dialog';
import { JobStatus, TaskStatus } from '../parts/status';
import { Ago } from '../parts/time';
import { ofEach, useOwnersToMerge, useWhose, WhoseChoice, type Owned } from '../parts/whose';
import { newestFirst, ORDERS, sorted } from '../sorting';
import { onTimeShare, percent, scheduleInWords } from '../words';

const LIMIT = 25;
const RECENT = 20; // runs by which the share on time is told
const AT_ONCE = 4;
const PAGE = 100; // the longest that the API answers
const MOST = 1_000; // tasks that are read to be sorted, of one user; of everybody's a page each
const OFTEN = 5_000;
const SELDOM = 15_000;
const STATUSES = [
  { value: '', label: 'Any status' },
  { value: 'active', label: 'Active' },
  { value: 'inactive', label: 'Paused' },
  { value: 'ended', label: 'Ended' },
];

const MANY = [
  { action: 'pause_tasks', text: 'Pause all' },
  { action: 'resume_tasks', text: 'Resume all' },
  { action: 'delete_tasks', text: 'Delete all' },
] as const;

export default function Tasks(): ReactNode {
  useTitle('Tasks');
  const navigate = useNavigate();
  const [query, set] = useQuery();
  const { owner, several, mayChange, mayChangeOf, creates } = useWhose();
  const merged = several !== null;
  const owners = useOwnersToMerge();
  const [typed, setTyped] = useState(query.get('name') ?? '');
  const [tagTyped, setTagTyped] = useState(query.get('tag') ?? '');
  const name = useSettled(typed.trim(), 300);
  const tag = useSettled(tagTyped.trim(), 300);
  const type = query.get('type') ?? '';
  const status = query.get('status') ?? '';
  const sort = query.get('sort') ?? '';
  const order = Object.hasOwn(ORDERS, sort) ? sort : '';
  const descending = query.get('order') === 'desc';
  const types = useLive('types', () => take(api.GET('/api/v1/types')), 0);
  const filter = JSON.stringify([owner, several, name, tag, type, status]);
  const pages = usePages(filter);
  const [selected, setSelected] = useState<Row[]>([]);
  useEffect(() => set({ name, tag }), [name, tag]); // the address can be shared

  const ask = (owner: string | undefined, limit: number, cursor: string | undefined): Promise<Found> =>
    take(
      api.GET('/api/v1/tasks', {
        params: {
          query: {
            name: name || undefined,
            tag: tag || undefined,
            type: type || undefined,
            status: (status || undefined) as Schemas['TaskStatus'] | undefined,
            limit,
            cursor,
            owner,
          },
        },
      }),
    );
  const whole = merged || order !== ''; // then all are read, and this page of them is cut out here
  const live = useLive<Found>(
    `${filter}${whole ? order === '' : (pages.cursor ?? '')}`,
    () => (merged ? ofAll(owners, ask) : order !== '' ? allOf((cursor) => ask(owner, PAGE, cursor)) : ask(owner, LIMIT, pages.cursor)),
    whole ? SELDOM : OFTEN,
  );
  const [page, setPage] = useState({ of: '', index: 1 });
  const listed = `${filter}${order}${descending}`;
  const index = page.of === listed ? page.index : 1;
  const found = live.data?.items ?? [];
  const all = order === '' ? found : sorted(found, order, descending);
  const tasks = whole ? all.slice((index - 1) * LIMIT, index * LIMIT) : all;
  const recent = useRecentRuns(tasks, owner);
  const [dialog, confirm] = useConfirm();
  const [many, setMany] = useState<Many | null>(null);
  const [pausing, setPausing] = useState<Reasoned | null>(null);
  const act = useBulk(owner, () => {
    setSelected([]);
    live.reload();
  });

  const bulk = (id: string): void => {
    const count = selected.length === 1 ? `“${selected[0]?.name ?? ''}”` : `${selected.length} tasks`;
    if (id === 'pause') return setPausing({ ...PAUSE_TASKS, title: `Pause ${count}?`, act: (reason) => act(id, selected, reason) });
    if (id !== 'delete') return void act(id, selected);
    confirm({
      title: `Delete ${count}?`,
      text: 'Their future runs are deleted too. Past runs stay in the history.',
      yes: 'Delete',
      act: () => act(id, selected),
    });
  };

  const manyItems = MANY.map(({ action, text }) => {
    const body = toChange(action, { status, type, name, tag });
    return { id: action, text, disabled: body === null, disabledReason: 'No task with the chosen status can be changed this way', many: body === null ? null : { action, body } };
  });
  const typeOptions = [{ value: '', label: 'Any type' }, ...(types.data?.items ?? []).map((each) => ({ value: each.type, label: each.type }))];
  if (live.error?.status === 403) return <NotForRole text={live.error.message} />;
  const narrowed = name !== '' || tag !== '' || type !== '' || status !== '';
  return (
    <>
      {dialog}
      {pausing !== null && <ReasonDialog {...pausing} onClose={() => setPausing(null)} />}
      {many !== null && <ManyDialog many={many} owner={owner} onClose={() => setMany(null)} />}
      <Progress onEnd={live.reload} />
      <Table<Row>
        variant="full-page"
        stickyHeader
        contentDensity="compact"
        resizableColumns
        wrapLines
        trackBy="id"
        items={tasks}
        loading={live.loading}
        loadingText="Loading tasks"
        selectionType={mayChange ? 'multi' : undefined}
        isItemDisabled={(task) => !mayChangeOf(task.owner?.id ?? owner)}
        sortingColumn={order === '' ? undefined : { sortingField: order }}
        sortingDescending={descending}
        onSortingChange={({ detail }) => set({ sort: detail.sortingColumn.sortingField ?? '', order: detail.isDescending ? 'desc' : '' })}
        selectedItems={selected.filter((each) => tasks.some((task) => task.id === each.id))}
        onSelectionChange={({ detail }) => setSelected(detail.selectedItems)}
        ariaLabels={{
          selectionGroupLabel: 'Tasks',
          allItemsSelectionLabel: () => 'Select all',
          itemSelectionLabel: (_: unknown, task: Row) => `Select ${task.name}`,
          tableLabel: 'Tasks',
        }}
        columnDefinitions={columns(recent, owner, merged)}
        header={
          <SpaceBetween size="xs">
            <Header
              variant="awsui-h1-sticky"
              description={`${orderInWords(order, whole, live.data)} On time: share of the last ${RECENT} runs.`}
              actions={
                <SpaceBetween direction="horizontal" size="xs">
                  <Button iconName="refresh" ariaLabel="Refresh" onClick={live.reload} />
                  {order !== '' && <Button onClick={() => set({ sort: '', order: '' })}>Newest first</Button>}
                  {mayChange && !merged && (
                    <ButtonDropdown items={manyItems} onItemClick={({ detail }) => setMany(manyItems.find(({ id }) => id === detail.id)?.many ?? null)}>
                      {narrowed ? 'All that match' : 'All tasks'}
                    </ButtonDropdown>
                  )}
                  {mayChange && <ButtonDropdown
                    disabled={selected.length === 0}
                    items={[
                      { id: 'run', text: 'Run now' },
                      { id: 'pause', text: 'Pause' },
                      { id: 'resume', text: 'Resume' },
                      { id: 'delete', text: 'Delete' },
                    ]}
                    onItemClick={({ detail }) => bulk(detail.id)}
                  >
                    Actions
                  </ButtonDropdown>}
                  {creates !== null && (
                    <Button variant="primary" onClick={() => void navigate(`/tasks/new${ofOwner(owner)}`)}>
                      Create task
                    </Button>
                  )}
                </SpaceBetween>
              }
            >
              Tasks
            </Header>
            <Stale live={live} />
          </SpaceBetween>
        }
        filter={
          <div className="filters">
            <WhoseChoice />
            <Input type="search" value={typed} onChange={({ detail }) => setTyped(detail.value)} placeholder="Find by name" ariaLabel="Find by name" />
            <Input type="search" value={tagTyped} onChange={({ detail }) => setTagTyped(detail.value)} placeholder="Tag" ariaLabel="Tag" />
            <Select
              ariaLabel="Type"
              options={typeOptions}
              selectedOption={typeOptions.find((option) => option.value === type) ?? { value: type, label: type }}
              onChange={({ detail }) => set({ type: detail.selectedOption.value ?? '' })}
            />
            <Select
              ariaLabel="Status"
              options={STATUSES}
              selectedOption={STATUSES.find((option) => option.value === status) ?? null}
              onChange={({ detail }) => set({ status: detail.selectedOption.value ?? '' })}
            />
          </div>
        }
        pagination={<Pagination {...(whole ? { currentPageIndex: index, pagesCount: Math.max(1, Math.ceil(all.length / LIMIT)), onChange: ({ detail }: { detail: { currentPageIndex: number } }) => setPage({ of: listed, index: detail.currentPageIndex }) } : pages.bar(live.data?.cursor))} ariaLabels={{ nextPageLabel: 'Next page', previousPageLabel: 'Previous page', pageLabel: (n) => `Page ${n}` }} />}
        empty={
          live.error !== null && live.data === null ? (
            <Failed error={live.error} what="tasks" retry={live.reload} />
          ) : narrowed ? (
            <Empty title="No matching tasks">
              <Button
                onClick={() => {
                  setTyped('');
                  setTagTyped('');
                  set({ name: '', tag: '', type: '', status: '' });
                }}
              >
                Clear filters
              </Button>
            </Empty>
          ) : (
            <Empty title="No tasks yet">
              <Box variant="p" color="inherit">
                A task runs jobs on a schedule: by cron, at an interval, or once. The form shows the next ten runs before you save it.
              </Box>
              {creates !== null && <Button onClick={() => void navigate(`/tasks/new${ofOwner(owner)}`)}>Create {owner === undefined ? 'your' : 'the'} first task</Button>}
              <DocsLink href={pageOfDocs('get-started/first-task')}>Your first task</DocsLink>
            </Empty>
          )
        }
      />
    </>
  );
}

type Row = Owned<ListedTask>;

interface Found {
  items: Row[];
  cursor: string | null;
}

/** Up to `MOST` tasks; the cursor of the answer tells that there are more. */
async function allOf(ask: (cursor: string | undefined) => Promise<Found>): Promise<Found> {
  const tasks: Row[] = [];
  let cursor: string | undefined;
  do {
    const page = await ask(cursor);
    tasks.push(...page.items);
    cursor = page.cursor ?? undefined;
  } while (cursor !== undefined && tasks.length < MOST);
  return { items: tasks, cursor: cursor ?? null };
}

/** The newest tasks of each owner. */
async function ofAll(owners: Parameters<typeof ofEach>[0], ask: (owner: string, limit: number, cursor: undefined) => Promise<Found>): Promise<Found> {
  let more: string | null = null;
  const { found, complete } = await ofEach(owners, async (owner) => {
    const page = await ask(owner, PAGE, undefined);
    more = page.cursor ?? more;
    return page.items;
  });
  return { items: newestFirst(found), cursor: complete ? more : 'more owners' };
}

function orderInWords(order: string, whole: boolean, found: Found | null): string {
  const words = order === '' ? 'Newest first.' : 'Sorted.';
  return whole && found !== null && found.cursor !== null ? `${words} Only the newest ${found.items.length} are listed: filter to see others.` : words;
}

function columns(recent: ReadonlyMap<string, Job[]>, owner: string | undefined, merged: boolean): TableProps.ColumnDefinition<Row>[] {
  const ownerOf = (task: Row): string | undefined => task.owner?.id ?? owner;
  const definitions: TableProps.ColumnDefinition<Row>[] = [
    { id: 'name', header: 'Name', cell: (task) => <To href={pageOfTask(task.id, ownerOf(task))}><Words>{task.name}</Words></To>, isRowHeader: true, width: 154, minWidth: 150 },
    ...(merged ? [{ id: 'owner', header: 'Owner', cell: (task: Row) => task.owner?.username ?? '–', width: 110, minWidth: 90 }] : []),
    { id: 'status', header: 'Status', cell: (task) => <TaskStatus status={task.status} />, width: 102, minWidth: 102 },
    { id: 'type', header: 'Type', cell: (task) => task.target ?? task.type, width: 94, minWidth: 94 },
    { id: 'schedule', header: 'Schedule', cell: (task) => scheduleInWords(task.schedule), width: 152, minWidth: 150 },
    { id: 'zone', header: 'Time zone', cell: (task) => (task.schedule === null ? '–' : (task.schedule.time_zone ?? 'UTC')), width: 128, minWidth: 128 },
    { id: 'next', header: 'Next run', cell: (task) => <Ago at={task.next_run?.at ?? null} />, width: 118, minWidth: 118 },
    {
      id: 'last',
      header: 'Last result',
      cell: (task) => {
        const last = recent.get(task.id)?.[0];
        return last === undefined ? '–' : <To href={pageOfJob(last.id, ownerOf(task))}><JobStatus job={last} /></To>;
      },
      width: 128,
      minWidth: 128,
    },
    {
      id: 'on-time',
      header: 'On time',
      cell: (task) => {
        const share = onTimeShare(recent.get(task.id) ?? []);
        return share === null ? '–' : percent(share);
      },
      width: 92,
      minWidth: 92,
    },
    { id: 'tags', header: 'Tags', cell: (task) => task.tags.join(', ') || '–', width: 94, minWidth: 90 },
  ];
  return definitions.map((each) => (Object.hasOwn(ORDERS, each.id ?? '') ? { ...each, sortingField: each.id } : each));
}

const PAUSE = 15_000;

/** The last runs of each task that is shown; asked for a few at a time, after the page itself is there. */
function useRecentRuns(tasks: readonly Row[], owner: string | undefined): ReadonlyMap<string, Job[]> {
  const [recent, setRecent] = useState<ReadonlyMap<string, Job[]>>(new Map());
  const shown = tasks.map((task) => `${task.id}/${task.owner?.id ?? owner ?? ''}`).join(' ');
  useEffect(() => {
    if (shown === '') return;
    let over = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const round = async (): Promise<void> => {
      const left = document.hidden ? [] : shown.split(' ');
      const ask = async (): Promise<void> => {
        for (let each = left.shift(); each !== undefined && !over; each = left.shift()) {
          const [asked = '', owner = ''] = each.split('/');
          const query = { limit: RECENT, owner: owner || undefined };
          const found = await take(api.GET('/api/v1/tasks/{task_id}/jobs', { params: { path: { task_id: asked }, query } })).catch(() => null);
          if (found !== null && !over) setRecent((before) => new Map(before).set(asked, found.items));
        }
      };
      await Promise.all(Array.from({ length: AT_ONCE }, ask));
      if (!over) timer = setTimeout(() => void round(), PAUSE);
    };
    void round();
    return () => {
      over = true;
      clearTimeout(timer);
    };
  }, [shown]);
  return recent;
}

const DONE: Record<string, string> = { run: 'Started', pause: 'Paused', resume: 'Resumed', delete: 'Deleted' };

function useBulk(owner: string | undefined, after: () => void): (action: string, tasks: readonly Row[], reason?: string) => Promise<void> {
  const { done, failed } = useNotices();
  return async (action, tasks, reason) => {
    const results = await Promise.allSettled(tasks.map((task) => change(action, task.id, task.owner?.id ?? owner, reason)));
    const good = results.filter((result) => result.status === 'fulfilled').length;
    const bad = results.find((result) => result.status === 'rejected');
    if (good > 0) done(`${DONE[action] ?? action} ${good} ${good === 1 ? 'task' : 'tasks'}.`);
    if (bad !== undefined) failed(`${tasks.length - good} of ${tasks.length} could not be changed`, apiError(bad.reason));
    after();
  };
}

/** The reason is that of a pause. */
export async function change(action: string, id: string, owner: string | undefined, reason?: string): Promise<unknown> {
  const params = { path: { task_id: id }, query: { owner } };
  switch (action) {
    case 'run':
      return take(api.POST('/api/v1/tasks/{task_id}/run', { params, body: {} }));
    case 'pause':
      return take(api.POST('/api/v1/tasks/{task_id}/pause', { params, body: { reason } }));
    case 'resume':
      return take(api.POST('/api/v1/tasks/{task_id}/resume', { params }));
    default:
      return take(api.DELETE('/api/v1/tasks/{task_id}', { params }));
  }
}
