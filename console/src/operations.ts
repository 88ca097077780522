/** Operations on many jobs or tasks: what they do and to which, in words, and what the API is asked for. Pure. */
import type { Job, Schemas } from './api/client';
import { wordOf } from './words';

export type Operation = Schemas['Operation'];
export type CancelFilter = Pick<Schemas['CancelRequest'], 'type' | 'tag' | 'task' | 'status' | 'from' | 'to'>;
export type ReplayFilter = Pick<Schemas['ReplayJobsRequest'], 'type' | 'tag' | 'task' | 'status' | 'from' | 'to'>;
export type TasksFilter = Pick<Schemas['DeleteTasksRequest'], 'type' | 'tag' | 'name' | 'status' | 'all'>;
/** What starts one from a list. */
export type Many =
  | { action: 'cancel_jobs'; body: CancelFilter }
  | { action: 'replay_jobs'; body: ReplayFilter }
  | { action: 'pause_tasks' | 'resume_tasks' | 'delete_tasks'; body: TasksFilter };

interface Words {
  /** Before "done" and "aborted", and in the list of operations. */
  name: string;
  /** After a number of jobs or tasks. */
  past: string;
  of: 'job' | 'task';
}

export const WORDS: Record<Operation['action'], Words> = {
  redrive: { name: 'New runs of failed jobs', past: 'run again', of: 'job' },
  cancel_jobs: { name: 'Cancellation of jobs', past: 'cancelled', of: 'job' },
  replay_jobs: { name: 'Replay of jobs', past: 'replayed', of: 'job' },
  pause_tasks: { name: 'Pause of tasks', past: 'paused', of: 'task' },
  resume_tasks: { name: 'Resumption of tasks', past: 'resumed', of: 'task' },
  delete_tasks: { name: 'Deletion of tasks', past: 'deleted', of: 'task' },
  apply_alerts: { name: 'Change of the default alerts', past: 'have the new rules', of: 'task' },
  apply_calendar: { name: 'Change of a calendar', past: 'have the new dates', of: 'task' },
};

export function counted(count: number, of: 'job' | 'task'): string {
  return `${count.toLocaleString('en')} ${of}${count === 1 ? '' : 's'}`;
}

/** What it does, or has done: for the box that shows its progress. */
export function headerOf({ action, status, matched, done, limit, filter }: Pick<Operation, 'action' | 'status' | 'matched' | 'done' | 'limit' | 'filter'>): string {
  const { name } = WORDS[action];
  if (status === 'running') return name;
  if (action !== 'redrive') return `${name} ${status}`;
  if (done === 0) return status === 'aborted' ? 'Aborted: no failed jobs run again' : 'No failed jobs run again';
  if (status === 'aborted') return `Aborted: ${done} failed ${done === 1 ? 'job runs' : 'jobs run'} again`;
  if (done < matched) return `${done} of ${matched} failed jobs run again`;
  if (filter.fingerprint !== null && limit === null) return 'All failed jobs of this group run again';
  return done === 1 ? 'The failed job runs again' : `All ${done} failed jobs run again`;
}

/** How many were changed so far, and how many were not. */
export function countsInWords({ action, matched, done, skipped, failed, conflicts, rate }: Pick<Operation, 'action' | 'matched' | 'done' | 'skipped' | 'failed' | 'conflicts' | 'rate'>): string {
  const beside = conflicts > 0 ? `, ${conflicts} still failed, since another open job has their key` : '';
  return `${matched} matched: ${done} ${WORDS[action].past} at ${rate}/s, ${skipped} skipped, ${failed} failed${beside}`;
}

/** What was chosen, a part each; empty: all. Instants stay as the API writes them. */
export function chosenInWords(filter: Operation['filter']): string[] {
  const named: [string, string | null][] = [
    ['name contains', filter.name],
    ['calendar', filter.calendar],
    ['type', filter.type],
    ['tag', filter.tag.join(' and ') || null],
    ['status', filter.status.map((each) => (each === 'inactive' ? 'paused' : each)).join(' or ') || null],
    ['task', filter.task],
    [wordOf('lane'), filter.lane],
    ['error', filter.fingerprint],
    ['from', filter.from],
    ['before', filter.to],
  ];
  return named.flatMap(([name, value]) => (value === null ? [] : [`${name} ${value}`]));
}

const OPEN = ['scheduled', 'queued', 'running'] as const;
type Open = (typeof OPEN)[number];

/** What the list of jobs shows. */
export interface ChosenJobs {
  status: readonly Job['status'][];
  type: string;
  task: string;
  tag: string;
  from?: string;
  to?: string;
}

const ENDED = ['succeeded', 'failed', 'killed', 'cancelled', 'skipped'] as const;
type Ended = (typeof ENDED)[number];

/** Which jobs the history of the list shows that can be replayed, for the API; null: none of those statuses. */
export function toReplayMany(chosen: ChosenJobs, ahead: boolean, now: number): ReplayFilter | null {
  const status = chosen.status.filter((each): each is Ended => (ENDED as readonly string[]).includes(each));
  if (ahead || (chosen.status.length > 0 && status.length === 0)) return null;
  return {
    ...(status.length > 0 && { status }),
    ...alike(chosen),
    ...(chosen.from !== undefined && { from: chosen.from }),
    to: earliest(chosen.to, new Date(now).toISOString()),
  };
}

function alike({ type, task, tag }: ChosenJobs): Pick<CancelFilter, 'type' | 'task' | 'tag'> {
  return { ...(type !== '' && { type }), ...(task !== '' && { task }), ...(tag !== '' && { tag: [tag] }) };
}

/**
 * Which jobs the list of jobs shows that can be cancelled, for the API; null: none of those statuses.
 * The API does not know the list's two views, so each becomes a bound: what was due ends at `now`, what is ahead begins there.
 */
export function toCancel(
  chosen: ChosenJobs,
  ahead: boolean,
  now: number,
): CancelFilter | null {
  const status = chosen.status.filter((each): each is Open => (OPEN as readonly string[]).includes(each));
  if (chosen.status.length > 0 && status.length === 0) return null;
  const at = new Date(now).toISOString();
  const [from, to] = ahead ? [latest(chosen.from, at), chosen.to] : [chosen.from, earliest(chosen.to, at)];
  return {
    ...(status.length > 0 && { status }),
    ...alike(chosen),
    ...(from !== undefined && { from }),
    ...(to !== undefined && { to }),
  };
}

function latest(one: string | undefined, other: string): string {
  return one !== undefined && Date.parse(one) > Date.parse(other) ? one : other;
}

function earliest(one: string | undefined, other: string): string {
  return one !== undefined && Date.parse(one) < Date.parse(other) ? one : other;
}

/** Which tasks the list shows that the action changes, for the API; null: it changes none of that status. */
export function toChange(action: 'pause_tasks' | 'resume_tasks' | 'delete_tasks', chosen: { status: string; type: string; name: string; tag: string }): TasksFilter | null {
  const changes = { pause_tasks: ['', 'active'], resume_tasks: ['', 'inactive'], delete_tasks: ['', 'active', 'inactive', 'ended'] }[action];
  if (!changes.includes(chosen.status)) return null;
  const filter: TasksFilter = {
    ...(action === 'delete_tasks' && chosen.status !== '' && { status: [chosen.status as Schemas['TaskStatus']] }),
    ...(chosen.type !== '' && { type: chosen.type }),
    ...(chosen.name !== '' && { name: chosen.name }),
    ...(chosen.tag !== '' && { tag: [chosen.tag] }),
  };
  return Object.keys(filter).length === 0 ? { all: true } : filter;
}
