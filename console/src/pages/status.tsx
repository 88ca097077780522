import Alert, { type AlertProps } from '@cloudscape-design/components/alert';
import Box from '@cloudscape-design/components/box';
import Button from '@cloudscape-design/components/button';
import Container from '@cloudscape-design/components/container';
import CopyToClipboard from '@cloudscape-design/components/copy-to-clipboard';
import Header from '@cloudscape-design/components/header';
import KeyValuePairs from '@cloudscape-design/components/key-value-pairs';
import SpaceBetween from '@cloudscape-design/components/space-between';
import StatusIndicator from '@cloudscape-design/components/status-indicator';
import Table, { type TableProps } from '@cloudscape-design/components/table';
import { useState, type ReactNode } from 'react';

import { mend, readStatus, type Failures, type LaneNow, type Problem, type Skipping, type Status, type Waiting } from '../api/status';
import { useMe } from '../api/session';
import { useLive } from '../live';
import { useLanes } from '../parts/lanes';
import { ofOwner, pageOfTask } from '../parts/links';
import { useNotices } from '../parts/notices';
import { Empty, Loaded, Reason, To, useConfirm, useTitle, Words } from '../parts/parts';
import { ScopeChoice, useScope } from '../parts/scope';
import { Ago } from '../parts/time';
import { bySeverity, jobs, mayMend, pageOfProblem, questionOf, timesOf } from '../problems';
import { plain, span } from '../words';

const OFTEN = 5_000;
const LOOKS: Record<Problem['severity'], AlertProps.Type> = { critical: 'error', warning: 'warning', info: 'info' };

/** What is wrong now, each with what mends it; and how the lanes, the owners and the targets are. */
export default function StatusPage(): ReactNode {
  useTitle('What is wrong now');
  const { scope, owner } = useScope();
  const live = useLive(`status ${scope} ${owner ?? ''}`, () => readStatus(scope, owner), OFTEN);
  const lanes = useLanes();
  const after = (): void => {
    live.reload();
    lanes.reload();
  };
  return (
    <SpaceBetween size="l">
      <Header
        variant="h1"
        description={scope === 'all' ? 'The whole stage.' : owner === undefined ? 'Your jobs and tasks.' : 'The jobs and tasks of the owner.'}
        actions={
          <SpaceBetween direction="horizontal" size="xs">
            <ScopeChoice />
            <Button iconName="refresh" ariaLabel="Refresh" onClick={live.reload} />
          </SpaceBetween>
        }
      >
        What is wrong now
      </Header>
      <Loaded live={live} what="status">
        {(status) => <Shown status={status} after={after} />}
      </Loaded>
    </SpaceBetween>
  );
}

function Shown({ status, after }: { status: Status; after: () => void }): ReactNode {
  return (
    <SpaceBetween size="l">
      {status.problems.length === 0 ? (
        <Alert type="success" header="Nothing is wrong" />
      ) : (
        <SpaceBetween size="s">
          {bySeverity(status.problems).map((problem) => (
            <One key={[problem.kind, problem.lane, problem.circuit, problem.owner, problem.task, problem.fingerprint].join(' ')} problem={problem} after={after} />
          ))}
          {status.more_problems && <Box color="text-body-secondary">There are more problems: these are the most severe.</Box>}
        </SpaceBetween>
      )}
      <Overview status={status} />
      <Lanes lanes={status.lanes} />
      {status.failures.length > 0 && <Failed failures={status.failures} />}
      {status.waiting.length > 0 && <Owners waiting={status.waiting} />}
      {status.skipping.length > 0 && <Skips skipping={status.skipping} />}
    </SpaceBetween>
  );
}

function One({ problem, after }: { problem: Problem; after: () => void }): ReactNode {
  const me = useMe();
  const [dialog, confirm] = useConfirm();
  const [busy, setBusy] = useState(false);
  const { done, failed } = useNotices();
  const { remedy } = problem;
  const page = pageOfProblem(problem, me.id);
  const act = async (): Promise<void> => {
    if (remedy === null) return;
    setBusy(true);
    try {
      await mend(remedy);
      done(`${remedy.label}: done.`);
      after();
    } catch (error) {
      failed('Nothing was changed', error);
    } finally {
      setBusy(false);
    }
  };
  const press = (): void => {
    const question = questionOf(problem);
    if (question === null) void act();
    else confirm({ title: `${remedy?.label ?? ''}?`, text: question, yes: remedy?.label ?? '', act });
  };
  return (
    <>
      {dialog}
      <Alert
        type={LOOKS[problem.severity]}
        header={<Reason text={plain(problem.title)} />}
        action={remedy !== null && mayMend(problem, me) ? <Button loading={busy} ariaLabel={`${remedy.label}: ${plain(problem.title)}`} onClick={press}>{remedy.label}</Button> : undefined}
      >
        <SpaceBetween size="xxs">
          <Background problem={problem} />
          {(page !== null || remedy !== null) && (
            <SpaceBetween direction="horizontal" size="s">
              {page !== null && <To href={page.href}>{page.text}</To>}
              {remedy !== null && <Words><CopyToClipboard variant="inline" textToCopy={remedy.command} copyButtonAriaLabel="Copy the command" copySuccessText="Copied" copyErrorText="Not copied" /></Words>}
            </SpaceBetween>
          )}
        </SpaceBetween>
      </Alert>
    </>
  );
}

/** Since when, by whom and why. */
function Background({ problem }: { problem: Problem }): ReactNode {
  const { kind, by, by_name, owner, owner_name, reason } = problem;
  const paused = kind === 'lane_paused' || kind === 'task_paused';
  const parts = [
    ...timesOf(problem).map(({ label, at }) => <>{label} <Ago at={at} /></>),
    ...(by === null ? [] : [<>by {by_name ?? by}</>]),
    ...(owner === null ? [] : [<>owner {owner_name ?? owner}</>]),
    ...(reason !== null && kind !== 'failures' ? [<>reason: <Reason text={reason} /></>] : paused ? [<>no reason was given</>] : []),
  ];
  return parts.length === 0 ? null : <div>{parts.map((part, at) => <span key={at}>{at > 0 && ' · '}{part}</span>)}</div>;
}

function Overview({ status: { scheduler, late } }: { status: Status }): ReactNode {
  return (
    <Container header={<Header variant="h2">Now</Header>}>
      <KeyValuePairs
        columns={4}
        items={[
          { label: 'Late now', value: late.count === 0 ? 'No jobs' : jobs(late.count, late.at_least) },
          { label: 'Longest delay', value: late.count === 0 ? '–' : span(late.longest_seconds * 1_000) },
          ...(scheduler === null
            ? []
            : [
                { label: 'Scheduler behind by', value: span(scheduler.lag_seconds * 1_000) },
                { label: 'Oldest open minute', value: scheduler.oldest_open_minute === null ? '–' : <Ago at={scheduler.oldest_open_minute} /> },
              ]),
        ]}
      />
    </Container>
  );
}

function Lanes({ lanes }: { lanes: readonly LaneNow[] }): ReactNode {
  return (
    <Rows<LaneNow>
      title="Queues"
      description="Waiting: jobs that are due, whether the queue is paused or not."
      items={lanes}
      id="lane"
      columns={[
        { id: 'lane', header: 'Queue', cell: (lane) => lane.lane, isRowHeader: true },
        { id: 'state', header: 'State', cell: (lane) => <StatusIndicator type={lane.paused_at === null ? 'success' : 'stopped'}>{lane.paused_at === null ? 'Running' : 'Paused'}</StatusIndicator>, minWidth: 120 },
        { id: 'waiting', header: 'Waiting', cell: (lane) => jobs(lane.waiting, lane.at_least) },
        { id: 'since', header: 'Paused', cell: (lane) => <Ago at={lane.paused_at} /> },
        { id: 'by', header: 'By', cell: (lane) => (lane.paused_at === null ? '–' : (lane.paused_by_name ?? lane.paused_by ?? '–')) },
        { id: 'reason', header: 'Reason', cell: (lane) => <Words>{(lane.paused_at === null ? null : lane.reason) ?? '–'}</Words> },
      ]}
    />
  );
}

function Failed({ failures }: { failures: readonly Failures[] }): ReactNode {
  const me = useMe().id;
  return (
    <Rows<Failures>
      title="Failures of the last hour"
      items={failures}
      id={(each) => `${each.owner} ${each.fingerprint} ${each.what}`}
      columns={[
        { id: 'what', header: 'What', cell: (each) => <To href={`/dead-letters${each.fingerprint === null ? '' : `/${each.fingerprint}`}${ofOwner(each.owner === me ? undefined : each.owner)}`}><Words>{each.what}</Words></To>, isRowHeader: true },
        { id: 'count', header: 'Jobs', cell: (each) => each.count.toLocaleString('en') },
        { id: 'error', header: 'Error', cell: (each) => <Reason text={each.error} /> },
        { id: 'owner', header: 'Owner', cell: (each) => each.owner_name ?? each.owner },
        { id: 'last', header: 'Last', cell: (each) => <Ago at={each.last_at} /> },
      ]}
    />
  );
}

function Owners({ waiting }: { waiting: readonly Waiting[] }): ReactNode {
  const me = useMe().id;
  return (
    <Rows<Waiting>
      title="Waiting, by owner"
      description="Jobs that are due and wait, most first."
      items={waiting}
      id="owner"
      columns={[
        { id: 'owner', header: 'Owner', cell: (each) => <To href={`/jobs${ofOwner(each.owner === me ? undefined : each.owner)}`}><Words>{each.owner_name ?? each.owner}</Words></To>, isRowHeader: true },
        { id: 'count', header: 'Jobs', cell: (each) => each.count.toLocaleString('en') },
      ]}
    />
  );
}

function Skips({ skipping }: { skipping: readonly Skipping[] }): ReactNode {
  const me = useMe().id;
  return (
    <Rows<Skipping>
      title="Tasks that skip runs"
      items={skipping}
      id="task"
      columns={[
        { id: 'task', header: 'Task', cell: (each) => <To href={pageOfTask(each.task, each.owner === me ? undefined : each.owner)}><Words>{each.task_name}</Words></To>, isRowHeader: true },
        { id: 'skipped', header: 'Skipped', cell: (each) => `${each.skipped} of ${each.of}` },
        { id: 'reason', header: 'Reason', cell: (each) => <Reason text={each.reason} /> },
        { id: 'owner', header: 'Owner', cell: (each) => each.owner_name ?? each.owner },
      ]}
    />
  );
}

interface RowsProps<T> {
  title: string;
  description?: string;
  items: readonly T[];
  id: TableProps<T>['trackBy'];
  columns: TableProps.ColumnDefinition<T>[];
}

function Rows<T>({ title, description, items, id, columns }: RowsProps<T>): ReactNode {
  return (
    <Table<T>
      contentDensity="compact"
      wrapLines
      items={items}
      trackBy={id}
      ariaLabels={{ tableLabel: title, selectionGroupLabel: '' }}
      header={<Header variant="h2" description={description}>{title}</Header>}
      empty={<Empty title="None" />}
      columnDefinitions={columns}
    />
  );
}
