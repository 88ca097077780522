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
import { useNavigate, useSearchParams } from 'react-router';

import { api, apiError, take, type Job, type ListedTask, type Schemas } from '../api/client';
import { useLive, useSettled } from '../live';
import { useNotices } from '../parts/notices';
import { usePages } from '../parts/pages';
import { Empty, Failed, Stale, To, useConfirm, useTitle } from '../parts/parts';
import { JobStatus, TaskStatus } from '../parts/status';
import { Ago } from '../parts/time';
import { onTimeShare, percent, scheduleInWords } from '../words';

const LIMIT = 25;
const RECENT = 20; // runs by which the share on time is told
const AT_ONCE = 4;
const STATUSES = [
  { value: '', label: 'Any status' },
  { value: 'active', label: 'Active' },
  { value: 'inactive', label: 'Paused' },
  { value: 'ended', label: 'Ended' },
];

export default function Tasks(): ReactNode {
  useTitle('Tasks');
  const navigate = useNavigate();
  const [query, setQuery] = useSearchParams();
  const [typed, setTyped] = useState(query.get('name') ?? '');
  const [tagTyped, setTagTyped] = useState(query.get('tag') ?? '');
  const name = useSettled(typed.trim(), 300);
  const tag = useSettled(tagTyped.trim(), 300);
  const type = query.get('type') ?? '';
  const status = query.get('status') ?? '';
  const types = useLive('types', () => take(api.GET('/api/v1/task-types')), 0);
  const filter = JSON.stringify([name, tag, type, status]);
  const pages = usePages(filter);
  const [selected, setSelected] = useState<ListedTask[]>([]);

  const set = (changes: Record<string, string>): void => {
    setQuery(
      (before) => {
        const next = new URLSearchParams(before);
        for (const [key, value] of Object.entries(changes)) {
          if (value === '') next.delete(key);
          else next.set(key, value);
        }
        return next;
      },
      { replace: true },
    );
  };
  useEffect(() => set({ name, tag }), [name, tag]); // the address can be shared

  const live = useLive(`${filter}${pages.cursor ?? ''}`, () =>
    take(
      api.GET('/api/v1/tasks', {
        params: {
          query: {
            name: name || undefined,
            tag: tag || undefined,
            type: type || undefined,
            status: (status || undefined) as Schemas['TaskStatus'] | undefined,
            limit: LIMIT,
            cursor: pages.cursor,
          },
        },
      }),
    ),
  );
  const tasks = live.data?.tasks ?? [];
  const recent = useRecentRuns(tasks);
  const [dialog, confirm] = useConfirm();
  const act = useBulk(() => {
    setSelected([]);
    live.reload();
  });

  const bulk = (id: string): void => {
    const count = selected.length === 1 ? `“${selected[0]?.name ?? ''}”` : `${selected.length} tasks`;
    if (id !== 'delete') return void act(id, selected);
    confirm({
      title: `Delete ${count}?`,
      text: 'Their future runs go with them; what has run stays in the history.',
      yes: 'Delete',
      act: () => act(id, selected),
    });
  };

  const typeOptions = [{ value: '', label: 'Any type' }, ...(types.data?.task_types ?? []).map((each) => ({ value: each.type, label: each.type }))];
  const narrowed = name !== '' || tag !== '' || type !== '' || status !== '';
  return (
    <>
      {dialog}
      <Table<ListedTask>
        variant="full-page"
        stickyHeader
        contentDensity="compact"
        resizableColumns
        trackBy="id"
        items={tasks}
        loading={live.loading}
        loadingText="Loading tasks"
        selectionType="multi"
        selectedItems={selected.filter((each) => tasks.some((task) => task.id === each.id))}
        onSelectionChange={({ detail }) => setSelected(detail.selectedItems)}
        ariaLabels={{
          selectionGroupLabel: 'Tasks',
          allItemsSelectionLabel: () => 'Select all',
          itemSelectionLabel: (_, task) => `Select ${task.name}`,
          tableLabel: 'Tasks',
        }}
        columnDefinitions={columns(recent)}
        header={
          <SpaceBetween size="xs">
            <Header
              variant="awsui-h1-sticky"
              description={`The newest first. On time: of the last ${RECENT} runs.`}
              actions={
                <SpaceBetween direction="horizontal" size="xs">
                  <Button iconName="refresh" ariaLabel="Refresh" onClick={live.reload} />
                  <ButtonDropdown
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
                  </ButtonDropdown>
                  <Button variant="primary" onClick={() => void navigate('/tasks/new')}>
                    Create task
                  </Button>
                </SpaceBetween>
              }
            >
              Tasks
            </Header>
            <Stale live={live} />
          </SpaceBetween>
        }
        filter={
          <SpaceBetween direction="horizontal" size="xs">
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
          </SpaceBetween>
        }
        pagination={<Pagination {...pages.bar(live.data?.cursor)} ariaLabels={{ nextPageLabel: 'Next page', previousPageLabel: 'Previous page', pageLabel: (n) => `Page ${n}` }} />}
        empty={
          live.error !== null && live.data === null ? (
            <Failed error={live.error} what="tasks" retry={live.reload} />
          ) : narrowed ? (
            <Empty title="No task fits">
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
                A task says what to run and when: once, at a time, or again and again.
              </Box>
              <Button onClick={() => void navigate('/tasks/new')}>Create task</Button>
            </Empty>
          )
        }
      />
    </>
  );
}

function columns(recent: ReadonlyMap<string, Job[]>): TableProps.ColumnDefinition<ListedTask>[] {
  return [
    { id: 'name', header: 'Name', cell: (task) => <To href={`/tasks/${task.id}`}>{task.name}</To>, isRowHeader: true, width: 172, minWidth: 150 },
    { id: 'status', header: 'Status', cell: (task) => <TaskStatus status={task.status} />, width: 102, minWidth: 102 },
    { id: 'type', header: 'Type', cell: (task) => task.target ?? task.type, width: 66, minWidth: 66 },
    { id: 'schedule', header: 'Schedule', cell: (task) => scheduleInWords(task.schedule), width: 165, minWidth: 160 },
    { id: 'zone', header: 'Time zone', cell: (task) => (task.schedule === null ? '–' : (task.schedule.time_zone ?? 'UTC')), width: 114, minWidth: 110 },
    { id: 'next', header: 'Next run', cell: (task) => <Ago at={task.next_run?.at ?? null} />, width: 120, minWidth: 120 },
    {
      id: 'last',
      header: 'Last result',
      cell: (task) => {
        const last = recent.get(task.id)?.[0];
        return last === undefined ? '–' : <To href={`/jobs/${last.id}`}><JobStatus job={last} /></To>;
      },
      width: 126,
      minWidth: 126,
    },
    {
      id: 'on-time',
      header: 'On time',
      cell: (task) => {
        const share = onTimeShare(recent.get(task.id) ?? []);
        return share === null ? '–' : percent(share);
      },
      width: 97,
      minWidth: 97,
    },
    { id: 'tags', header: 'Tags', cell: (task) => task.tags.join(', ') || '–', width: 96, minWidth: 90 },
  ];
}

const PAUSE = 15_000;

/** The last runs of each task that is shown; asked for a few at a time, after the page itself is there. */
function useRecentRuns(tasks: readonly ListedTask[]): ReadonlyMap<string, Job[]> {
  const [recent, setRecent] = useState<ReadonlyMap<string, Job[]>>(new Map());
  const shown = tasks.map((task) => task.id).join(' ');
  useEffect(() => {
    if (shown === '') return;
    let over = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const round = async (): Promise<void> => {
      const left = document.hidden ? [] : shown.split(' ');
      const ask = async (): Promise<void> => {
        for (let id = left.shift(); id !== undefined && !over; id = left.shift()) {
          const found = await take(api.GET('/api/v1/tasks/{task_id}/jobs', { params: { path: { task_id: id }, query: { limit: RECENT } } })).catch(() => null);
          const asked = id;
          if (found !== null && !over) setRecent((before) => new Map(before).set(asked, found.jobs));
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

function useBulk(after: () => void): (action: string, tasks: readonly ListedTask[]) => Promise<void> {
  const { done, failed } = useNotices();
  return async (action, tasks) => {
    const results = await Promise.allSettled(tasks.map((task) => change(action, task.id)));
    const good = results.filter((result) => result.status === 'fulfilled').length;
    const bad = results.find((result) => result.status === 'rejected');
    if (good > 0) done(`${DONE[action] ?? action} ${good} ${good === 1 ? 'task' : 'tasks'}.`);
    if (bad !== undefined) failed(`${tasks.length - good} of ${tasks.length} could not be changed`, apiError(bad.reason));
    after();
  };
}

export async function change(action: string, id: string): Promise<unknown> {
  const params = { path: { task_id: id } };
  switch (action) {
    case 'run':
      return take(api.POST('/api/v1/tasks/{task_id}/run', { params, body: {} }));
    case 'pause':
      return take(api.PUT('/api/v1/tasks/{task_id}/inactive', { params, body: {} }));
    case 'resume':
      return take(api.PUT('/api/v1/tasks/{task_id}/active', { params }));
    default:
      return take(api.DELETE('/api/v1/tasks/{task_id}', { params }));
  }
}
