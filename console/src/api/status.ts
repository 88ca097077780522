/** What is wrong now: the answer of `GET /status`, and what mends a problem. The types are written by hand until the generated ones have the route. */
import { api, take, type Schemas } from './client';

export type Scope = 'own' | 'all';
export type Lane = Schemas['Lane'];
export type Breaker = Schemas['Breaker'];

/** The call that mends a problem, and the same as a command. */
export interface Remedy {
  label: string;
  method: string;
  path: string;
  body: object | null;
  command: string;
}

export interface Problem {
  kind: 'scheduler_behind' | 'lane_paused' | 'breaker_open' | 'late_jobs' | 'failures' | 'task_skips' | 'task_paused' | 'user_disabled';
  severity: 'critical' | 'warning' | 'info';
  title: string;
  since: string | null;
  by: string | null;
  by_name: string | null;
  reason: string | null;
  count: number | null;
  lane: Lane | null;
  circuit: string | null;
  owner: string | null;
  owner_name: string | null;
  task: string | null;
  task_name: string | null;
  fingerprint: string | null;
  remedy: Remedy | null;
}

export interface LaneNow {
  lane: Lane;
  paused_at: string | null;
  paused_by: string | null;
  paused_by_name: string | null;
  reason: string | null;
  /** Jobs that are due and wait for it while it is paused; `at_least` if the count was cut. Null: it is not paused. */
  waiting: number | null;
  at_least: boolean;
}

export interface Waiting {
  owner: string;
  owner_name: string | null;
  count: number;
}

/** Failures of the last hour with one cause. */
export interface Failures {
  what: string;
  owner: string;
  owner_name: string | null;
  count: number;
  last_at: string;
  fingerprint: string | null;
  error: string;
  task: string | null;
}

/** A task of whose last runs at least half were skipped. */
export interface Skipping {
  task: string;
  task_name: string;
  owner: string;
  owner_name: string | null;
  skipped: number;
  of: number;
  reason: string;
}

export interface Status {
  at: string;
  scope: Scope;
  well: boolean;
  problems: Problem[];
  more_problems: boolean;
  scheduler: { lag_seconds: number; oldest_open_minute: string | null } | null;
  late: { count: number; at_least: boolean; longest_seconds: number };
  lanes: LaneNow[];
  breakers: Breaker[];
  waiting: Waiting[];
  failures: Failures[];
  skipping: Skipping[];
}

type Answer = { data?: { success: true; data: unknown }; error?: unknown; response: Response };

function request(method: string, path: string, init: object): Promise<Answer> {
  return (api.request as unknown as (method: string, path: string, init: object) => Promise<Answer>)(method, path, init);
}

/** Of one's own jobs and tasks, or of everybody's. Throws ApiError. */
export async function readStatus(scope: Scope): Promise<Status> {
  return (await take(request('get', '/api/v1/status', { params: { query: { scope } } }))) as Status;
}

/** Call what mends a problem. Throws ApiError. */
export async function mend(remedy: Remedy): Promise<void> {
  const path = remedy.path.startsWith('/api/v1/') ? remedy.path : `/api/v1${remedy.path}`; // of this origin in any case
  await take(request(remedy.method.toLowerCase(), path, { params: {}, ...(remedy.body !== null && { body: remedy.body }) }));
}
