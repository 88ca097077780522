/** How jobs ended and how long they took, as charts and tables need it. Pure. */
import type { Schemas } from './api/client';

export type Type = Schemas['TypeStatistics'];
export type Day = Schemas['DayStatistics'];

type Counts = Pick<Type, 'succeeded' | 'failed' | 'killed' | 'cancelled' | 'skipped' | 'late'>;

/** Jobs that ended, whichever way. */
export function endedOf(counts: Counts): number {
  return counts.succeeded + counts.failed + counts.killed + counts.cancelled + counts.skipped;
}

/** Of all that ended and were not called off, the share that was on time; null if there are none. */
export function onTimeOf(counts: Counts): number | null {
  const meant = endedOf(counts) - counts.cancelled;
  return meant === 0 ? null : 1 - Math.min(counts.late, meant) / meant;
}

/** Of all that were tried, the share that succeeded; null if there are none. */
export function successOf(counts: Counts): number | null {
  const tried = counts.succeeded + counts.failed + counts.killed;
  return tried === 0 ? null : counts.succeeded / tried;
}

const NAMES = ['succeeded', 'failed', 'killed', 'cancelled', 'skipped', 'late'] as const;

export function sum(all: readonly Counts[]): Counts {
  const total: Counts = { succeeded: 0, failed: 0, killed: 0, cancelled: 0, skipped: 0, late: 0 };
  for (const each of all) for (const name of NAMES) total[name] += each[name];
  return total;
}

/** Every day of the span in its order, also those on which nothing ended; `2026-11-20`. */
export function daysOf(since: string, until: string): string[] {
  const found: string[] = [];
  const last = until.slice(0, 10);
  for (let at = new Date(`${since.slice(0, 10)}T00:00:00Z`); at.toISOString().slice(0, 10) <= last; at = new Date(at.getTime() + 86_400_000)) found.push(at.toISOString().slice(0, 10));
  return found;
}

/** Without the days before the first one on which anything ended, but of `least` days at any rate. */
export function since(days: readonly string[], daily: readonly Day[], least: number): string[] {
  const first = daily[0]?.day;
  const begun = first === undefined ? days.length : days.findIndex((day) => day >= first);
  return days.slice(Math.max(0, Math.min(begun < 0 ? days.length : begun, days.length - least)));
}

export interface Bar {
  x: string;
  y: number;
}

/** A value per day of one type (null: of all types together); days for which there is none are left out. */
export function byDay(days: readonly string[], daily: readonly Day[], type: string | null, value: (types: Type[]) => number | null): Bar[] {
  return days.flatMap((x) => {
    const y = value((daily.find(({ day }) => day === x)?.types ?? []).filter((each) => type === null || each.type === type));
    return y === null ? [] : [{ x, y }];
  });
}

/** The slowest first; those of which none ran are left out. */
export function slowest<T extends { p95_ms: number | null }>(types: readonly T[]): T[] {
  return types.filter((each) => each.p95_ms !== null).sort((one, other) => (other.p95_ms ?? 0) - (one.p95_ms ?? 0));
}

interface Ran {
  task_id: string | null;
  type: string;
  started_at: string | null;
  completed_at: string | null;
}

export interface SlowTask {
  id: string;
  type: string;
  runs: number;
  average: number;
  longest: number;
}

/** By task, how long these runs took; the slowest first. */
export function slowTasks(jobs: readonly Ran[]): SlowTask[] {
  const found = new Map<string, SlowTask>();
  for (const { task_id: id, type, started_at: from, completed_at: to } of jobs) {
    if (id === null || from === null || to === null) continue;
    const took = new Date(to).getTime() - new Date(from).getTime();
    const before = found.get(id) ?? { id, type, runs: 0, average: 0, longest: 0 };
    const runs = before.runs + 1;
    found.set(id, { id, type, runs, average: before.average + (took - before.average) / runs, longest: Math.max(before.longest, took) });
  }
  return [...found.values()].sort((one, other) => other.average - one.average);
}
