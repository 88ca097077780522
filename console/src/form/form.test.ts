import { describe, expect, test } from 'vitest';

import { ApiError, type Task } from '../api/client';
import { empty, errorOf, fieldErrors, fromTask, leftOver, ofLists, rateOf, scheduleOf, toRequest } from './draft';
import { anything, asText, fieldsOf, json, withField } from './schema';

const TASK = {
  id: '01', name: 'Nightly', description: null, status: 'active', type: 'http', payload: { url: 'https://example.com' },
  schedule: { cron: '30 2 * * *', time_zone: 'Europe/Berlin', jitter_seconds: 5, dst_gap: 'skip' }, tags: ['a'], ordering_key: null,
  on_failure: null, target: null, overlap: 'skip', misfire: 'run_latest', misfire_threshold_seconds: 60, max_catch_up: null, max_attempts: 4,
  retry: { base_seconds: 2, cap_seconds: 30, jitter: 'none', max_elapsed_seconds: null, on_timeout: false }, timeout_seconds: 20,
  callback: null, events: false, notifications: { emails: ['ann@example.com'], webhooks: [], receivers: [], on: ['failure'], after_failures: 2, digest_seconds: 60 }, generation: 3, created_at: '', updated_at: '', inactive_at: null, inactive_reason: null, next_runs: [],
} as unknown as Task;

describe('a draft', () => {
  test('of a task asks for that very task again', () => {
    const asked = toRequest(fromTask(TASK, empty('UTC')));
    expect(asked).toMatchObject({
      name: 'Nightly', type: 'http', payload: TASK.payload, schedule: TASK.schedule, overlap: 'skip', misfire: 'run_latest',
      misfire_threshold_seconds: 60, max_attempts: 4, timeout_seconds: 20, tags: ['a'],
      retry: { base_seconds: 2, cap_seconds: 30, jitter: 'none', on_timeout: false },
      notifications: TASK.notifications,
    });
    expect(asked).not.toHaveProperty('ordering_key');
    expect(asked).not.toHaveProperty('callback');
  });

  test('keeps what the form does not know, and nothing that only the API sets', () => {
    const unknown = { ...TASK, moon: { phase: 'full' }, tide: null, retry: { ...TASK.retry, moon: 1 }, schedule: { ...TASK.schedule, moon: 2 }, notifications: { ...TASK.notifications, webhooks: [{ url: 'https://example.com', signing_secret: 's', format: 'slack' }] } } as unknown as Task;
    const asked = toRequest(fromTask(unknown, empty('UTC')));
    expect(asked).toMatchObject({ moon: { phase: 'full' }, notifications: { webhooks: [{ format: 'slack' }] } });
    expect([asked.retry, asked.schedule]).toMatchObject([{ moon: 1 }, { moon: 2 }]);
    expect(toRequest({ ...fromTask(unknown, empty('UTC')), kind: 'rate' }).schedule).not.toHaveProperty('moon');
    for (const name of ['id', 'status', 'generation', 'next_runs', 'tide']) expect(asked).not.toHaveProperty(name);
  });

  test('that names a target says no type', () => {
    const asked = toRequest(fromTask({ ...TASK, target: 'invoices' }, empty('UTC')));
    expect(asked).toMatchObject({ target: 'invoices', payload: TASK.payload });
    expect(asked).not.toHaveProperty('type');
  });

  test('that does not recur has no misfire rule', () => {
    const asked = toRequest({ ...fromTask(TASK, empty('UTC')), kind: 'now' });
    expect(asked.schedule).toBeNull();
    expect(asked).not.toHaveProperty('misfire');
    expect(asked).not.toHaveProperty('misfire_threshold_seconds');
  });

  test('without a time still names the field, so that the API says what is missing', () =>
    expect(scheduleOf({ ...empty('UTC'), kind: 'at' })).toEqual({ at: '' }));

  test('has the calendars and dates that are typed, and those of its task', () => {
    const typed = { ...empty('UTC'), kind: 'rate' as const, exclude: 'de-holidays,  2026-12-24', onExcluded: 'next_day' };
    expect(scheduleOf(typed)).toEqual({ rate: '5 minutes', exclude: ['de-holidays', '2026-12-24'], on_excluded: 'next_day' });
    expect(scheduleOf({ ...empty('UTC'), kind: 'rate' as const, only: 'school', workingDays: 'mon, tue' })).toEqual({ rate: '5 minutes', only: ['school'], working_days: ['MON', 'TUE'] });
    expect(fromTask({ ...TASK, schedule: { cron: '0 9 * * *', only: ['a', 'b'], working_days: ['SAT'] } } as unknown as Task, empty('UTC'))).toMatchObject({ only: 'a, b', workingDays: 'SAT' });
    const schedule = { cron: '0 9 * * *', exclude: ['de-holidays'], on_excluded: 'next_day', working_days: ['MON'] };
    const task = { ...TASK, schedule } as unknown as Task;
    expect(toRequest(fromTask(task, empty('UTC'))).schedule).toEqual(schedule);
  });

  test('leaves UTC unsaid', () => {
    expect(scheduleOf({ ...empty('UTC'), kind: 'rate', every: '5', unit: 'minutes' })).toEqual({ rate: '5 minutes' });
    expect(scheduleOf({ ...empty('Asia/Tokyo'), kind: 'rate' })).toEqual({ rate: '5 minutes', time_zone: 'Asia/Tokyo' });
  });

  test.each([
    [{ cron: ['0 9 * * MON-FRI', '30 11 LW * *'], dst_overlap: 'both' }],
    [{ every: '2 weeks', weekdays: ['MON', 'WED'], times: '09:00', start: '2026-12-06T23:00:00.000Z', time_zone: 'Europe/Berlin' }],
    [{ every: '2 weeks', weekdays: 'FRI', times: ['09:00', '18:30'], start: '2026-12-06T23:00:00.000Z', dst_gap: 'skip' }],
    [{ every: '3 days', times: '09:00', start: '2026-12-06T23:00:00.000Z' }],
  ])('of the schedule %j asks for it again', (schedule) => {
    const asked = toRequest(fromTask({ ...TASK, schedule } as unknown as Task, empty('UTC')));
    expect(asked.schedule).toEqual(schedule);
    expect(asked.misfire).toBe('run_latest');
  });

  test('hands on what is no number, for the API to refuse', () =>
    expect(toRequest({ ...empty('UTC'), maxAttempts: 'many' }).max_attempts).toBe('many'));
});

test.each([
  ['rate(5 minutes)', { every: '5', unit: 'minutes' }],
  ['1 hour', { every: '1', unit: 'hours' }],
  ['often', null],
])('the rate %s in parts', (rate, parts) => expect(rateOf(rate)).toEqual(parts));

test('errors go to their fields, and those of none are kept', () => {
  const error = new ApiError(400, 'validation_failed', '', [
    { field: 'name', rule: 'is required' },
    { field: 'payload.url', rule: 'is required' },
    { field: 'name', rule: 'must not be blank' },
  ]);
  const errors = fieldErrors(error);
  expect(errors).toEqual({ name: 'is required; must not be blank', 'payload.url': 'is required' });
  expect(leftOver(errors, ['name'])).toEqual(['payload.url: is required']);
  expect(ofLists({ 'dates.1': 'must be a date', name: 'is required' }, ['dates', 'name'], { dates: ['2026-12-24', '24.12.'] })).toEqual({ dates: '24.12.: must be a date', name: 'is required' });
  expect(ofLists({ 'a.b.0': 'x', 'a.b.1': 'y', 'c.0': 'z' }, ['a.b'], { a: { b: ['m', 'n'] } })).toEqual({ 'a.b': 'm: x; n: y', 'c.0': 'z' });
  expect(fieldErrors(error, 'schedule.')).toHaveProperty(['schedule.name']);
  expect(errorOf({ 'schedule.cron.1': 'must have five fields' }, 'schedule.cron')).toBe('must have five fields');
  expect(errorOf({ 'schedule.cron': 'a', 'schedule.cron.1': 'b' }, 'schedule.cron')).toBe('a');
  expect(errorOf({}, 'schedule.cron')).toBeUndefined();
});

describe('a form of a schema', () => {
  const fields = fieldsOf({
    properties: {
      body: {},
      method: { type: 'string', enum: ['GET', 'POST'], default: 'GET' },
      url: { type: 'string', maxLength: 4096 },
      headers: { type: 'object', additionalProperties: { type: 'string' } },
      detail: { type: 'object', additionalProperties: true },
      to: { type: 'array', items: { type: 'string' } },
      text: { anyOf: [{ type: 'string' }, { type: 'null' }] },
      subject_line: { type: 'string', maxLength: 100 },
      wait: { type: 'boolean' },
      sleep: { type: 'number' },
      style: { $ref: '#/$defs/Style' },
    },
    required: ['url'],
    $defs: { Style: { type: 'string', enum: ['a', 'b'] } },
  });

  test('asks for what is required first', () => expect(fields[0]).toMatchObject({ name: 'url', required: true }));

  test('has the widget that fits each field', () =>
    expect(Object.fromEntries(fields.map((each) => [each.name, each.widget]))).toEqual({
      url: 'line', body: 'any', method: 'choice', headers: 'pairs', detail: 'json', to: 'lines', text: 'text', subject_line: 'line',
      wait: 'switch', sleep: 'number', style: 'choice',
    }));

  test('takes an empty field for an absent one', () => {
    expect(withField({ a: 1, b: 2 }, 'a', '')).toEqual({ b: 2 });
    expect(withField({ b: 2 }, 'a', false)).toEqual({ a: false, b: 2 });
  });

  test('reads JSON where it looks like JSON, and text elsewhere', () => {
    expect(anything('{"a": 1}')).toEqual({ a: 1 });
    expect(anything('{broken')).toBe('{broken');
    expect(anything('12')).toBe('12');
    expect(asText({ a: 1 })).toBe('{\n  "a": 1\n}');
    expect(json('{"a"')).toMatchObject({ ok: false });
    expect(json(' ')).toEqual({ ok: true, value: undefined });
  });
});
