/** What the page of what is wrong says of a problem, and which lanes the pages tell about. Pure. */
import type { LaneNow, Problem, Status } from './api/status';
import type { Me } from './api/session';
import { mayChangeOf } from './owners';

/** Most severe first; those of one severity in the order of the API. */
const ORDER: Record<Problem['severity'], number> = { critical: 0, warning: 1, info: 2 };

export function bySeverity(problems: readonly Problem[]): Problem[] {
  return [...problems].sort((one, other) => ORDER[one.severity] - ORDER[other.severity]);
}

/** The page that shows more about it; null: there is none. `me` is the viewer's id. */
export function pageOfProblem(problem: Problem, me: string): { href: string; text: string } | null {
  const of = problem.owner === null || problem.owner === me ? '' : `?owner=${encodeURIComponent(problem.owner)}`;
  switch (problem.kind) {
    case 'failures':
      return problem.fingerprint === null ? { href: `/dead-letters${of}`, text: 'Failed jobs' } : { href: `/dead-letters/${problem.fingerprint}${of}`, text: 'Failed jobs' };
    case 'task_skips':
    case 'task_paused':
      return problem.task === null ? null : { href: `/tasks/${problem.task}${of}`, text: 'Task' };
    case 'late_jobs':
      return { href: `/jobs${of}`, text: 'Jobs' };
    case 'breaker_open':
      return { href: `/jobs${of === '' ? '?view=ahead' : `${of}&view=ahead`}`, text: 'Waiting jobs' };
    case 'user_disabled':
      return { href: '/users', text: 'Users' };
    default:
      return null;
  }
}

/** Whether the API lets the viewer do what mends it. */
export function mayMend(problem: Problem, me: Me): boolean {
  if (problem.remedy === null || problem.remedy.method.toUpperCase() === 'GET') return false;
  if (me.role === 'administrator') return true;
  const ofTheStage = /^(\/api\/v1)?\/(system|users|targets)\b/.test(problem.remedy.path);
  return !ofTheStage && mayChangeOf(problem.owner ?? undefined, me);
}

/** When it happened, each time with its label. `last_at` is of failures; absent: a version of the API without it. */
export function timesOf({ kind, since, last_at: last }: Pick<Problem, 'kind' | 'since'> & { last_at?: string | null }): { label: string; at: string }[] {
  const ofFailures = kind === 'failures';
  const times = since === null ? [] : [{ label: ofFailures ? 'First failure' : 'Since', at: since }];
  return ofFailures && last ? [...times, { label: times.length === 0 ? 'Last failure' : 'last failure', at: last }] : times;
}

/** What is asked before it is done. Null: it is done at once, since it starts nothing by itself or can be taken back. */
export function questionOf(problem: Problem): string | null {
  switch (problem.kind) {
    case 'lane_paused':
      return problem.count === null || problem.count === 0 ? null : `${jobs(problem.count)} ${problem.count === 1 ? 'waits and starts' : 'wait and start'} at once.`;
    case 'task_paused':
      return null;
    case 'breaker_open':
      return 'Its waiting jobs start within a second. If the target still fails, five more failures open the breaker again.';
    case 'failures':
      // A redrive takes all jobs of the error: its label has their number if they called several places, `count` is of one.
      if (problem.remedy?.label.endsWith('places')) return `${problem.remedy.label}, with all their attempts. Correct the cause first.`;
      return `${problem.count === null ? 'They run' : `${jobs(problem.count)} ${problem.count === 1 ? 'runs' : 'run'}`} again, with all their attempts. Correct the cause first.`;
    case 'task_skips':
      return 'A run that falls due while another one runs then waits for it. This changes the task.';
    case 'user_disabled':
      return 'The user can sign in again, and the waiting jobs start.';
    default:
      return 'This changes the stage.';
  }
}

export function jobs(count: number, atLeast = false): string {
  return `${atLeast ? 'at least ' : ''}${count.toLocaleString('en')} job${count === 1 ? '' : 's'}`;
}

/** The lanes that no job starts from. */
export function pausedOf(lanes: readonly LaneNow[]): LaneNow[] {
  return lanes.filter((lane) => lane.paused_at !== null);
}

const BEHIND = 180; // seconds; a healthy minute closes within two or three

export interface Health {
  look: 'success' | 'warning' | 'loading';
  word: string;
}

/** What is wrong with the start of jobs, in short. "On time" alone if nothing is. */
export function healthOf(behind: number, { lanes, late }: Pick<Backlog, 'lanes' | 'late'>): Health[] {
  const wrong = [
    ...(behind > BEHIND ? ['Behind'] : []),
    ...pausedOf(lanes).map(({ lane }) => `Queue ${lane} paused`),
    ...(late.count === 0 ? [] : [`${jobs(late.count, late.at_least)} late`]),
  ];
  if (wrong.length > 0) return wrong.map((word) => ({ look: 'warning', word }));
  return [lanes.length === 0 ? { look: 'loading', word: 'Not read yet' } : { look: 'success', word: 'On time' }];
}

/** What was read of the lanes. */
export interface Backlog {
  lanes: readonly LaneNow[];
  late: Pick<Status['late'], 'count' | 'at_least'>;
  draining: readonly Draining[];
}

/** A resumed lane of which jobs still wait. */
export interface Draining {
  lane: string;
  left: number;
  at_least: boolean;
}

/** The lanes that drain: paused `before`, or with fewer jobs than `before`, which is not to be seen of jobs that were not all counted. A job that waits on may wait for something else. */
export function drainingOf(before: Backlog, lanes: readonly LaneNow[]): Draining[] {
  const most = new Map([...before.draining.map(({ lane, left }) => [lane, left] as const), ...pausedOf(before.lanes).map(({ lane }) => [lane, Infinity] as const)]);
  return lanes
    .filter(({ lane, paused_at, waiting, at_least }) => paused_at === null && waiting > 0 && (waiting < (most.get(lane) ?? 0) || (at_least && most.has(lane))))
    .map(({ lane, waiting, at_least }) => ({ lane, left: waiting, at_least }));
}

const LISTS = ['tasks', 'jobs', 'dead-letters', 'operations', 'capacity'];

/** The lanes that concern the page at this address, while they are `paused` or drain after a resume. A job's own page knows its lane. */
export function concerned(pathname: string, lane: string, paused: boolean): boolean {
  const [, first = '', second = ''] = pathname.split('/');
  if (first === 'status' || first === 'system') return !paused; // they list the paused ones
  if (!LISTS.includes(first)) return false;
  if (first === 'jobs' && second !== '' && second !== 'new') return false;
  return first !== 'jobs' || second !== 'new' || lane !== 'recurring';
}

/** The home page of the viewer. */
export function homeOf(overseer: boolean): string {
  return overseer ? '/status' : '/tasks';
}

