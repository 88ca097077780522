/** A table of jobs, wherever jobs are listed. */
import Table, { type TableProps } from '@cloudscape-design/components/table';
import type { ReactNode } from 'react';

import type { Job } from '../api/client';
import { span } from '../words';
import { To } from './parts';
import { JobStatus } from './status';
import { between, When } from './time';

/** When a job ended, whichever way. */
export function endedAt(job: Job): string | null {
  return job.completed_at ?? job.failed_at ?? job.killed_at ?? job.cancelled_at ?? job.skipped_at;
}

export const COLUMNS: Record<'scheduled' | 'job' | 'status' | 'type' | 'task' | 'started' | 'delay' | 'duration' | 'attempts' | 'reason', TableProps.ColumnDefinition<Job>> = {
  scheduled: { id: 'scheduled', header: 'Planned', cell: (job) => <When at={job.scheduled_at} exact /> },
  job: { id: 'job', header: 'Job', cell: (job) => <To href={`/jobs/${job.id}`}>{job.id}</To>, isRowHeader: true },
  status: { id: 'status', header: 'Status', cell: (job) => <JobStatus job={job} /> },
  type: { id: 'type', header: 'Type', cell: (job) => job.type },
  task: { id: 'task', header: 'Task', cell: (job) => (job.task_id === null ? '–' : <To href={`/tasks/${job.task_id}`}>{job.task_id}</To>) },
  started: { id: 'started', header: 'Started', cell: (job) => <When at={job.started_at} exact /> },
  delay: { id: 'delay', header: 'Delay', cell: (job) => (job.start_delay_ms === null ? '–' : span(job.start_delay_ms)) },
  duration: { id: 'duration', header: 'Duration', cell: (job) => between(job.started_at, endedAt(job)) },
  attempts: { id: 'attempts', header: 'Attempts', cell: (job) => job.attempts.length || '–' },
  reason: { id: 'reason', header: 'Reason', cell: (job) => job.reason ?? '–', maxWidth: 360 },
};

type Props = Omit<TableProps<Job>, 'items' | 'columnDefinitions'> & { jobs: Job[]; columns: (keyof typeof COLUMNS)[] };

export function JobTable({ jobs, columns, ...rest }: Props): ReactNode {
  return (
    <Table
      {...rest}
      items={jobs}
      trackBy="id"
      contentDensity="compact"
      stickyHeader
      columnDefinitions={columns.map((name) => COLUMNS[name])}
    />
  );
}
