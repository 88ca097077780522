/** Schedules, spans and shares in words. Pure. */
import cronstrue from 'cronstrue';

import type { ScheduleRequest, Schemas } from './api/client';

/** A cron expression in words, or null if it has none: then the next runs show what it means. */
export function cronInWords(cron: string): string | null {
  const text = cron.trim();
  const word = /^@(yearly|annually|monthly|weekly|daily|midnight|hourly)$/i.test(text);
  const [minute = '', hour = '', day = '', , weekday = '', ...others] = text.split(/\s+/);
  if (!word && (weekday === '' || others.length > 0)) return null;
  if (/L-.*,|,.*L-/i.test(day)) return null; // cronstrue leaves out the other days
  const often = /^@hourly$/i.test(text) || minute.startsWith('*') || hour.startsWith('*');
  try {
    return cronstrue.toString(word ? text.toLowerCase() : text.toUpperCase(), {
      use24HourTimeFormat: true,
      verbose: !often, // "at 02:30, every day", but not "every minute, every hour, every day"
      logicalAndDayFields: day.startsWith('*') || weekday.startsWith('*'),
    });
  } catch {
    return null;
  }
}

/** A schedule in words; of a cron that has none, the expression itself. */
export function scheduleInWords(schedule: Pick<ScheduleRequest, 'cron' | 'every' | 'times' | 'weekdays' | 'rate' | 'at'> | null | undefined): string {
  if (schedule?.cron) return [schedule.cron].flat().map((each) => cronInWords(each) ?? each).join('; ');
  if (schedule?.every) return `${rateInWords(schedule.every)}${schedule.weekdays ? ` on ${[schedule.weekdays].flat().join(', ')}` : ''} at ${[schedule.times ?? ''].flat().join(', ')}`;
  if (schedule?.rate) return rateInWords(schedule.rate);
  if (schedule?.at) return 'Once, at a set time';
  return 'Once, now';
}

function rateInWords(rate: string | Record<string, unknown>): string {
  const text = typeof rate === 'string' ? rate : `${String(rate['every'])} ${String(rate['unit'])}`;
  const span = text.replace(/^rate\((.*)\)$/, '$1');
  const single = /^1 (.*?)s?$/.exec(span);
  return `Every ${single ? single[1] : span}`;
}

/** A term of the API and its documentation, and the word that the console shows for it. */
export const TERMS = [
  { term: 'dead letter', word: 'failed job' },
  { term: 'redrive', word: 'run again' },
  { term: 'lane', word: 'queue' },
] as const;

/** The console's word; what is no term is its own word. */
export function wordOf(term: string): string {
  return TERMS.find((each) => each.term === term)?.word ?? term;
}

/** The term of the API for a word of the console. */
export function termOf(word: string): string {
  return TERMS.find((each) => each.word === word)?.term ?? word;
}

const OVERLAPS: Record<string, string> = {
  skip: 'The new run is skipped',
  queue_one: 'The new run waits; further runs are skipped',
  allow: 'Both runs continue',
  cancel_running: 'The previous run is cancelled, then the new one starts',
} satisfies Record<Schemas['Overlap'], string>;
const MISFIRES: Record<string, string> = {
  run_latest: 'Only the latest one runs',
  run_all: 'All of them run, in order',
  skip: 'None of them runs',
} satisfies Record<Schemas['Misfire'], string>;

/** What happens to a run while the previous one has not ended. A rule that is new to this console by its term. */
export function overlapInWords(rule: string): string {
  return OVERLAPS[rule] ?? rule.replaceAll('_', ' ');
}

/** What happens to runs that could not start on time. */
export function misfireInWords(rule: string): string {
  return MISFIRES[rule] ?? rule.replaceAll('_', ' ');
}

const OF_AN_ANSWER = ['retryable', 'permanent']; // what a retry may do, not what happened

/** The error of a failed job: its message, and what happened if the message is not of the target. */
export function errorInWords(error: { kind: string; message: string }): string {
  return OF_AN_ANSWER.includes(error.kind) ? error.message : `${error.kind}: ${error.message}`;
}

/** A sentence of the API about a lane, with the console's word. Names and reasons in it stay as they are. */
export function plain(sentence: string): string {
  return sentence.replace(/^(The|its) lane\b/, `$1 ${wordOf('lane')}`);
}

/** How the last runs ended, and how many were on time; null: none has started. */
export function runsInWords(jobs: readonly { status: string; started_at: string | null; late: boolean }[]): string | null {
  const share = onTimeShare(jobs);
  const started = jobs.filter((job) => job.started_at !== null);
  const [first] = started;
  if (share === null || first === undefined) return null;
  if (started.length === 1) return first.status === 'running' ? 'The first run is running.' : `The last run ${PAST[first.status] ?? 'has started'}${first.late ? ', and started late' : ''}.`;
  const failed = started.filter(({ status }) => status === 'failed' || status === 'killed').length;
  return `The last ${started.length} runs: ${failed === 0 ? 'none' : failed} failed; ${percent(share)} on time.`;
}

const PAST: Record<string, string> = { succeeded: 'succeeded', failed: 'failed', killed: 'was killed', cancelled: 'was cancelled', skipped: 'was skipped' };

/** Milliseconds for reading: 0 ms, 950 ms, 2.4 s, 3 min 5 s, 2 h 10 min, 3 d 4 h. */
export function span(ms: number): string {
  const sign = ms < 0 ? '−' : '';
  const size = Math.abs(ms);
  if (size < 1_000) return `${sign}${Math.round(size)} ms`;
  if (size < 59_950) return `${sign}${Number((size / 1_000).toFixed(1))} s`;
  const seconds = Math.round(size / 1_000);
  for (const [unit, big, small, next] of [['min', 60, 1, 's'], ['h', 3_600, 60, 'min'], ['d', 86_400, 3_600, 'h']] as const) {
    const limit = unit === 'min' ? 3_600 : unit === 'h' ? 86_400 : Infinity;
    if (seconds >= limit) continue;
    const rest = Math.floor((seconds % big) / small);
    return `${sign}${Math.floor(seconds / big)} ${unit}${rest > 0 ? ` ${rest} ${next}` : ''}`;
  }
  return `${sign}${seconds} s`;
}

const SAME_MS = 5; // the two may come from two readings of a clock

/** Whether the API's delay, which is that of the first start, is the delay of this start. */
export function isFirstStart(started: string | null, job: { scheduled_at: string; start_delay_ms: number | null }): boolean {
  if (started === null || job.start_delay_ms === null) return false;
  return Math.abs(Date.parse(started) - Date.parse(job.scheduled_at) - job.start_delay_ms) <= SAME_MS;
}

/** The delay beside the start that is shown. After a retry that start is a later one, so the words name the first. */
export function delayInWords(job: { scheduled_at: string; started_at: string | null; start_delay_ms: number | null }): string {
  const ms = job.start_delay_ms;
  if (ms === null) return '–';
  if (isFirstStart(job.started_at, job)) return span(ms);
  return ms === 0 ? 'first start on time' : `first start ${span(Math.abs(ms))} ${ms > 0 ? 'late' : 'early'}`;
}

/** Seconds as typed, in larger units; undefined for what is less than a minute, or no number. */
export function secondsInWords(typed: string): string | undefined {
  const seconds = Number(typed.trim());
  return seconds >= 60 ? `= ${span(seconds * 1_000)}` : undefined;
}

/** An instant seen from another one: in 5 s, 3 min ago, now. */
export function relative(instant: number, now: number): string {
  const away = instant - now;
  if (Math.abs(away) < 1_000) return 'now';
  const words = span(Math.trunc(away / 1_000) * 1_000).replace('−', '');
  return away > 0 ? `in ${words}` : `${words} ago`;
}

/** Of all that started, the share that did so on time; null if none did. */
export function onTimeShare(jobs: readonly { started_at: string | null; late: boolean }[]): number | null {
  const started = jobs.filter((job) => job.started_at !== null);
  return started.length === 0 ? null : started.filter((job) => !job.late).length / started.length;
}

/** A share that says 100 % only of all. */
export function percent(share: number): string {
  const rounded = Math.round(share * 1_000) / 10;
  return `${rounded === 100 && share < 1 ? 99.9 : rounded} %`;
}
