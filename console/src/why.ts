/** Why a job did not end well: what its last attempt met, and what the scheduler made of it. Pure. */
import type { Job } from './api/client';

type Ended = Pick<Job, 'status' | 'reason'> & { attempts: readonly Pick<Job['attempts'][number], 'outcome' | 'failure'>[] };

export interface Why {
  /** The error itself, or the scheduler's reason if no attempt met one. */
  error: string;
  /** What the scheduler made of it. Null if that is all there is. */
  reason: string | null;
}

/** Null if there is nothing to explain. */
export function whyOf(job: Ended): Why | null {
  if (job.status === 'succeeded') return null;
  const failure = job.status === 'failed' || job.status === 'killed' ? (job.attempts.at(-1)?.failure ?? null) : null;
  if (failure === null) return job.reason === null ? null : { error: job.reason, reason: null };
  return { error: failure.message, reason: job.reason };
}
