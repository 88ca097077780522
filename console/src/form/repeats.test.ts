import { describe, expect, test } from 'vitest';

import { changedTo, cronOf, everyWeekday, isEveryWeekday, repeatOf, skippedMonths } from './repeats';

describe('the picker and the cron expression', () => {
  test.each([
    ['0 8 3 * *', { every: 'month', day: '3', time: '08:00' }],
    ['30 23 L * *', { every: 'month', day: 'L', time: '23:30' }],
    ['30 2 * * *', { every: 'day', time: '02:30' }],
    ['0 9 * * 1-5', { every: 'week', days: [1, 2, 3, 4, 5], time: '09:00' }],
    ['0 9 * * 0,6', { every: 'week', days: [0, 6], time: '09:00' }],
  ] as const)('%s there and back', (cron, repeat) => {
    expect(repeatOf(cron)).toEqual(repeat);
    expect(cronOf(repeat as never)).toBe(cron);
  });

  test.each([
    ['  0 08 03 * * ', '0 8 3 * *'],
    ['0 9 l * *', '0 9 L * *'],
    ['0 9 * * MON-FRI', '0 9 * * 1-5'],
    ['0 9 * * sat,7', '0 9 * * 0,6'],
  ])('%s is shown, and means %s', (cron, same) => expect(cronOf(repeatOf(cron) as never)).toBe(same));

  test.each(['* * * * *', '*/5 9 * * *', '0 9 1 1 *', '0 9 1,15 * *', '0 9 1 * MON', '0 9 * * 5L', '0 9 * * fri#2', '61 9 * * *', '0 24 * * *', '0 9 32 * *', '@daily', '', '0 0 9 * * *'])(
    '%s is more than the picker shows',
    (cron) => expect(repeatOf(cron)).toBeNull(),
  );

  test('keeps the time of day when the rhythm changes', () => {
    expect(changedTo('month', { every: 'day', time: '02:30' })).toEqual({ every: 'month', day: '1', time: '02:30' });
    expect(changedTo('week', null)).toEqual({ every: 'week', days: [1], time: '09:00' });
    expect(changedTo('month', { every: 'month', day: '3', time: '08:00' })).toEqual({ every: 'month', day: '3', time: '08:00' });
  });
});

test('every weekday is a week from Monday to Friday, and another week begins with Monday', () => {
  const weekday = everyWeekday({ every: 'day', time: '02:30' });
  expect(cronOf(weekday)).toBe('30 2 * * 1-5');
  expect(isEveryWeekday(weekday)).toBe(true);
  expect(isEveryWeekday({ every: 'week', days: [1, 2, 3, 4], time: '02:30' })).toBe(false);
  expect(changedTo('week', weekday)).toEqual({ every: 'week', days: [1], time: '02:30' });
});

describe('a schedule that skips months says so', () => {
  test.each([
    ['0 6 31 * *', /^No run in February, April, June, September and November: day 31 /],
    ['0 6 30,31 * *', /^No run in February: day 30 /],
    ['0 6 29 * *', /^No run in February, except in leap years: day 29 /],
    ['0 6 29-31 2 *', /^No run in February, except in leap years/],
    ['0 6 31 jan,APR *', /^No run in April: day 31 /],
    ['0 6 30 2 *', /^No run in February: day 30 /],
  ])('%s', (cron, words) => expect(skippedMonths(cron)).toMatch(words));

  test.each(['0 6 28 * *', '0 6 1,31 * *', '0 6 31 1 *', '0 6 L * *', '0 6 1,L * *', '0 6 31 * MON', '0 6 * * *', '0 6 */2 * *', '0 6 33 * *', '@monthly', '', '0 6 31 foo *'])('%j has a run in each, or is for the API to judge', (cron) =>
    expect(skippedMonths(cron)).toBeNull(),
  );
});
