import { expect, test } from 'vitest';
import { timeline } from './timeline';
const at = (second) => `2026-11-20T10:00:${String(second).padStart(2, '0')}.000Z`;
const NOTHING = {
    status: 'scheduled', created_at: at(0), scheduled_at: at(10), due_at: at(10), picked_at: null, started_at: null, completed_at: null,
    failed_at: null, killed_at: null, cancelled_at: null, skipped_at: null, cancel_requested_at: null, start_delay_ms: null, attempts: [], redriven_at: null,
};
const attempt = (number, second, outcome, message = null) => ({
    number, picked_at: at(second), started_at: at(second + 1), ended_at: at(second + 2), outcome, output: null, log: null, output_kept: 'excerpt',
    failure: message === null ? null : { kind: 'retryable', message, retry_after_seconds: null },
});
const words = (story) => timeline(story).map((step) => step.what);
test('what waits is due', () => expect(timeline(NOTHING).at(-1)).toMatchObject({ what: 'Due', at: at(10), look: 'pending' }));
test('what runs for the first time has been picked and started', () => expect(words({ ...NOTHING, status: 'running', picked_at: at(9), started_at: at(10), start_delay_ms: 0 })).toEqual(['Created', 'Claimed', 'Started', 'Running']));
test('a retry is told attempt by attempt, with the error and the delay', () => {
    const story = { ...NOTHING, status: 'succeeded', completed_at: at(22), start_delay_ms: 2, attempts: [attempt(1, 9, 'failed', 'no answer'), attempt(2, 20, 'succeeded')] };
    expect(words(story)).toEqual([
        'Created', 'Claimed, attempt 1', 'Started, attempt 1', 'Attempt 1 failed', 'Claimed, attempt 2', 'Started, attempt 2', 'Attempt 2 succeeded', 'Succeeded',
    ]);
    expect(timeline(story)[2]?.note).toBe('2 ms after its time');
    expect(timeline(story)[3]).toMatchObject({ note: 'no answer', look: 'error' });
});
test('the delay of the first start is not told of a later attempt, when the first is no longer listed', () => {
    const story = { ...NOTHING, status: 'succeeded', completed_at: at(22), start_delay_ms: 2, attempts: [attempt(6, 20, 'succeeded')] };
    expect(timeline(story)[2]).toMatchObject({ what: 'Started, attempt 6', note: null });
    expect(timeline({ ...NOTHING, status: 'running', picked_at: at(29), started_at: at(30), start_delay_ms: 2 })[2]).toMatchObject({ what: 'Started', note: null });
});
test('what failed once and waits tells of its next attempt', () => expect(timeline({ ...NOTHING, due_at: at(30), attempts: [attempt(1, 9, 'failed', 'x')] }).at(-1)).toMatchObject({ what: 'Next attempt', at: at(30) }));
test.each([
    ['skipped', 'skipped_at', 'Skipped'],
    ['cancelled', 'cancelled_at', 'Cancelled'],
    ['killed', 'killed_at', 'Killed'],
])('what was %s ends so', (status, field, what) => expect(timeline({ ...NOTHING, status, [field]: at(11) }).at(-1)).toMatchObject({ what, at: at(11) }));
