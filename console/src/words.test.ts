import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { describe, expect, test } from 'vitest';

import { cronInWords, delayInWords, errorInWords, misfireInWords, onTimeShare, overlapInWords, percent, plain, relative, runsInWords, scheduleInWords, secondsInWords, span, termOf, TERMS, wordOf } from './words';

describe('cron in words', () => {
  test.each([
    ['* * * * *', 'Every minute'],
    ['*/5 * * * *', 'Every 5 minutes'],
    ['0 * * * *', 'Every hour'],
    ['@hourly', 'Every hour'],
    ['15 */6 * * *', 'At 15 minutes past the hour, every 6 hours'],
    ['30 2 * * *', 'At 02:30, every day'],
    ['@daily', 'At 00:00, every day'],
    ['@Weekly', 'At 00:00, only on Sunday'],
    ['0 9 * * 1-5', 'At 09:00, Monday through Friday'],
    ['0 9 * * mon', 'At 09:00, only on Monday'],
    ['0 0 1 * *', 'At 00:00, on day 1 of the month'],
    ['0 0 1 1 *', 'At 00:00, on day 1 of the month, only in January'],
    ['0,30 8,17 * * *', 'At 0 and 30 minutes past the hour, at 08:00 and 17:00, every day'],
    ['*/10 9-17 * * mon-fri', 'Every 10 minutes, between 09:00 and 17:59, Monday through Friday'],
    ['0 12 22,13 * *', 'At 12:00, on day 13 and 22 of the month'],
    ['1-5/2 3 * * *', 'Every 2 minutes, minutes 1 through 5 past the hour, between 03:00 and 03:59, every day'],
  ])('%s', (cron, words) => expect(cronInWords(cron)).toBe(words));

  test.each([
    ['0 0 L * *', 'At 00:00, on the last day of the month'],
    ['0 0 1,l * *', 'At 00:00, on day 1 and the last day of the month'],
    ['0 9 * * fril', 'At 09:00, on the last Friday of the month'],
    ['0 9 * * 5L', 'At 09:00, on the last Friday of the month'],
    ['0 9 * * L7', 'At 09:00, on the last Sunday of the month'],
    ['0 9 * * fri#2', 'At 09:00, on the second Friday of the month'],
    ['0 9 * * 7#1', 'At 09:00, on the first Sunday of the month'],
    ['0 9 * * MON#1,FRIL', 'At 09:00, on the first Monday of the month and on the last Friday of the month'],
    ['0 9 * * FRI-SUN', 'At 09:00, Friday through Sunday'],
  ])('L, # and 7 as the scheduler reads them: %s', (cron, words) => expect(cronInWords(cron)).toBe(words));

  test.each([
    ['0 9 10 * MON', 'At 09:00, on day 10 of the month, and on Monday'],
    ['0 9 */2 * MON', 'At 09:00, every 2 days in a month, only on Monday'],
  ])('days match as in Debian cron: %s', (cron, words) => expect(cronInWords(cron)).toBe(words));

  test.each(['', '* * *', '61 * * * *', '*/10 * * * * *', '0 0 1 1 * 2027 *', '@reboot', '0 9 * * someday'])('has none for %j', (cron) =>
    expect(cronInWords(cron)).toBeNull());

  test.each([
    ['0 9 LW * *', 'At 09:00, on the last weekday of the month'],
    ['0 9 15W * *', 'At 09:00, on the weekday nearest day 15 of the month'],
    ['0 9 L-3 * *', 'At 09:00, 3 days before the last day of the month'],
    ['0 9 L-3,1 * *', null],
    ['0 9 1,15W * *', null],
  ])('days counted from the end, and nearest weekdays: %s', (cron, words) => expect(cronInWords(cron)).toBe(words));

  test('the expression stands for itself where there are no words', () => expect(scheduleInWords({ cron: '@reboot' })).toBe('@reboot'));
});

test.each([
  [{ rate: 'rate(5 minutes)' }, 'Every 5 minutes'],
  [{ rate: '1 hour' }, 'Every hour'],
  [{ rate: { every: 1, unit: 'days' } }, 'Every day'],
  [{ cron: ['0 9 * * *', '@reboot'] }, 'At 09:00, every day; @reboot'],
  [{ every: '2 weeks', weekdays: ['MON', 'WED'], times: '09:00' }, 'Every 2 weeks on MON, WED at 09:00'],
  [{ every: '1 day', times: ['09:00', '18:30'] }, 'Every day at 09:00, 18:30'],
  [{ at: '2026-11-20T10:00:00Z' }, 'Once, at a set time'],
  [null, 'Once, now'],
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

test.each([
  ['3600', '= 1 h'],
  [' 90 ', '= 1 min 30 s'],
  ['59', undefined],
  ['', undefined],
  ['1h', undefined],
])('%j seconds in words', (typed, words) => expect(secondsInWords(typed)).toBe(words));

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

describe('terms of the API and words of the console', () => {
  test.each(TERMS)('$term is shown as $word, and back', ({ term, word }) => {
    expect([wordOf(term), termOf(word)]).toEqual([word, term]);
    expect([wordOf(word), termOf(term)], 'no word is a term of something else').toEqual([word, term]);
  });

  test.each([
    ['The lane one-time is paused: 14 jobs wait', 'The queue one-time is paused: 14 jobs wait'],
    ['its lane retry is paused since 2026-11-28T03:00:00Z by ann: lane works', 'its queue retry is paused since 2026-11-28T03:00:00Z by ann: lane works'],
    ['The task lane report skipped 2 of its last 3 runs', 'The task lane report skipped 2 of its last 3 runs'],
  ])('%s', (sentence, words) => expect(plain(sentence)).toBe(words));

  test('what is no term is its own word', () => expect([wordOf('task'), termOf('task')]).toEqual(['task', 'task']));

  /** What may be shown: text between tags, and literals with a space or a first letter in upper case. */
  function texts(source: string): string[] {
    const code = source.replace(/\/\*.*?\*\//gs, '').replace(/(^|\s)\/\/.*$/gm, '').replace(/^import .*$/gm, '');
    const literals = [...code.matchAll(/'([^'\n]*)'|"([^"\n]*)"|`([^`]*)`/g)].map(([, one, two, three]) => (one ?? two ?? three ?? '').replace(/\$\{[^}]*\}/g, ''));
    const between = [...code.matchAll(/>([^<>{}=;()]*[A-Za-z][^<>{}=;()]*)</g)].map(([, text]) => text ?? '');
    return [...literals.filter((text) => /^[A-Z]|[a-z] [a-z]/.test(text)), ...between];
  }

  test('the documentation has the same table', () => {
    const page = readFileSync(join(import.meta.dirname, '../../docs/get-started/console.md'), 'utf8');
    const rows = [...(page.split('| the console | the API |')[1] ?? '').split('\n\n')[0]!.matchAll(/^\| ([a-z ]+) \| ([a-z ]+) \|$/gm)];
    expect(rows.map(([, word, term]) => ({ term, word }))).toEqual(TERMS);
  });

  test('no page shows a term', () => {
    const folder = import.meta.dirname;
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => /\.tsx?$/.test(name) && !/\.test\.ts$|^api|^words\.ts$|^code\W/.test(name));
    expect(files.length).toBeGreaterThan(50);
    const shown = files.flatMap((name) => texts(readFileSync(join(folder, name), 'utf8')).filter((text) => /\b(dead letters?|redriv(?:e|es|en)|lanes?)\b/i.test(text)).map((text) => `${name}: ${text}`));
    expect(shown).toEqual([]);
  });
});

describe('how the last runs ended', () => {
  const run = (status: string, late = false) => ({ status, late, started_at: '2026-11-28T08:00:00Z' });
  test.each([
    [[], null],
    [[{ ...run('skipped'), started_at: null }], null],
    [[run('failed')], 'The last run failed.'],
    [[run('succeeded', true)], 'The last run succeeded, and started late.'],
    [[run('killed')], 'The last run was killed.'],
    [[run('running')], 'The first run is running.'],
    [[run('succeeded'), run('failed')], 'The last 2 runs: 1 failed; 100 % on time.'],
    [[run('succeeded'), run('succeeded', true)], 'The last 2 runs: none failed; 50 % on time.'],
  ])('%j', (jobs, words) => expect(runsInWords(jobs)).toBe(words));
});

test.each([
  [{ kind: 'retryable', message: 'HTTP 500' }, 'HTTP 500'],
  [{ kind: 'permanent', message: 'HTTP 422' }, 'HTTP 422'],
  [{ kind: 'timeout', message: 'stopped before the answer came' }, 'timeout: stopped before the answer came'],
])('an error is shown without the word for what a retry may do', (error, told) => {
  expect(errorInWords(error)).toBe(told);
});

describe('the delay of the first start beside the start that is shown', () => {
  const job = (started: string | null, delay: number | null) => ({ scheduled_at: '2026-11-28T08:00:00.000Z', started_at: started === null ? null : `2026-11-28T08:${started}Z`, start_delay_ms: delay });
  test.each([
    [job(null, null), '–'],
    [job('00:00.200', 200), '200 ms'],
    [job('00:00.198', 200), '200 ms'],
    [job('00:31.000', 200), 'first start 200 ms late'],
    [job(null, 2_400), 'first start 2.4 s late'],
    [job('00:31.000', -20), 'first start 20 ms early'],
    [job('00:31.000', 0), 'first start on time'],
  ])('%j', (given, words) => expect(delayInWords(given)).toBe(words));
});

test('the rules of a task are told in words, and a rule that is new to this console by its term', () => {
  expect(overlapInWords('skip')).toBe('The new run is skipped');
  expect(overlapInWords('queue_one')).toBe('The new run waits; further runs are skipped');
  expect(misfireInWords('run_latest')).toBe('Only the latest one runs');
  expect([overlapInWords('new_rule'), misfireInWords('new_rule')]).toEqual(['new rule', 'new rule']);
});
