import { expect, test } from 'vitest';

import { chosenInWords, counted, countsInWords, headerOf, toCancel, toChange, toReplayMany } from './operations';

const NOW = Date.parse('2026-11-25T12:00:00Z');
const AT = '2026-11-25T12:00:00.000Z';
const ANY = { status: [], type: '', task: '', tag: '' };

test('jobs to cancel: each view of the list is a bound', () => {
  expect(toCancel(ANY, true, NOW)).toEqual({ from: AT });
  expect(toCancel(ANY, false, NOW)).toEqual({ to: AT });
  expect(toCancel({ ...ANY, to: '2026-11-25T13:00:00Z' }, true, NOW)).toEqual({ from: AT, to: '2026-11-25T13:00:00Z' });
  expect(toCancel({ ...ANY, from: '2026-11-25T11:00:00Z', to: '2026-11-25T13:00:00Z' }, false, NOW)).toEqual({ from: '2026-11-25T11:00:00Z', to: AT });
  expect(toCancel({ ...ANY, from: '2026-11-26T00:00:00Z' }, true, NOW)).toEqual({ from: '2026-11-26T00:00:00Z' });
});

test('jobs to cancel: of several statuses those that can be cancelled', () => {
  expect(toCancel({ ...ANY, status: ['scheduled', 'failed', 'running'], type: 'http', task: '01A', tag: 'x' }, false, NOW)).toEqual({
    status: ['scheduled', 'running'],
    type: 'http',
    task: '01A',
    tag: ['x'],
    to: AT,
  });
  expect(toCancel({ ...ANY, status: ['failed', 'killed'] }, false, NOW)).toBeNull();
});

test('jobs to replay: those of the history that have ended', () => {
  expect(toReplayMany(ANY, false, NOW)).toEqual({ to: AT });
  expect(toReplayMany({ ...ANY, status: ['failed', 'running'], type: 'http', task: '01A', tag: 'x', from: '2026-11-25T11:00:00Z', to: '2026-11-25T13:00:00Z' }, false, NOW)).toEqual({
    status: ['failed'],
    type: 'http',
    task: '01A',
    tag: ['x'],
    from: '2026-11-25T11:00:00Z',
    to: AT,
  });
  expect(toReplayMany({ ...ANY, status: ['running'] }, false, NOW)).toBeNull();
  expect(toReplayMany(ANY, true, NOW)).toBeNull();
});

test('tasks to change: without a filter all are named, and a status that the action does not change is none', () => {
  const any = { status: '', type: '', name: '', tag: '' };
  expect(toChange('pause_tasks', any)).toEqual({ all: true });
  expect(toChange('pause_tasks', { ...any, status: 'active' })).toEqual({ all: true }); // it pauses active ones only
  expect(toChange('pause_tasks', { ...any, status: 'inactive' })).toBeNull();
  expect(toChange('resume_tasks', { ...any, status: 'active' })).toBeNull();
  expect(toChange('delete_tasks', { ...any, status: 'ended', name: 'n', tag: 't', type: 'log' })).toEqual({ status: ['ended'], name: 'n', tag: ['t'], type: 'log' });
});

test('the filter is described in words', () => {
  const none = { type: null, tag: [], status: [], task: null, lane: null, name: null, calendar: null, fingerprint: null, from: null, to: null };
  expect(chosenInWords(none)).toEqual([]);
  expect(chosenInWords({ ...none, tag: ['a', 'b'], status: ['inactive', 'ended'], name: 'x' })).toEqual(['name contains x', 'tag a and b', 'status paused or ended']);
  expect([counted(1, 'task'), counted(1_200, 'job')]).toEqual(['1 task', '1,200 jobs']);
});

test('counts: jobs that stay dead beside another job of their key are named', () => {
  const counts = { action: 'redrive', matched: 8, done: 6, skipped: 1, failed: 1, conflicts: 0, rate: 10 } as const;
  expect(countsInWords(counts)).toBe('8 matched: 6 run again at 10/s, 1 skipped, 1 failed');
  expect(countsInWords({ ...counts, matched: 9, conflicts: 1 })).toContain('1 failed, 1 still failed, since another open job has their key');
});

test.each([
  ['cancel_jobs', 'running', 1, 1, null, 'Cancellation of jobs'],
  ['cancel_jobs', 'done', 1, 1, null, 'Cancellation of jobs done'],
  ['pause_tasks', 'aborted', 1, 1, null, 'Pause of tasks aborted'],
  ['redrive', 'running', 2, 2, 'f1', 'New runs of failed jobs'],
  ['redrive', 'done', 3, 3, 'f1', 'All failed jobs of this group run again'],
  ['redrive', 'done', 3, 3, null, 'All 3 failed jobs run again'],
  ['redrive', 'done', 3, 2, 'f1', '2 of 3 failed jobs run again'],
  ['redrive', 'done', 0, 0, 'f1', 'No failed jobs run again'],
  ['redrive', 'aborted', 3, 2, 'f1', 'Aborted: 2 failed jobs run again'],
] as const)('%s, %s, matched %i, done %i, of the error %s: %s', (action, status, matched, done, fingerprint, words) => {
  const filter = { fingerprint } as Parameters<typeof headerOf>[0]['filter'];
  expect(headerOf({ action, status, matched, done, limit: null, filter })).toBe(words);
});

test('with a limit, a group may have more', () =>
  expect(headerOf({ action: 'redrive', status: 'done', matched: 3, done: 3, limit: 3, filter: { fingerprint: 'f1' } as Parameters<typeof headerOf>[0]['filter'] })).toBe('All 3 failed jobs run again'));
