import { describe, expect, test } from 'vitest';

import type { Job } from '../api/client';
import { asPosted, fromJob, NEW_JOB, toJob } from './job-draft';

describe('a job that is posted', () => {
  test('at once has no time', () => expect(toJob(NEW_JOB)).not.toHaveProperty('execute_at'));
  test('after a delay has its seconds', () => expect(toJob({ ...NEW_JOB, start: 'after', after: '2', unit: 'hours' })).toMatchObject({ delay_seconds: 7_200 }));
  test.each(['soon', ''])('after a delay of "%s" hands it on, for the API to refuse', (after) =>
    expect(toJob({ ...NEW_JOB, start: 'after', after })).toMatchObject({ delay_seconds: after }));
  test('at no time yet sends none, for the API to refuse', () => expect(toJob({ ...NEW_JOB, start: 'at' })).toMatchObject({ execute_at: '' }));
});

test('a duplicate has the content of the job, and neither its time, its key nor its group', () => {
  const job = {
    type: 'http', target: null, payload: { url: 'https://example.com' }, tags: ['a'], max_attempts: 5, timeout_seconds: 20, callback: null, ordering_key: 'k', on_failure: 'pause', events: true, key: 'order-17', group_id: '01ARZ3NDEKTSV4RRFFQ69G5FAV', group_member: 3,
    notifications: { emails: ['ann@example.com'], webhooks: [], receivers: [], on: ['failure'], after_failures: 1, digest_seconds: 60 },
    retry: { base_seconds: 2, cap_seconds: 30, jitter: 'none', max_elapsed_seconds: null, on_timeout: true }, scheduled_at: '2026-01-01T00:00:00Z',
  } as unknown as Job;
  const asked = toJob(fromJob(job));
  expect(asked).toMatchObject({
    type: 'http', payload: { url: 'https://example.com' }, tags: ['a'], max_attempts: 5, timeout_seconds: 20, ordering_key: 'k', on_failure: 'pause', events: true,
    retry: { base_seconds: 2, cap_seconds: 30, jitter: 'none', on_timeout: true }, notifications: { emails: ['ann@example.com'] },
  });
  expect(asked).not.toHaveProperty('execute_at');
  expect(asked).not.toHaveProperty('key'); // the first one may have it still
  expect(asked).not.toHaveProperty('group'); // it may be sealed
});

describe('the request that posts a stored job', () => {
  const job = { type: 'log', target: null, payload: { message: 'x' }, retry: {}, callback: null, tags: [], notifications: null, key: 'order-17', scheduled_at: '2026-01-01T00:00:10Z', expires_at: '2026-01-01T00:00:20Z' } as unknown as Job;
  test('has its key, and its time while that is ahead', () =>
    expect(asPosted(job, Date.parse('2026-01-01T00:00:00Z'))).toMatchObject({ key: 'order-17', execute_at: '2026-01-01T00:00:10Z', expires_at: '2026-01-01T00:00:20Z' }));
  test('starts at once when its time has passed', () => {
    const asked = asPosted(job, Date.parse('2026-01-01T00:00:30Z'));
    expect(asked).not.toHaveProperty('execute_at');
    expect(asked).not.toHaveProperty('expires_at');
  });
});
