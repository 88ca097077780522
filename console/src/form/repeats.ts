/** Day, week and month as a picker shows them, to and from the cron expression; and the months in which a day does not occur. Pure. */

export type Repeat = { every: 'day'; time: string } | { every: 'week'; days: number[]; time: string } | { every: 'month'; day: string; time: string };

/** As cron counts them. */
export const WEEKDAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];
export const MONTHS = ['January', 'February', 'March', 'April', 'May', 'June', 'July', 'August', 'September', 'October', 'November', 'December'];
/** The most days that each month may have. */
const DAYS = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
export const LAST_DAY = 'L';
const WORKDAYS = [1, 2, 3, 4, 5];
const TIME_AT_FIRST = '09:00';
const TIME = /^([01]\d|2[0-3]):[0-5]\d$/;

export function isTime(text: string): boolean {
  return TIME.test(text);
}

export function cronOf(repeat: Repeat): string {
  const [hour = 0, minute = 0] = repeat.time.split(':').map(Number);
  switch (repeat.every) {
    case 'day':
      return `${minute} ${hour} * * *`;
    case 'week':
      return `${minute} ${hour} * * ${isEveryWeekday(repeat) ? '1-5' : repeat.days.join(',')}`;
    case 'month':
      return `${minute} ${hour} ${repeat.day} * *`;
  }
}

/** What the picker shows for an expression; null: more than it can show. */
export function repeatOf(cron: string): Repeat | null {
  const fields = cron.trim().split(/\s+/);
  const [minute = '', hour = '', day = '', month = '', weekday = ''] = fields;
  if (fields.length !== 5 || month !== '*' || !/^\d{1,2}$/.test(minute) || !/^\d{1,2}$/.test(hour)) return null;
  const time = `${hour.padStart(2, '0')}:${minute.padStart(2, '0')}`;
  if (!isTime(time)) return null;
  if (day === '*' && weekday === '*') return { every: 'day', time };
  if (day === '*') {
    const days = listed(weekday, 0, 7, WEEKDAYS);
    return days === null ? null : { every: 'week', days: [...new Set(days.map((each) => each % 7))].sort(), time };
  }
  if (weekday !== '*') return null;
  if (day.toUpperCase() === LAST_DAY) return { every: 'month', day: LAST_DAY, time };
  return /^\d{1,2}$/.test(day) && Number(day) >= 1 && Number(day) <= 31 ? { every: 'month', day: String(Number(day)), time } : null;
}

export function isEveryWeekday(repeat: Repeat): boolean {
  return repeat.every === 'week' && String(repeat.days) === String(WORKDAYS);
}

export function everyWeekday(before: Repeat | null): Repeat {
  return { every: 'week', days: WORKDAYS, time: before?.time ?? TIME_AT_FIRST };
}

/** The same time of day in another rhythm: what the picker begins with. */
export function changedTo(every: Repeat['every'], before: Repeat | null): Repeat {
  const time = before?.time ?? TIME_AT_FIRST;
  if (before?.every === every && !isEveryWeekday(before)) return before;
  if (every === 'week') return { every, days: [1], time };
  return every === 'month' ? { every, day: '1', time } : { every, time };
}

/** That some months have no run, since they lack the day; null: all that are chosen have one, or the expression is not valid. */
export function skippedMonths(cron: string): string | null {
  const fields = cron.trim().split(/\s+/);
  const [, , day = '', month = '', weekday = ''] = fields;
  if (fields.length !== 5 || weekday !== '*') return null; // a weekday runs in each month
  const days = listed(day, 1, 31, []);
  const months = listed(month, 1, 12, MONTHS);
  if (days === null || months === null) return null;
  const first = Math.min(...days);
  const without = months.filter((each) => (DAYS[each - 1] ?? 31) < first);
  const hint = `For the last day of each month, write ${LAST_DAY} as the day.`;
  if (without.length > 0) return `No run in ${joined(without.map((each) => MONTHS[each - 1] ?? ''))}: day ${first} does not occur there. ${hint}`;
  return first === 29 && months.includes(2) ? `No run in February, except in leap years: day 29 does not occur there. ${hint}` : null;
}

function joined(words: readonly string[]): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} and ${words.at(-1) ?? ''}`;
}

/** The numbers of a field with lists, ranges and steps; null: it has something else. Names count from `low`, those of months from January. */
function listed(field: string, low: number, high: number, names: readonly string[]): number[] | null {
  const found = new Set<number>();
  for (const part of field.split(',')) {
    const parts = /^(\*|\w+)(?:-(\w+))?(?:\/(\d+))?$/.exec(part);
    if (parts === null) return null;
    const [, from = '', to, every] = parts;
    const begin = from === '*' ? low : numberOf(from, low, names);
    const end = from === '*' || (to === undefined && every !== undefined) ? high : numberOf(to ?? from, low, names);
    const step = Number(every ?? 1);
    if (begin === null || end === null || begin < low || end > high || begin > end || step < 1) return null;
    for (let each = begin; each <= end; each += step) found.add(each);
  }
  return [...found].sort((one, other) => one - other);
}

function numberOf(text: string, low: number, names: readonly string[]): number | null {
  if (/^\d+$/.test(text)) return Number(text);
  const at = names.findIndex((name) => name.slice(0, 3).toLowerCase() === text.toLowerCase());
  return at < 0 ? null : at + low;
}
