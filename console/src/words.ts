/** Schedules, spans and shares in words. Pure. */
import type { ScheduleRequest } from './api/client';

const DAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday'];
const MONTHS = ['January', 'February', 'March', 'April', 'May', 'June', 'July', 'August', 'September', 'October', 'November', 'December'];
const DAY_NAMES = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'];
const MONTH_NAMES = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
const MACROS: Record<string, string> = {
  '@yearly': '0 0 1 1 *',
  '@annually': '0 0 1 1 *',
  '@monthly': '0 0 1 * *',
  '@weekly': '0 0 * * 0',
  '@daily': '0 0 * * *',
  '@midnight': '0 0 * * *',
  '@hourly': '0 * * * *',
};

/** A cron expression in words, or null if it is none or too odd for few words: then the next runs must tell. */
export function cronInWords(cron: string): string | null {
  const fields = (MACROS[cron.trim().toLowerCase()] ?? cron).trim().split(/\s+/);
  if (fields.length !== 5) return null;
  const [minute, hour, day, month, weekday] = fields as [string, string, string, string, string];
  const time = timeInWords(minute, hour);
  const dates = dateInWords(day, weekday);
  const months = month === '*' ? '' : list(month, MONTH_NAMES, 1, (n) => MONTHS[n - 1]);
  if (time === null || dates === null || months === null) return null;
  const often = time.startsWith('every');
  const on = dates === '' ? (often ? '' : 'every day ') : `${dates} `;
  const of = months === '' ? '' : ` in ${months}`;
  const words = often ? `${time}${dates === '' ? '' : `, ${dates}`}${of}` : `${on}${time}${of}`;
  return words.charAt(0).toUpperCase() + words.slice(1);
}

function timeInWords(minute: string, hour: string): string | null {
  const step = /^\*\/(\d+)$/.exec(minute)?.[1];
  const hours = /^\*\/(\d+)$/.exec(hour)?.[1];
  if (minute === '*' || step === '1') return hour === '*' ? 'every minute' : within('every minute', hour);
  if (step !== undefined) return hour === '*' ? `every ${step} minutes` : within(`every ${step} minutes`, hour);
  const minutes = numbers(minute, 59);
  if (minutes === null) return null;
  if (hour === '*') return `every hour at ${minutes.map((m) => `:${pad(m)}`).join(', ')}`;
  if (hours !== undefined) return `every ${hours} hours at ${minutes.map((m) => `:${pad(m)}`).join(', ')}`;
  const at = numbers(hour, 23);
  if (at === null || at.length * minutes.length > 6) return null;
  return `at ${join(at.flatMap((h) => minutes.map((m) => `${pad(h)}:${pad(m)}`)))}`;
}

function within(often: string, hour: string): string | null {
  const range = /^(\d{1,2})-(\d{1,2})$/.exec(hour);
  if (range) return `${often} from ${pad(Number(range[1]))}:00 to ${pad(Number(range[2]))}:59`;
  const at = numbers(hour, 23);
  return at === null ? null : `${often} within the hours ${join(at.map((h) => `${pad(h)}:00`))}`;
}

function dateInWords(day: string, weekday: string): string | null {
  const onDays = weekday === '*' ? '' : list(weekday, DAY_NAMES, 0, (n) => DAYS[n]);
  const onDates = day === '*' ? '' : list(day, [], 1, (n) => ordinal(n));
  if (onDays === null || onDates === null) return null;
  const named = onDays === 'Monday to Friday' ? 'on weekdays' : onDays === '' ? '' : `on ${onDays}`;
  const dated = onDates === '' ? '' : `on the ${onDates} of the month`;
  if (named !== '' && dated !== '') return `${dated} and ${named}`;
  return named + dated;
}

function list(field: string, names: string[], first: number, word: (n: number) => string | undefined): string | null {
  const words: string[] = [];
  for (const part of field.toLowerCase().split(',')) {
    const range = /^([a-z0-9]+)-([a-z0-9]+)$/.exec(part);
    const ends = (range ? [range[1], range[2]] : [part]).map((text) => one(text ?? '', names, first));
    const named = ends.map((n) => (n === null ? undefined : word(n)));
    if (named.some((text) => text === undefined)) return null;
    words.push(named.join(' to '));
  }
  return join(words);
}

function one(text: string, names: string[], first: number): number | null {
  if (/^\d+$/.test(text)) return Number(text);
  const index = names.indexOf(text);
  return index < 0 ? null : index + first;
}

function numbers(field: string, most: number): number[] | null {
  const found = field.split(',').map((part) => (/^\d+$/.test(part) ? Number(part) : NaN));
  return found.every((n) => n <= most) ? found : null;
}

function ordinal(n: number): string {
  const ending = n % 100 >= 11 && n % 100 <= 13 ? 'th' : (['th', 'st', 'nd', 'rd'][n % 10] ?? 'th');
  return `${n}${ending}`;
}

function join(words: string[]): string {
  return words.length < 2 ? (words[0] ?? '') : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`;
}

function pad(n: number): string {
  return String(n).padStart(2, '0');
}

/** A schedule in words; of a cron that has none, the expression itself. */
export function scheduleInWords(schedule: Pick<ScheduleRequest, 'cron' | 'rate' | 'at'> | null | undefined): string {
  if (schedule?.cron) return cronInWords(schedule.cron) ?? schedule.cron;
  if (schedule?.rate) return rateInWords(schedule.rate);
  if (schedule?.at) return 'Once, at a time';
  return 'Once, at once';
}

function rateInWords(rate: string | Record<string, unknown>): string {
  const text = typeof rate === 'string' ? rate : `${String(rate['every'])} ${String(rate['unit'])}`;
  const span = text.replace(/^rate\((.*)\)$/, '$1');
  const single = /^1 (.*?)s?$/.exec(span);
  return `Every ${single ? single[1] : span}`;
}

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
