/** A table of jobs, wherever jobs are listed. */
import Table, { type TableProps } from '@cloudscape-design/components/table';
import type { ReactNode } from 'react';

import type { Job } from '../api/client';
import { whyOf } from '../why';
import { span } from '../words';
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

type Column = 'scheduled' | 'job' | 'status' | 'type' | 'task' | 'started' | 'delay' | 'duration' | 'attempts' | 'reason' | 'owner';
type Row = Owned<Job>;
type NameOf = (id: string, user: string | undefined) => string | undefined;

/** The columns of the jobs of `user`, or of each job's own owner. */
function definitions(user: string | undefined, nameOf: NameOf): Record<Column, TableProps.ColumnDefinition<Row>> {
  const ownerOf = (job: Row): string | undefined => job.owner?.id ?? user;
  return {
    scheduled: { id: 'scheduled', header: 'Scheduled', cell: (job) => <When at={job.scheduled_at} exact /> },
    owner: { id: 'owner', header: 'Owner', cell: (job) => job.owner?.username ?? '–' },
    job: { id: 'job', header: 'Job', cell: (job) => <To href={pageOfJob(job.id, ownerOf(job))}>{job.id}</To>, isRowHeader: true },
    status: { id: 'status', header: 'Status', cell: (job) => <JobStatus job={job} /> },
    type: { id: 'type', header: 'Type', cell: (job) => job.target ?? job.type },
    task: {
      id: 'task',
      header: 'Task',
      cell: (job) => (job.task_id === null ? '–' : <To href={pageOfTask(job.task_id, ownerOf(job))}><Words>{nameOf(job.task_id, ownerOf(job)) ?? job.task_id}</Words></To>),
      maxWidth: 260,
    },
    started: { id: 'started', header: 'Started', cell: (job) => <When at={job.started_at} exact /> },
    delay: { id: 'delay', header: 'Delay', cell: (job) => (job.start_delay_ms === null ? '–' : span(job.start_delay_ms)) },
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

type Props = Omit<TableProps<Row>, 'items' | 'columnDefinitions'> & { jobs: readonly Row[]; columns: Column[] };

export function JobTable({ jobs, columns, ...rest }: Props): ReactNode {
  const { user } = useWhose();
  const named = columns.includes('task') ? jobs.flatMap((job) => (job.task_id === null ? [] : [{ id: job.task_id, user: job.owner?.id ?? user }])) : [];
  const known = definitions(user, useTaskNames(named));
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
