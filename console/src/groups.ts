/** Groups of jobs: their state, their counts and their call-backs in words, and how often to read them. Pure. */
import type { Job, Schemas } from './api/client';
import { GOES_ON, JOB_LOOKS, type Look } from './colours';
import { counted } from './operations';

export type Group = Schemas['JobGroup'];
export type Counts = Schemas['GroupCounts'];
export type Call = Group['callbacks'][number];
export type End = Exclude<keyof Counts, 'unfinished'>;

/** The ways to end, in the order of the bar. */
export const ENDS = ['succeeded', 'failed', 'killed', 'cancelled', 'skipped'] as const satisfies readonly End[];

/** Green: all jobs succeeded. Red: at least one did not. Grey: somebody cancelled the group. Yellow: it was not sealed in time. */
export function lookOf({ state, succeeded_at, cancelled_at }: Pick<Group, 'state' | 'succeeded_at' | 'cancelled_at'>): Look {
  if (state === 'open') return { type: 'pending', colorOverride: 'blue' };
  if (state === 'sealed') return GOES_ON;
  if (state === 'abandoned') return { type: 'warning' };
  return succeeded_at !== null ? { type: 'success' } : cancelled_at !== null ? { type: 'stopped' } : { type: 'error' };
}

const STATES: Record<Group['state'], string> = { open: 'Open', sealed: 'Sealed', ended: 'Ended', abandoned: 'Abandoned' };

export function stateInWords({ state, cancelled_at }: Pick<Group, 'state' | 'cancelled_at'>): string {
  return cancelled_at === null ? STATES[state] : `${STATES[state]}, cancelled`;
}

/** How many of its jobs have ended, in a line. A list has no counts of a large group. */
export function progressInWords({ jobs, counts, ended_at, succeeded_at }: Pick<Group, 'jobs' | 'counts' | 'ended_at' | 'succeeded_at'>): string {
  const [all, one] = [jobs.toLocaleString('en'), jobs === 1];
  if (jobs === 0) return 'No jobs';
  if (succeeded_at !== null) return one ? '1 job, succeeded' : `All ${all} jobs succeeded`;
  if (counts === null) return ended_at === null ? counted(jobs, 'job') : `All ${all} jobs ended, not all succeeded`;
  return [`${(jobs - counts.unfinished).toLocaleString('en')} of ${all} ended`, ...ENDS.slice(1).flatMap((end) => (counts[end] === 0 ? [] : [endInWords(end, counts)]))].join(', ');
}

/** The number of jobs that ended like this, or that have not ended. */
export function endInWords(end: keyof Counts, counts: Counts): string {
  return `${counts[end].toLocaleString('en')} ${end === 'unfinished' ? 'not ended' : end}`;
}

/** The look of each number beside the bar. */
export const END_LOOKS: Record<keyof Counts, Look> = { ...JOB_LOOKS, unfinished: GOES_ON };

/** When a call-back starts. */
export const CALLS: Record<Call['kind'], string> = {
  on_complete: 'All jobs have ended',
  on_success: 'All jobs have succeeded',
  on_failure: 'All jobs have ended, not all succeeded',
};

/** Why a call-back has no job. */
export function unstartedInWords(kind: Call['kind'], state: Group['state']): string {
  if (state === 'abandoned') return 'Does not start: the group was abandoned';
  if (state !== 'ended') return 'Has not started';
  return kind === 'on_success' ? 'Starts when the other jobs have run again and succeeded' : 'Does not start: all jobs succeeded';
}

/** What a job is to its group. */
export function placeInWords({ group_member: number }: Pick<Job, 'group_member'>): string {
  return number === null ? 'This job is a call-back of the group' : `Number ${number}, counted from 0`;
}

/** What follows when the group is sealed: the text of the question. */
export function sealInWords({ counts, callbacks }: Pick<Group, 'counts' | 'callbacks'>): string {
  const ends = counts?.unfinished === 0 ? 'All its jobs have ended, so the group ends now' : 'The group ends once all its jobs have ended';
  return `No other job can join. ${ends}${callbacks.length === 0 ? '.' : ', and the call-backs start whose condition is met.'}`;
}

/** What follows when the group is cancelled: the text of the question. */
export function cancelInWords(group: Pick<Group, 'counts' | 'callbacks'>): string {
  const left = group.counts?.unfinished ?? 0;
  const jobs = left === 0 ? '' : `${counted(left, 'job')} ${left === 1 ? 'has' : 'have'} not ended. Those that have not started are cancelled within moments; running jobs continue. `;
  return jobs + sealInWords(group);
}

interface Filter {
  id: string;
  text: string;
  ends: readonly End[];
}

export const ALL: Filter = { id: 'all', text: 'All', ends: [] };

/** The filters of its jobs. The API lists those that have not ended among all. */
export const FILTERS: readonly Filter[] = [
  ALL,
  { id: 'failed', text: 'Failed or killed', ends: ['failed', 'killed'] },
  { id: 'stopped', text: 'Cancelled or skipped', ends: ['cancelled', 'skipped'] },
  { id: 'succeeded', text: 'Succeeded', ends: ['succeeded'] },
];

/** A filter with the number of jobs that it finds. */
export function filterInWords({ text, ends }: Filter, { jobs, counts }: Pick<Group, 'jobs' | 'counts'>): string {
  const found = ends.length === 0 ? jobs : ends.reduce((sum, end) => sum + (counts?.[end] ?? 0), 0);
  return `${text} (${found.toLocaleString('en')})`;
}

const LIVELY = 2_000;
const SLOW = 10_000;

/** Milliseconds until the next look. While its jobs run, a look reads as much as the group is large: that of a large group is rare. */
export function paceOf(group: Pick<Group, 'state' | 'jobs' | 'counts'> | null): number {
  if (group === null) return LIVELY;
  const over = group.state === 'ended' || (group.state === 'abandoned' && group.counts?.unfinished === 0);
  return over ? SLOW : Math.max(LIVELY, group.jobs / 2);
}

const READS = 10;

/** A page of `limit` entries from pages of the API that may be short although others follow. It may be short, too, after `READS` of those. */
export async function filled<T>(limit: number, first: string | undefined, ask: (limit: number, cursor: string | undefined) => Promise<{ items: T[]; cursor: string | null }>): Promise<{ items: T[]; cursor: string | null }> {
  const items: T[] = [];
  let cursor: string | null = first ?? null;
  for (let read = 0; read < READS && items.length < limit; read += 1) {
    const page = await ask(limit - items.length, cursor ?? undefined);
    items.push(...page.items);
    cursor = page.cursor;
    if (cursor === null) break;
  }
  return { items, cursor };
}

/** A group to try. */
export const EXAMPLE = { name: 'Two jobs', jobs: [{ message: 'one' }, { message: 'two' }], on_complete: { message: 'both have ended' } } satisfies Schemas['GroupRequest'];
