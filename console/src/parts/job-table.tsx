/** A table of jobs, wherever jobs are listed. */
import Box from '@cloudscape-design/components/box';
import Table, { type TableProps } from '@cloudscape-design/components/table';
import type { ReactNode } from 'react';

import type { Job } from '../api/client';
import { callsOf, type Listed } from '../calls';
import { whyOf } from '../why';
import { delayInWords } from '../words';
import { pageOfJob, pageOfTask } from './links';
import { Reason, To, Words } from './parts';
import { JobStatus } from './status';
import { useTaskNames } from './task-names';
import { between, When } from './time';
import { useWhose, type Owned } from './whose';

/** When a job ended, whichever way. */
export function endedAt(job: Job): string | null {
  return job.completed_at ?? job.failed_at ?? job.killed_at ?? job.cancelled_at ?? job.skipped_at;
}

type Column = 'number' | 'scheduled' | 'job' | 'status' | 'calls' | 'task' | 'started' | 'delay' | 'duration' | 'attempts' | 'reason' | 'owner';
type Row = Owned<Listed>;
type NameOf = (id: string, owner: string | undefined) => string | undefined;

/** The columns of the jobs of `owner`, or of each job's own owner. */
function definitions(owner: string | undefined, nameOf: NameOf, columns: readonly Column[]): Record<Column, TableProps.ColumnDefinition<Row>> {
  const ownerOf = (job: Row): string | undefined => job.owner?.id ?? owner;
  return {
    scheduled: { id: 'scheduled', header: 'Scheduled', cell: (job) => <When at={job.scheduled_at} exact /> },
    number: { id: 'number', header: 'Number', cell: (job) => job.group_member ?? '–' },
    owner: { id: 'owner', header: 'Owner', cell: (job) => job.owner?.username ?? '–' },
    job: { id: 'job', header: 'Job', cell: (job) => <To href={pageOfJob(job.id, ownerOf(job))}>{job.id}</To>, isRowHeader: !columns.includes('calls') },
    status: { id: 'status', header: 'Status', cell: (job) => <JobStatus job={job} />, minWidth: 120 },
    calls: {
      id: 'calls',
      header: 'Calls',
      cell: (job) => <><To href={pageOfJob(job.id, ownerOf(job))}><Words>{callsOf(job)}</Words></To>{job.key !== null && <Box color="text-body-secondary" fontSize="body-s"><Words>{job.key}</Words></Box>}</>,
      isRowHeader: true,
      minWidth: 170,
      maxWidth: 320,
    },
    task: {
      id: 'task',
      header: 'Task',
      cell: (job) => (job.task_id === null ? '–' : <To href={pageOfTask(job.task_id, ownerOf(job))}><Words>{job.task_name ?? nameOf(job.task_id, ownerOf(job)) ?? job.task_id}</Words></To>),
      maxWidth: 260,
    },
    started: { id: 'started', header: 'Started', cell: (job) => <When at={job.started_at} exact /> },
    delay: { id: 'delay', header: 'Delay', cell: (job) => inLines(delayInWords(job)) },
    duration: { id: 'duration', header: 'Duration', cell: (job) => between(job.started_at, endedAt(job)) },
    attempts: { id: 'attempts', header: 'Attempts', cell: (job) => job.attempts.length || '–' },
    reason: {
      id: 'reason',
      header: 'Reason',
      cell: (job) => {
        const why = whyOf(job);
        return why === null ? '–' : <span title={why.reason ?? undefined}><Reason text={why.error} /></span>;
      },
      maxWidth: 360,
    },
  };
}

/** In two lines if it names the first start: a cell does not wrap by itself. */
function inLines(delay: string): ReactNode {
  const [, first, rest] = /^(first start) (.*)$/.exec(delay) ?? [];
  return first === undefined ? delay : <>{first}<br />{rest}</>;
}

type Props = Omit<TableProps<Row>, 'items' | 'columnDefinitions'> & { jobs: readonly Row[]; columns: Column[] };

export function JobTable({ jobs, columns, ...rest }: Props): ReactNode {
  const { owner } = useWhose();
  const named = columns.includes('task') ? jobs.flatMap((job) => (job.task_id === null || job.task_name ? [] : [{ id: job.task_id, owner: job.owner?.id ?? owner }])) : [];
  const known = definitions(owner, useTaskNames(named), columns);
  return (
    <Table
      {...rest}
      items={jobs}
      trackBy="id"
      contentDensity="compact"
      stickyHeader
      columnDefinitions={columns.map((name) => known[name])}
    />
  );
}
