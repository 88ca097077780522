/** What is wrong now: the answer of `GET /status`, and what mends a problem. */
import { api, take, type Schemas } from './client';

export type Status = Schemas['CurrentStatus'];
export type Scope = Status['scope'];
export type Problem = Schemas['Problem'];
export type Remedy = Schemas['Remedy'];
export type LaneNow = Schemas['LaneStatus'];
export type Waiting = Schemas['OwnerWait'];
export type Failures = Schemas['Failures'];
export type Skipping = Schemas['Skips'];

type Answer = { data?: { success: true; data: unknown }; error?: unknown; response: Response };

/** Of one's own jobs and tasks, of a team's, or of everybody's. Throws ApiError. */
export async function readStatus(scope: Scope, owner?: string): Promise<Status> {
  return take(api.GET('/api/v1/status', { params: { query: { scope, owner } } }));
}

/** Call what mends a problem. Throws ApiError. */
export async function mend(remedy: Remedy): Promise<void> {
  const path = remedy.path.startsWith('/api/v1/') ? remedy.path : `/api/v1${remedy.path}`; // of this origin in any case
  const request = api.request as unknown as (method: string, path: string, init: object) => Promise<Answer>; // the types know no path of an answer
  await take(request(remedy.method.toLowerCase(), path, { params: {}, ...(remedy.body !== null && { body: remedy.body }) }));
}
