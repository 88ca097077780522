/** The year of a task as months of days: what each day has, in words, in a level of colour and in marks. Pure. */
import type { Schemas } from './api/client';

export type Year = Schemas['Year'];
export type Day = Schemas['YearDay'];

export const MONTHS = 12;
export const LEVELS = 4;
export const MARKS = {
  failed: { sign: '!', told: 'A run failed' },
  excluded: { sign: '×', told: 'Excluded: nothing runs' },
  away: { sign: '→', told: 'Excluded: its runs are moved' },
  moved: { sign: '+', told: 'Has runs that were moved to it' },
  clock: { sign: '~', told: 'The clock changes' },
} as const;
export type Mark = keyof typeof MARKS;

export interface Cell {
  date: string;
  number: number;
  /** 0: no runs; else up to `LEVELS`, by the most runs of a day. */
  level: number;
  /** Its runs were due, so the colour is that of the past. */
  past: boolean;
  today: boolean;
  marks: Mark[];
  label: string;
}

export interface Month {
  name: string;
  /** Empty places before the first day, in a week from Monday. */
  before: number;
  days: Cell[];
}

const NAMES = ['January', 'February', 'March', 'April', 'May', 'June', 'July', 'August', 'September', 'October', 'November', 'December'];
const WEEKDAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];
const DAY_MS = 86_400_000;

/** The first day of the month that is `months` after that of a date. */
export function monthAfter(date: string, months: number): string {
  const number = Number(date.slice(0, 4)) * 12 + Number(date.slice(5, 7)) - 1 + months;
  return `${String(Math.floor(number / 12)).padStart(4, '0')}-${String((number % 12) + 1).padStart(2, '0')}-01`;
}

/** The number of days of the twelve months from a first day of a month on: 365 or 366. */
export function daysFrom(first: string): number {
  return (Date.parse(monthAfter(first, MONTHS)) - Date.parse(first)) / DAY_MS;
}

export function marksOf(day: Day): Mark[] {
  const found: Record<Mark, boolean> = {
    failed: failures(day) > 0,
    excluded: day.excluded !== null && day.moved_to === null,
    away: day.moved_to !== null,
    moved: day.moved_from.length > 0,
    clock: day.clock_change,
  };
  return (Object.keys(MARKS) as Mark[]).filter((mark) => found[mark]);
}

/** What a day has, in words: `3 planned; the clock changes`. */
export function inWords(day: Day): string {
  const ended = Object.entries(day.runs ?? {}).filter(([, runs]) => runs > 0);
  const parts = [
    ...(day.planned > 0 ? [`${day.planned.toLocaleString('en')} planned`] : []),
    ...ended.map(([status, runs]) => `${runs.toLocaleString('en')} ${status}`),
    ...odd(day),
  ];
  return parts.length === 0 ? 'no runs' : parts.join('; ');
}

/** What is odd about a day, in words. */
export function odd(day: Day): string[] {
  return [
    ...(day.excluded === null ? [] : [day.moved_to === null ? day.excluded : `${day.excluded}, moved to ${day.moved_to}`]),
    ...(day.moved_from.length === 0 ? [] : [`has the runs of ${day.moved_from.join(', ')}`]),
    ...(day.clock_change ? ['the clock changes'] : []),
  ];
}

/** The twelve months of a year from its first day on, which is the first of a month. */
export function monthsOf(year: Year): Month[] {
  const known = new Map(year.days.map((day) => [day.date, day]));
  const most = Math.max(1, ...year.days.map(runsOf));
  return Array.from({ length: MONTHS }, (_, place) => {
    const first = monthAfter(year.first_day, place);
    const count = (Date.parse(monthAfter(first, 1)) - Date.parse(first)) / DAY_MS;
    return {
      name: `${NAMES[Number(first.slice(5, 7)) - 1] ?? ''} ${first.slice(0, 4)}`,
      before: (new Date(first).getUTCDay() + 6) % 7,
      days: Array.from({ length: count }, (__, number) => cell(`${first.slice(0, 8)}${String(number + 1).padStart(2, '0')}`, known, most, year.today)),
    };
  });
}

export function totals(year: Year): { planned: number; due: number; failed: number; odd: Day[] } {
  return {
    planned: year.days.reduce((sum, day) => sum + day.planned, 0),
    due: year.days.reduce((sum, day) => sum + dueOf(day), 0),
    failed: year.days.reduce((sum, day) => sum + failures(day), 0),
    odd: year.days.filter((day) => odd(day).length > 0),
  };
}

/** A date with its weekday: `Sunday 28 March 2027`. */
export function dateInWords(date: string): string {
  const weekday = WEEKDAYS[new Date(date).getUTCDay()] ?? '';
  return `${weekday} ${Number(date.slice(8))} ${NAMES[Number(date.slice(5, 7)) - 1] ?? ''} ${date.slice(0, 4)}`;
}

function cell(date: string, known: ReadonlyMap<string, Day>, most: number, today: string): Cell {
  const day = known.get(date);
  const runs = day === undefined ? 0 : runsOf(day);
  return {
    date,
    number: Number(date.slice(8)),
    level: Math.ceil((runs / most) * LEVELS),
    past: day !== undefined && day.planned === 0 && dueOf(day) > 0,
    today: date === today,
    marks: day === undefined ? [] : marksOf(day),
    label: `${dateInWords(date)}${date === today ? ', today' : ''}: ${day === undefined ? 'no runs' : inWords(day)}`,
  };
}

function dueOf(day: Day): number {
  return Object.values(day.runs ?? {}).reduce((sum, runs) => sum + runs, 0);
}

function failures(day: Day): number {
  return (day.runs?.['failed'] ?? 0) + (day.runs?.['killed'] ?? 0);
}

function runsOf(day: Day): number {
  return day.planned + dueOf(day);
}
