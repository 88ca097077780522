/** What a job or a task is doing, as a coloured word. */
import StatusIndicator, { type StatusIndicatorProps } from '@cloudscape-design/components/status-indicator';
import type { ReactNode } from 'react';

import type { Job, Schemas } from '../api/client';
import { lookOfJob } from '../colours';

const TASK_LOOKS: Record<Schemas['TaskStatus'], StatusIndicatorProps.Type> = { active: 'success', inactive: 'stopped', ended: 'info' };
const TASK_WORDS: Record<Schemas['TaskStatus'], string> = { active: 'Active', inactive: 'Paused', ended: 'Ended' };

export const FINAL: readonly Job['status'][] = ['succeeded', 'failed', 'killed', 'cancelled', 'skipped'];

export function isFinal(job: Pick<Job, 'status'>): boolean {
  return FINAL.includes(job.status);
}

/** A job that waits for its worker's call-back is running, without an executor. */
export function JobStatus({ job }: { job: Pick<Job, 'status' | 'late'> }): ReactNode {
  const word = job.status.charAt(0).toUpperCase() + job.status.slice(1);
  return <StatusIndicator {...lookOfJob(job)}>{job.late ? `${word}, late` : word}</StatusIndicator>;
}

export function TaskStatus({ status }: { status: Schemas['TaskStatus'] }): ReactNode {
  return <StatusIndicator type={TASK_LOOKS[status]}>{TASK_WORDS[status]}</StatusIndicator>;
}
