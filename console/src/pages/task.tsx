import Box from '@cloudscape-design/components/box';
import BreadcrumbGroup from '@cloudscape-design/components/breadcrumb-group';
import Button from '@cloudscape-design/components/button';
import ButtonDropdown from '@cloudscape-design/components/button-dropdown';
import Container from '@cloudscape-design/components/container';
import CopyToClipboard from '@cloudscape-design/components/copy-to-clipboard';
import Header from '@cloudscape-design/components/header';
import KeyValuePairs from '@cloudscape-design/components/key-value-pairs';
import LineChart from '@cloudscape-design/components/line-chart';
import Pagination from '@cloudscape-design/components/pagination';
import SegmentedControl from '@cloudscape-design/components/segmented-control';
import SpaceBetween from '@cloudscape-design/components/space-between';
import StatusIndicator from '@cloudscape-design/components/status-indicator';
import { useState, type ReactNode } from 'react';
import { useNavigate, useParams } from 'react-router';

import { api, take, type Job, type Task } from '../api/client';
import { callsOfTask } from '../calls';
import { taskCall } from '../code';
import { write } from '../exact';
import { rulesOf } from '../form/alerts';
import { empty, fromTask, toRequest } from '../form/draft';
import { details } from '../form/fields';
import { labelOf } from '../form/labels';
import { Runs } from '../form/preview';
import { skippedMonths } from '../form/repeats';
import { pageOfTarget } from '../form/target';
import { COLOURS } from '../colours';
import { useLive, type Live } from '../live';
import { endedAt, JobTable } from '../parts/job-table';
import { CopyAs } from '../parts/copy-as';
import { useNotices } from '../parts/notices';
import { usePages } from '../parts/pages';
import { ofOwner, pageOfJob } from '../parts/links';
import { PAUSE_TASKS, ReasonDialog } from '../parts/reason-dialog';
import { Code, Empty, Loaded, Stale, To, useConfirm, useTitle, Words } from '../parts/parts';
import { TaskStatus } from '../parts/status';
import { Ago, clock, When } from '../parts/time';
import { Told } from '../parts/told';
import { TrailTable } from '../parts/trail';
import { OfWhom, useWhose } from '../parts/whose';
import { TaskYear } from '../parts/year';
import { misfireInWords, overlapInWords, runsInWords, scheduleInWords, span } from '../words';
import { change } from './tasks';

const LIMIT = 25;
const CHARTED = 100;
const SELDOM = 30_000;

export default function TaskPage(): ReactNode {
  const { id = '' } = useParams();
  const { owner } = useWhose();
  const live = useLive(`${id} ${owner ?? ''}`, () => take(api.GET('/api/v1/tasks/{task_id}', { params: { path: { task_id: id }, query: { owner } } })));
  useTitle(live.data?.name ?? 'Task');
  return (
    <Loaded live={live} what="task">
      {(task) => <Shown task={task} reload={live.reload} />}
    </Loaded>
  );
}

function Shown({ task, reload }: { task: Task; reload: () => void }): ReactNode {
  const navigate = useNavigate();
  const { owner, mayChange, creates } = useWhose();
  const { done, failed } = useNotices();
  const [dialog, confirm] = useConfirm();
  const [pausing, setPausing] = useState(false);
  const act = async (action: string, said: string): Promise<void> => {
    try {
      const result = await change(action, task.id, owner);
      if (action === 'run') void navigate(pageOfJob((result as Job).id, owner));
      done(said);
      if (action === 'delete') void navigate(`/tasks${ofOwner(owner)}`);
      else reload();
    } catch (error) {
      failed(`“${task.name}” was not changed`, error);
    }
  };
  const pause = async (reason: string | undefined): Promise<void> => {
    await change('pause', task.id, owner, reason);
    done(`Paused “${task.name}”.`);
    reload();
  };
  const more = (action: string): void => {
    if (action === 'clone') void navigate(`/tasks/new?clone=${task.id}${owner === undefined ? '' : `&owner=${owner}`}`);
    else
      confirm({
        title: `Delete “${task.name}”?`,
        text: 'Its future runs are deleted too. Past runs stay in the history.',
        yes: 'Delete',
        act: () => act('delete', `Deleted “${task.name}”.`),
      });
  };
  const paused = task.status === 'inactive';
  return (
    <SpaceBetween size="l">
      {dialog}
      {pausing && <ReasonDialog {...PAUSE_TASKS} title={`Pause “${task.name}”?`} act={pause} onClose={() => setPausing(false)} />}
      <BreadcrumbGroup
        items={[{ text: 'Tasks', href: `/tasks${ofOwner(owner)}` }, { text: task.name, href: '#' }]}
        onFollow={(event) => {
          event.preventDefault();
          if (event.detail.href !== '#') void navigate(event.detail.href);
        }}
      />
      <Header
        variant="h1"
        description={<><OfWhom />{task.description !== null && <Words>{task.description}</Words>}</>}
        actions={
          <SpaceBetween direction="horizontal" size="xs">
            {mayChange && <Button onClick={() => void act('run', `Started “${task.name}”.`)}>Run now</Button>}
            {mayChange &&
              task.status !== 'ended' &&
              (paused ? (
                <Button onClick={() => void act('resume', `Resumed “${task.name}”.`)}>Resume</Button>
              ) : (
                <Button onClick={() => setPausing(true)}>Pause</Button>
              ))}
            <CopyAs call={() => taskCall(toRequest(fromTask(task, empty('UTC'))), creates?.owner)} />
            <ButtonDropdown items={[{ id: 'clone', text: 'Clone' }, ...(mayChange ? [{ id: 'delete', text: 'Delete' }] : [])]} onItemClick={({ detail }) => more(detail.id)}>
              More
            </ButtonDropdown>
            {mayChange && (
              <Button variant="primary" onClick={() => void navigate(`/tasks/${task.id}/edit${ofOwner(owner)}`)}>
                Edit
              </Button>
            )}
          </SpaceBetween>
        }
      >
        {task.name}
      </Header>
      <Overview task={task} />
      <Container header={<Header variant="h2">Next runs</Header>}>
        <Runs runs={task.next_runs} empty={paused ? 'None: the task is paused.' : 'None.'} />
      </Container>
      <TaskYear task={task} />
      <History task={task} />
      <Container header={<Header variant="h2">Payload</Header>}>
        <Code label="Payload" text={write(task.payload, 2)} />
      </Container>
      <Container header={<Header variant="h2">Notifications</Header>}>
        {task.notifications === null ? <Box color="text-body-secondary">No notifications.</Box> : <Told notifications={task.notifications} />}
        {task.notifications !== null && <KeyValuePairs columns={1} items={[alertsOf(task)]} />}
      </Container>
      <Changes task={task} />
    </SpaceBetween>
  );
}

/** A rule in words, with the field of the API and its value. */
function Rule({ words, term }: { words: string; term: string }): ReactNode {
  return <>{words}<Box variant="p" color="text-body-secondary">{term}</Box></>;
}

export function Overview({ task }: { task: Task }): ReactNode {
  const schedule = task.schedule;
  return (
    <Container header={<Header variant="h2">Overview</Header>}>
      <KeyValuePairs
        columns={4}
        items={[
          {
            label: 'Status',
            value: (
              <>
                <TaskStatus status={task.status} />
                {task.inactive_at !== null && <Box color="text-body-secondary"><Ago at={task.inactive_at} />{task.inactive_reason === null ? '' : <Words>: {task.inactive_reason}</Words>}</Box>}
              </>
            ),
          },
          { label: 'Calls', value: <Words>{callsOfTask(task)}</Words> },
          { label: 'Schedule', value: <>{scheduleInWords(schedule)}{schedule?.cron ? <Box variant="p" color="text-body-secondary">{[schedule.cron].flat().join('; ')}</Box> : null}{typeof schedule?.cron === 'string' && skippedMonths(schedule.cron) !== null ? <StatusIndicator type="warning">{skippedMonths(schedule.cron)}</StatusIndicator> : null}{schedule?.at ? <Box variant="p" color="text-body-secondary"><When at={schedule.at} /></Box> : null}</> },
          { label: 'Time zone', value: schedule === null ? '–' : (schedule.time_zone ?? 'UTC') },
          { label: 'Type', value: task.target === null ? task.type : <><To href={pageOfTarget(task.target)}>{task.target}</To> ({task.type})</> },
          { label: 'Max attempts', value: String(task.max_attempts) },
          { label: labelOf('overlap'), value: <Rule words={overlapInWords(task.overlap)} term={`overlap: ${task.overlap}`} /> },
          { label: labelOf('misfire'), value: task.misfire === null ? '–' : <Rule words={misfireInWords(task.misfire)} term={`misfire: ${task.misfire}`} /> },
          ...details(task),
          { label: 'Changed', value: <><When at={task.updated_at} /> <Box variant="small">version {task.generation}</Box></> },
          { label: 'Id', value: <CopyToClipboard variant="inline" textToCopy={task.id} copyButtonAriaLabel="Copy the id" copySuccessText="Copied" copyErrorText="Not copied" /> },
        ]}
      />
    </Container>
  );
}

/** Who changed it, and when. */
function Changes({ task }: { task: Task }): ReactNode {
  const { owner } = useWhose();
  const pages = usePages(`changes ${task.id}`);
  const live = useLive(
    `changes ${task.id} ${task.generation} ${pages.cursor ?? ''}`,
    () => take(api.GET('/api/v1/me/audit', { params: { query: { object: task.id, limit: 10, cursor: pages.cursor, owner } } })),
    SELDOM,
  );
  return (
    <TrailTable
      live={live}
      pages={pages}
      columns={['at', 'who', 'action', 'changes', 'outcome']}
      header={<Header variant="h2" description="In the last 30 days">Audit trail</Header>}
    />
  );
}

type View = 'all' | 'failed' | 'ahead';

function History({ task }: { task: Task }): ReactNode {
  const { owner } = useWhose();
  const [view, setView] = useState<View>('all');
  const pages = usePages(`${task.id}${view}`);
  const live = useLive(`${task.id}${view}${pages.cursor ?? ''}`, () =>
    take(
      api.GET('/api/v1/tasks/{task_id}/jobs', {
        params: {
          path: { task_id: task.id },
          query: { limit: LIMIT, cursor: pages.cursor, upcoming: view === 'ahead' || undefined, status: view === 'failed' ? 'failed' : undefined, owner },
        },
      }),
    ), 2_000);
  return (
    <SpaceBetween size="l">
      <Charts task={task} />
      <JobTable
        jobs={live.data?.items ?? []}
        loading={live.loading}
        loadingText="Loading runs"
        columns={view === 'ahead' ? ['status', 'scheduled', 'job', 'reason'] : ['status', 'scheduled', 'job', 'started', 'delay', 'duration', 'attempts', 'reason']}
        header={
          <SpaceBetween size="xs">
            <Header variant="h2" actions={
              <SegmentedControl
                label="Which runs"
                selectedId={view}
                options={[{ id: 'all', text: 'History' }, { id: 'failed', text: 'Failures' }, { id: 'ahead', text: 'Upcoming' }]}
                onChange={({ detail }) => setView(detail.selectedId as View)}
              />
            }>
              Runs
            </Header>
            <Stale live={live} />
          </SpaceBetween>
        }
        pagination={<Pagination {...pages.bar(live.data?.cursor)} />}
        empty={<Empty title={live.error?.message ?? (view === 'failed' ? 'No failures' : 'No runs yet')} />}
      />
    </SpaceBetween>
  );
}

/** Delay and duration of the last runs. */
function Charts({ task }: { task: Task }): ReactNode {
  const { owner } = useWhose();
  const live = useLive(`chart ${task.id}`, () => take(api.GET('/api/v1/tasks/{task_id}/jobs', { params: { path: { task_id: task.id }, query: { limit: CHARTED, owner } } })), 10_000);
  return <LastRuns live={live} />;
}

/** The chart; of a single run the figures, since a point alone is not seen. */
export function LastRuns({ live }: { live: Pick<Live<{ items: Job[] }>, 'data' | 'error' | 'loading'> }): ReactNode {
  const started = (live.data?.items ?? []).filter((job) => job.started_at !== null).reverse();
  const delays = started.map((job) => ({ x: new Date(job.scheduled_at), y: job.start_delay_ms ?? 0 }));
  const durations = started.flatMap((job) => {
    const end = endedAt(job);
    return end === null || job.started_at === null ? [] : [{ x: new Date(job.scheduled_at), y: new Date(end).getTime() - new Date(job.started_at).getTime() }];
  });
  const domain: [Date, Date] | undefined = started.length < 2 ? undefined : [new Date(started[0]?.scheduled_at ?? 0), new Date(started.at(-1)?.scheduled_at ?? 0)];
  return (
    <Container header={<Header variant="h2" description={runsInWords(started) ?? undefined}>Delay and duration</Header>}>
      {started.length === 1 ? <KeyValuePairs columns={2} items={[{ label: 'Delay', value: span(delays[0]?.y ?? 0) }, { label: 'Duration', value: durations[0] === undefined ? '–' : span(durations[0].y) }]} /> : <LineChart
        height={200}
        hideFilter
        xScaleType="time"
        xDomain={domain}
        xTitle="Scheduled"
        yTitle="Time"
        ariaLabel="Delay and duration of the last runs"
        series={started.length === 0 ? [] : [
          { title: 'Delay', type: 'line', data: delays, valueFormatter: span, color: COLOURS.high },
          { title: 'Duration', type: 'line', data: durations, valueFormatter: span, color: COLOURS.measure },
        ]}
        i18nStrings={{ yTickFormatter: span, xTickFormatter: clock }}
        statusType={live.loading ? 'loading' : live.error !== null && live.data === null ? 'error' : 'finished'}
        loadingText="Loading"
        errorText={live.error?.message}
        empty={<Empty title="No runs yet" />}
        noMatch={<Empty title="No runs yet" />}
      />}
    </Container>
  );
}

function alertsOf({ alerts }: Task): { label: string; value: ReactNode } {
  if (alerts === null) return { label: 'Alerts', value: <To href="/receivers">Default alerts</To> };
  const rules = rulesOf(alerts);
  return rules.length === 0 ? { label: 'Alerts', value: 'None' } : { label: 'Alerts if a run …', value: rules.join('; ') };
}
