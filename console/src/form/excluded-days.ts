/** The days of a task's schedule that the form lists: calendars by a choice, and dates as they are typed. Pure. */
import { entries, type Draft, type FieldErrors } from './draft';

export interface ListedDays {
  /** The task runs on these days alone; otherwise on none of them. */
  only: boolean;
  calendars: string[];
  dates: string;
}

const DATE = /^\d{4}-\d{2}-\d{2}$/;

export function listedDays({ exclude, only }: Pick<Draft, 'exclude' | 'only'>): ListedDays {
  const runsOnlyThen = only.trim() !== '';
  const listed = entries(runsOnlyThen ? only : exclude);
  return { only: runsOnlyThen, calendars: listed.filter((each) => !DATE.test(each)), dates: listed.filter((each) => DATE.test(each)).join(', ') };
}

export function daysOf({ only, calendars, dates }: ListedDays): Pick<Draft, 'exclude' | 'only'> {
  const listed = [...calendars, ...entries(dates)].join(', ');
  return only ? { exclude: '', only: listed } : { exclude: listed, only: '' };
}

/** What is wrong with the calendars and with the dates: the API counts both in one list, the calendars first. */
export function errorsOfDays(errors: FieldErrors, { only, calendars }: ListedDays): { calendars: string | undefined; dates: string | undefined } {
  const field = only ? 'schedule.only' : 'schedule.exclude';
  const at = (is: (number: number) => boolean): string | undefined =>
    Object.entries(errors).find(([name]) => name.startsWith(`${field}.`) && is(Number(name.slice(field.length + 1))))?.[1];
  return { calendars: errors[field] ?? at((number) => number < calendars.length), dates: at((number) => number >= calendars.length) };
}
