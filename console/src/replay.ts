/** A replay of an ended job: what the API is asked for. Pure. */
import type { Job, Schemas } from './api/client';
import { write } from './exact';

export type ReplayRequest = Schemas['ReplayRequest'];

export interface ReplayDraft {
  payload: unknown;
  /** How long to wait, as typed; empty: start now. */
  delay: string;
  keepOrdering: boolean;
}

/** Only what differs from the job as it was. */
export function toReplay(job: Pick<Job, 'payload'>, { payload, delay, keepOrdering }: ReplayDraft): ReplayRequest {
  return {
    ...(write(payload) !== write(job.payload) && { payload: payload as Record<string, unknown> }),
    ...(delay.trim() !== '' && { delay: delay.trim() }),
    ...(keepOrdering && { keep_ordering: true }),
  };
}
