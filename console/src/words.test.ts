import { describe, expect, test } from 'vitest';

import { cronInWords, onTimeShare, percent, relative, scheduleInWords, span } from './words';

describe('cron in words', () => {
  test.each([
    ['* * * * *', 'Every minute'],
    ['*/5 * * * *', 'Every 5 minutes'],
    ['0 * * * *', 'Every hour at :00'],
    ['15 */6 * * *', 'Every 6 hours at :15'],
    ['30 2 * * *', 'Every day at 02:30'],
    ['@daily', 'Every day at 00:00'],
    ['0 9 * * 1-5', 'On weekdays at 09:00'],
    ['0 9 * * mon', 'On Monday at 09:00'],
    ['0 0 1 * *', 'On the 1st of the month at 00:00'],
    ['0 0 1 1 *', 'On the 1st of the month at 00:00 in January'],
    ['0,30 8,17 * * *', 'Every day at 08:00, 08:30, 17:00 and 17:30'],
    ['*/10 9-17 * * mon-fri', 'Every 10 minutes from 09:00 to 17:59, on weekdays'],
    ['0 12 22,13 * *', 'On the 22nd and 13th of the month at 12:00'],
  ])('%s', (cron, words) => expect(cronInWords(cron)).toBe(words));

  test.each(['', '* * *', '61 * * * *', '1-5/2 3 * * *', '0 9 * * someday'])('has none for %j', (cron) => expect(cronInWords(cron)).toBeNull());

  test('the expression stands for itself where there are no words', () =>
    expect(scheduleInWords({ cron: '1-5/2 3 * * *' })).toBe('1-5/2 3 * * *'));
});

test.each([
  [{ rate: 'rate(5 minutes)' }, 'Every 5 minutes'],
  [{ rate: '1 hour' }, 'Every hour'],
  [{ rate: { every: 1, unit: 'days' } }, 'Every day'],
  [{ at: '2026-11-20T10:00:00Z' }, 'Once, at a time'],
  [null, 'Once, at once'],
])('the schedule %j in words', (schedule, words) => expect(scheduleInWords(schedule)).toBe(words));

test.each([
  [0, '0 ms'],
  [950, '950 ms'],
  [-20, '−20 ms'],
  [2_440, '2.4 s'],
  [59_990, '1 min'],
  [185_000, '3 min 5 s'],
  [7_800_000, '2 h 10 min'],
  [273_600_000, '3 d 4 h'],
])('%d ms reads %s', (ms, words) => expect(span(ms)).toBe(words));

test('a time is told from now', () => {
  expect(relative(10_000, 4_600)).toBe('in 5 s');
  expect(relative(0, 185_400)).toBe('3 min 5 s ago');
  expect(relative(500, 0)).toBe('now');
});

test('only what started counts for the share on time', () => {
  const job = (started: boolean, late: boolean) => ({ started_at: started ? 'x' : null, late });
  expect(onTimeShare([job(true, false), job(true, true), job(false, true)])).toBe(0.5);
  expect(onTimeShare([job(false, true)])).toBeNull();
});

test('a hundred percent means all', () => {
  expect(percent(1)).toBe('100 %');
  expect(percent(0.99999)).toBe('99.9 %');
  expect(percent(0.5)).toBe('50 %');
});
