/** What is to come, and where it is more than there can be executors for. Pure. */
import type { Schemas } from './api/client';

export type Minute = Schemas['ForecastMinute'];

const MINUTE = 60_000;

/** Minutes on end that require more executors than there may be. */
export interface Shortage {
  from: string;
  /** The end of the last of its minutes. */
  to: string;
  required: number;
  minutes: number;
}

export function isShort(minute: Minute, available: number): boolean {
  return minute.required_instances > available;
}

/** Each row of minutes in which scaling is needed, with the most that one of them requires. */
export function shortages(minutes: readonly Minute[], available: number): Shortage[] {
  const found: Shortage[] = [];
  let open: Shortage | null = null;
  for (const minute of minutes) {
    if (!isShort(minute, available)) {
      open = null;
      continue;
    }
    const to = new Date(new Date(minute.scheduled_at).getTime() + MINUTE).toISOString();
    if (open === null) {
      open = { from: minute.scheduled_at, to, required: minute.required_instances, minutes: 1 };
      found.push(open);
    } else {
      open.to = to;
      open.required = Math.max(open.required, minute.required_instances);
      open.minutes += 1;
    }
  }
  return found;
}

export interface Totals {
  jobs: number;
  /** The minute in which most jobs are to start; null if none is. */
  busiest: Minute | null;
  required: number;
}

export function totals(minutes: readonly Minute[]): Totals {
  let busiest: Minute | null = null;
  for (const minute of minutes) if (minute.jobs > (busiest?.jobs ?? 0)) busiest = minute;
  return {
    jobs: minutes.reduce((sum, minute) => sum + minute.jobs, 0),
    busiest,
    required: minutes.reduce((most, minute) => Math.max(most, minute.required_instances), 0),
  };
}

export interface Point {
  x: Date;
  y: number;
}

/** What its minutes require, and the minutes beside it: the part of a line to be marked. */
export function marked(minutes: readonly Minute[], { from, to }: Shortage): Point[] {
  const first = minutes.findIndex(({ scheduled_at: at }) => at === from);
  const end = minutes.findIndex(({ scheduled_at: at }) => at === to);
  return points(minutes.slice(Math.max(0, first - 1), end < 0 ? undefined : end + 1), (minute) => minute.required_instances);
}

/** One point a minute. */
export function points(minutes: readonly Minute[], value: (minute: Minute) => number): Point[] {
  return minutes.map((minute) => ({ x: new Date(minute.scheduled_at), y: value(minute) }));
}
