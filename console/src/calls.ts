/** What a job calls, in short, and the name of its task: lists show them instead of ids. Pure. */
import type { Job } from './api/client';

/** The API adds these two to each job; absent: a version that does not. */
export type Listed<T = Job> = T & { calls?: string | null; task_name?: string | null };

/** The host and path, the function, the queue or the like; of a job that calls nothing its type. */
export function callsOf(job: Listed<Pick<Job, 'type' | 'target'>>): string {
  return job.calls ?? job.target ?? job.type;
}
