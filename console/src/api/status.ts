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

/** The path of a remedy below this origin. `owner`: whose status it is of; a path of the stage itself names none. */
export function pathOf({ path }: Pick<Remedy, 'path'>, owner: string | undefined): string {
  const whole = path.startsWith('/api/v1/') ? path : `/api/v1${path}`;
  if (owner === undefined || /[?&]owner=/.test(whole) || /^\/api\/v1\/(system|users|targets)\b/.test(whole)) return whole;
  return `${whole}${whole.includes('?') ? '&' : '?'}owner=${encodeURIComponent(owner)}`;
}

/** Call what mends a problem of the owner, or of the viewer. Throws ApiError. */
export async function mend(remedy: Remedy, owner: string | undefined): Promise<void> {
  const request = api.request as unknown as (method: string, path: string, init: object) => Promise<Answer>; // the types know no path of an answer
  await take(request(remedy.method.toLowerCase(), pathOf(remedy, owner), { params: {}, ...(remedy.body !== null && { body: remedy.body }) }));
}
