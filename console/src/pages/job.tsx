import Alert from '@cloudscape-design/components/alert';
import Box from '@cloudscape-design/components/box';
import BreadcrumbGroup from '@cloudscape-design/components/breadcrumb-group';
import Button from '@cloudscape-design/components/button';
import ColumnLayout from '@cloudscape-design/components/column-layout';
import Container from '@cloudscape-design/components/container';
import CopyToClipboard from '@cloudscape-design/components/copy-to-clipboard';
import ExpandableSection from '@cloudscape-design/components/expandable-section';
import Header from '@cloudscape-design/components/header';
import KeyValuePairs from '@cloudscape-design/components/key-value-pairs';
import ProgressBar from '@cloudscape-design/components/progress-bar';
import SpaceBetween from '@cloudscape-design/components/space-between';
import Steps from '@cloudscape-design/components/steps';
import { useState, type ReactNode } from 'react';
import { useNavigate, useParams } from 'react-router';

import { api, apiError, take, type Job } from '../api/client';
import type { Awaiting } from '../awaited';
import { callsOf } from '../calls';
import { jobCall } from '../code';
import { details } from '../form/fields';
import { asPosted } from '../form/job-draft';
import { pageOfFailures } from '../docs';
import { write } from '../exact';
import { pageOfTarget } from '../form/target';
import { placeInWords } from '../groups';
import { useLive } from '../live';
import { InAws } from '../parts/awaited';
import { CopyAs } from '../parts/copy-as';
import { useNotices } from '../parts/notices';
import { DocsLink } from '../parts/docs-link';
import { LaneAlert, useLanes } from '../parts/lanes';
import { ofOwner, pageOfAnotherJob, pageOfGroup, pageOfJob, pageOfTask } from '../parts/links';
import { Code, Loaded, pretty, Reason, To, useConfirm, useTitle, Words } from '../parts/parts';
import { isFinal, JobStatus } from '../parts/status';
import { useTaskNames } from '../parts/task-names';
import { ReplayDialog } from '../parts/replay-dialog';
import { Told } from '../parts/told';
import { Ago, between, When } from '../parts/time';
import { OfWhom, useWhose } from '../parts/whose';
import { pausedOf } from '../problems';
import { timeline } from '../timeline';
import { whyOf } from '../why';
import { delayInWords } from '../words';

const QUICK = 1_000;
const LIVELY = 2_000;
const SLOW = 10_000;
const SOON = 60_000;

/** Often, while something is about to happen. What its target took over is due when its lease ends, but is heard of before. */
function pace(job: Awaiting | null): number {
  if (job === null) return QUICK;
  if (job.status === 'running' && (job.callback !== null || (job.awaited ?? null) !== null)) return LIVELY;
  return !isFinal(job) && new Date(job.due_at).getTime() - Date.now() < SOON ? QUICK : SLOW;
}

export default function JobPage(): ReactNode {
  const { id = '' } = useParams();
  const { owner } = useWhose();
  const live = useLive(
    `${id} ${owner ?? ''}`,
    () => take(api.GET('/api/v1/jobs/{job_id}', { params: { path: { job_id: id }, query: { owner } } })),
    pace,
  );
  useTitle(`Job ${id}`);
  return (
    <Loaded live={live} what="job">
      {(job) => <Shown job={job} reload={live.reload} />}
    </Loaded>
  );
}

function Shown({ job, reload }: { job: Job; reload: () => void }): ReactNode {
  const navigate = useNavigate();
  const { owner, mayChange, creates } = useWhose();
  const { done, failed } = useNotices();
  const [dialog, confirm] = useConfirm();
  const task = useTaskName(job);
  const [busy, setBusy] = useState(false);
  const [replays, setReplays] = useState(false);
  const act = async (what: 'cancel' | 'retry'): Promise<void> => {
    setBusy(true);
    try {
      const params = { path: { job_id: job.id }, query: { owner } };
      if (what === 'cancel') await take(api.POST('/api/v1/jobs/{job_id}/cancel', { params }));
      else await take(api.POST('/api/v1/jobs/{job_id}/retry', { params }));
      done(what === 'retry' ? 'The job runs again.' : job.status === 'running' ? 'The job was asked to stop.' : 'Cancelled the job.');
      reload();
    } catch (error) {
      failed(what === 'retry' ? 'Not run again' : 'Not cancelled', error);
    } finally {
      setBusy(false);
    }
  };
  const waits = job.status === 'scheduled' || job.status === 'queued';
  const paused = pausedOf(useLanes().lanes).some(({ lane }) => lane === job.lane); // then the reason is the same
  const dead = job.status === 'failed' || job.status === 'killed';
  const another = (how: 'from' | 'retry'): string => pageOfAnotherJob(how, job.id, owner);
  return (
    <SpaceBetween size="l">
      {dialog}
      {replays && <ReplayDialog job={job} owner={owner} onClose={() => setReplays(false)} />}
      <BreadcrumbGroup
        items={[job.task_id === null ? { text: 'Jobs', href: `/jobs${ofOwner(owner)}` } : { text: task ?? 'Task', href: pageOfTask(job.task_id, owner) }, { text: job.id, href: '#' }]}
        onFollow={(event) => {
          event.preventDefault();
          if (event.detail.href !== '#') void navigate(event.detail.href);
        }}
      />
      <Header
        variant="h1"
        description={<OfWhom />}
        actions={
          <SpaceBetween direction="horizontal" size="xs">
            <CopyAs call={() => jobCall(asPosted(job, Date.now()), creates?.owner)} />
            <Button onClick={() => void navigate(another('from'))}>Duplicate</Button>
            {mayChange && !isFinal(job) && (
              <Button
                loading={busy}
                disabled={job.cancel_requested_at !== null}
                onClick={() =>
                  confirm({
                    title: 'Cancel this job?',
                    text: job.status === 'running' ? 'The job is running. It is asked to stop.' : 'The job does not start.',
                    yes: 'Cancel the job',
                    act: () => act('cancel'),
                  })
                }
              >
                Cancel job
              </Button>
            )}
            {mayChange && isFinal(job) && <Button onClick={() => setReplays(true)}>Replay</Button>}
            {mayChange && dead && <Button onClick={() => void navigate(another('retry'))}>Run again with changes</Button>}
            {mayChange && dead && (
              <Button variant="primary" loading={busy} onClick={() => void act('retry')}>
                Run again
              </Button>
            )}
          </SpaceBetween>
        }
      >
        Job <CopyToClipboard variant="inline" textToCopy={job.id} copyButtonAriaLabel="Copy the id" copySuccessText="Copied" copyErrorText="Not copied" />
      </Header>
      {waits && <LaneAlert lane={job.lane} />}
      {!(waits && paused) && <Why job={job} />}
      <Overview job={job} />
      <Predecessors job={job} />
      <InAws job={job} />
      <ColumnLayout columns={2}>
        <Container header={<Header variant="h2">Timeline</Header>}>
          <Steps
            ariaLabel="Timeline"
            steps={timeline(job).map((step) => ({
              status: step.look,
              header: step.what,
              details: <>{step.at !== null && <When at={step.at} exact />}{step.note !== null && <Box color="text-body-secondary">{step.note}</Box>}</>,
            }))}
          />
        </Container>
        <SpaceBetween size="l">
          <Container header={<Header variant="h2">Request</Header>}>
            <Code label="Request" text={write(job.payload, 2)} />
          </Container>
          <Answer job={job} />
        </SpaceBetween>
      </ColumnLayout>
      <Attempts job={job} />
      {(job.task_id === null || job.notifications !== null) && (
        <Container header={<Header variant="h2">Notifications</Header>}>
          {job.notifications === null ? <Box color="text-body-secondary">No notifications.</Box> : <Told notifications={job.notifications} />}
        </Container>
      )}
    </SpaceBetween>
  );
}

/** The name of the task that it is a run of. */
function useTaskName(job: Job): string | undefined {
  const { owner } = useWhose();
  const nameOf = useTaskNames(job.task_id === null ? [] : [{ id: job.task_id, owner }]);
  return job.task_id === null ? undefined : nameOf(job.task_id, owner);
}

/** Why it did not run, or not well. */
function Why({ job }: { job: Job }): ReactNode {
  const { owner } = useWhose();
  const why = whyOf(job);
  if (why === null) return null;
  const type = job.status === 'failed' || job.status === 'killed' ? 'error' : 'info';
  const header = { skipped: 'Why it did not run', cancelled: 'Why it was cancelled', failed: 'Why it failed', killed: 'Why it was killed' }[job.status as string] ?? 'Note';
  return (
    <Alert
      type={type}
      header={header}
      action={job.fingerprint === null ? undefined : <To href={`/dead-letters/${job.fingerprint}${ofOwner(owner)}`}>Similar failures</To>}
    >
      <Reason text={why.error} />
      {why.reason !== null && <Box color="text-body-secondary" fontSize="body-s"><Reason text={why.reason} /></Box>}
    </Alert>
  );
}

/** The jobs and groups that it waits for, and how each of them ended. */
function Predecessors({ job }: { job: Job }): ReactNode {
  const { owner } = useWhose();
  if (job.after.length === 0) return null;
  return (
    <Container header={<Header variant="h2" counter={`(${job.after.length})`}>Starts after</Header>}>
      <ul>
        {job.after.map((each) => (
          <li key={each.job ?? each.group}>
            {each.job === null
              ? <>group <To href={pageOfGroup(each.group ?? '', owner)}>{each.group}</To></>
              : <To href={pageOfJob(each.job, owner)}>{each.job}</To>}
            : {each.outcome ?? 'has not ended'}
            {each.when === 'ended' ? ' (any end)' : ''}
          </li>
        ))}
      </ul>
    </Container>
  );
}

function Overview({ job }: { job: Job }): ReactNode {
  const { owner } = useWhose();
  const task = useTaskName(job);
  const progress = job.progress;
  const begun = isFinal(job) || job.status === 'running';
  return (
    <Container header={<Header variant="h2">Overview</Header>}>
      <SpaceBetween size="m">
        <KeyValuePairs
          columns={4}
          items={[
            { label: 'Status', value: <JobStatus job={job} /> },
            { label: 'Scheduled', value: <When at={job.scheduled_at} exact /> },
            begun ? { label: 'Started', value: <When at={job.started_at} exact /> } : { label: 'Due', value: <Ago at={job.due_at} /> },
            { label: 'Delay', value: delayInWords(begun ? job : { ...job, started_at: null }) },
            { label: 'Duration', value: between(job.started_at, job.completed_at ?? job.failed_at ?? job.killed_at ?? job.cancelled_at) },
            { label: 'Attempts', value: `${job.attempts.length} of ${job.max_attempts}` },
            { label: 'Calls', value: <Words>{callsOf(job)}</Words> },
            { label: 'Type', value: job.target === null ? job.type : <><To href={pageOfTarget(job.target)}>{job.target}</To> ({job.type})</> },
            { label: 'Queue', value: job.lane },
            { label: 'Task', value: job.task_id === null ? '–' : <To href={pageOfTask(job.task_id, owner)}><Words>{task ?? job.task_id}</Words></To> },
            ...(job.replay_of === null ? [] : [{ label: 'Replay of', value: <To href={pageOfJob(job.replay_of, owner)}>{job.replay_of}</To> }]),
            ...(job.group_id === null ? [] : [{ label: 'Group', value: <><To href={pageOfGroup(job.group_id, owner)}>{job.group_id}</To><Box color="text-body-secondary" fontSize="body-s">{placeInWords(job)}</Box></> }]),
            ...details(job),
            ...(job.expires_at === null ? [] : [{ label: 'Expires', value: <When at={job.expires_at} /> }]),
            ...(job.lease_until === null ? [] : [{ label: 'Lease expires', value: <Ago at={job.lease_until} /> }]),
            ...(job.heartbeat_at === null ? [] : [{ label: 'Last heartbeat', value: <Ago at={job.heartbeat_at} /> }]),
            ...(job.redrives === 0 ? [] : [{ label: 'Run again', value: <>{job.redrives} × <Ago at={job.redriven_at} /></> }]),
          ]}
        />
        {progress !== null && (
          <ProgressBar
            label="Progress reported by the worker"
            value={(progress.fraction ?? 0) * 100}
            additionalInfo={progress.message ?? undefined}
            resultText={`${Math.round((progress.fraction ?? 0) * 100)} %`}
            status={isFinal(job) ? (job.status === 'succeeded' ? 'success' : 'error') : 'in-progress'}
          />
        )}
      </SpaceBetween>
    </Container>
  );
}

function Answer({ job }: { job: Job }): ReactNode {
  const last = job.attempts.at(-1);
  const reported = job.callback !== null && job.response !== null; // then the output is its worker's, and not what the target answered
  const body = reported ? job.response?.body : (job.response?.body ?? job.output);
  return (
    <Container header={<Header variant="h2">{job.response === null ? 'Output' : `Response: ${job.response.status}`}</Header>}>
      <SpaceBetween size="s">
        {job.response !== null && (
          <ExpandableSection headerText={`Headers (${Object.keys(job.response.headers).length})`}>
            <Code label="Response headers" text={Object.entries(job.response.headers).map(([name, value]) => `${name}: ${value}`).join('\n')} />
          </ExpandableSection>
        )}
        {body === null || body === undefined || body === '' ? <Box color="text-body-secondary">None{isFinal(job) ? '.' : ' yet.'}</Box> : <Code label={reported ? 'Answer' : 'Output'} text={pretty(body)} />}
        {reported && job.output !== null && (
          <>
            <Box variant="h3">Output reported by the worker</Box>
            <Code label="Output" text={pretty(job.output)} />
          </>
        )}
        {last !== undefined && body !== null && body !== '' && last.output_kept === 'whole' && <Whole job={job} number={last.number} what="output" />}
      </SpaceBetween>
    </Container>
  );
}

function Attempts({ job }: { job: Job }): ReactNode {
  if (job.attempts.length === 0) return null;
  return (
    <Container header={<Header variant="h2" description="The last five attempts, latest first.">Attempts and logs</Header>}>
      <SpaceBetween size="s">
        {[...job.attempts].reverse().map((attempt, index) => (
          <ExpandableSection
            key={attempt.number}
            defaultExpanded={index === 0}
            headerText={`Attempt ${attempt.number}: ${attempt.outcome}${attempt.failure === null ? '' : ` (${attempt.failure.kind})`}`}
          >
            <SpaceBetween size="s">
              <KeyValuePairs
                columns={4}
                items={[
                  { label: 'Claimed', value: <When at={attempt.picked_at} exact /> },
                  { label: 'Started', value: <When at={attempt.started_at} exact /> },
                  { label: 'Ended', value: <When at={attempt.ended_at} exact /> },
                  { label: 'Duration', value: between(attempt.started_at, attempt.ended_at) },
                ]}
              />
              {attempt.failure !== null && <Alert type="error" header={attempt.failure.kind}><Words>{attempt.failure.message}</Words><div><DocsLink href={pageOfFailures()}>About failures of attempts</DocsLink></div></Alert>}
              <Box variant="h4">Log</Box>
              {attempt.log ? <Code label={`Log of attempt ${attempt.number}`} text={attempt.log} /> : <Box color="text-body-secondary">The attempt logged nothing.</Box>}
              {attempt.log && attempt.output_kept === 'whole' && <Whole job={job} number={attempt.number} what="log" />}
              {index > 0 && attempt.output !== null && <><Box variant="h4">Output</Box><Code label={`Output of attempt ${attempt.number}`} text={pretty(attempt.output)} /></>}
            </SpaceBetween>
          </ExpandableSection>
        ))}
      </SpaceBetween>
    </Container>
  );
}

/** All of it, fetched only when asked for: it may be a megabyte. */
function Whole({ job, number, what }: { job: Job; number: number; what: 'output' | 'log' }): ReactNode {
  const { owner } = useWhose();
  const [text, setText] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const { failed } = useNotices();
  const load = async (): Promise<void> => {
    setBusy(true);
    try {
      const params = { path: { job_id: job.id, number }, query: { owner } };
      const found = await take(
        what === 'output'
          ? api.GET('/api/v1/jobs/{job_id}/attempts/{number}/output', { params })
          : api.GET('/api/v1/jobs/{job_id}/attempts/{number}/log', { params }),
      );
      setText(found.complete ? found.text : `${found.text}\n… (the rest was not stored)`);
    } catch (error) {
      failed(`The full ${what} is not available`, apiError(error));
    } finally {
      setBusy(false);
    }
  };
  if (text !== null) return <Code label={`Full ${what}`} text={text} />;
  return <Button variant="inline-link" loading={busy} onClick={() => void load()}>Show the full {what}</Button>;
}
