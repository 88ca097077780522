import { expect, test } from 'vitest';
import { byDay, daysOf, endedOf, onTimeOf, since, slowest, slowTasks, successOf, sum } from './figures';
const NONE = { type: 'log', runs: 0, average_ms: null, p50_ms: null, p95_ms: null, succeeded: 0, failed: 0, killed: 0, cancelled: 0, skipped: 0, late: 0 };
const of = (given) => ({ ...NONE, ...given });
test('what was called off counts neither for nor against being on time', () => {
    expect(onTimeOf(of({ succeeded: 8, failed: 1, skipped: 1, cancelled: 10, late: 2 }))).toBeCloseTo(0.8);
    expect(onTimeOf(of({ cancelled: 3 }))).toBeNull();
});
test('success is of what was tried', () => {
    expect(successOf(of({ succeeded: 3, killed: 1, skipped: 9 }))).toBe(0.75);
    expect(successOf(NONE)).toBeNull();
});
test('counts of several types add up', () => expect(endedOf(sum([of({ succeeded: 2, late: 1 }), of({ failed: 3 })]))).toBe(5));
test('a span has all its days, also over the end of a month', () => expect(daysOf('2026-11-29T23:00:00.000Z', '2026-12-01T00:00:00.000Z')).toEqual(['2026-11-29', '2026-11-30', '2026-12-01']));
test('a chart begins with the first day on which anything ended, but is not narrower than it is readable', () => {
    const days = daysOf('2026-11-01T00:00:00.000Z', '2026-11-30T00:00:00.000Z');
    const from = (...told) => since(days, told.map((day) => ({ day, types: [] })), 7);
    expect([from('2026-11-11', '2026-11-29')[0], from('2026-11-29')[0], from()[0]]).toEqual(['2026-11-11', '2026-11-24', '2026-11-24']);
    expect(since(['2026-11-30'], [], 7)).toEqual(['2026-11-30']);
});
test('a chart has a value for every day, of one type or of all', () => {
    const daily = [{ day: '2026-11-20', types: [of({ succeeded: 2, p95_ms: 40 }), of({ type: 'http', succeeded: 5, p95_ms: 900 })] }];
    const days = ['2026-11-19', '2026-11-20'];
    expect(byDay(days, daily, null, (types) => endedOf(sum(types)))).toEqual([{ x: '2026-11-19', y: 0 }, { x: '2026-11-20', y: 7 }]);
    expect(byDay(days, daily, 'http', (types) => types[0]?.p95_ms ?? null)).toEqual([{ x: '2026-11-20', y: 900 }]);
});
test('the slowest type is first, and one that never ran is not there', () => expect(slowest([of({ type: 'a', p95_ms: 5 }), NONE, of({ type: 'b', p95_ms: 50 })]).map(({ type }) => type)).toEqual(['b', 'a']));
test('runs tell which task is slow; jobs of none, and what has not succeeded, do not count', () => {
    const ran = (task_id, ms) => ({
        task_id, type: 'http', started_at: '2026-11-20T10:00:00.000Z', completed_at: ms === null ? null : new Date(Date.UTC(2026, 10, 20, 10) + ms).toISOString(),
    });
    expect(slowTasks([ran('a', 100), ran('b', 400), ran('a', 300), ran(null, 9_000), ran('c', null)])).toEqual([
        { id: 'b', type: 'http', runs: 1, average: 400, longest: 400 },
        { id: 'a', type: 'http', runs: 2, average: 200, longest: 300 },
    ]);
});
