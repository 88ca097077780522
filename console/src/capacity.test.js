import { describe, expect, test } from 'vitest';
import { marked, points, shortages, totals } from './capacity';
function minutes(...required) {
    return required.map((required_instances, at) => ({
        scheduled_at: new Date(Date.UTC(2026, 10, 20, 10, at)).toISOString(), jobs: required_instances * 3, compute_ms: required_instances * 9_000, required_instances,
    }));
}
const requiredOf = (all) => shortages(all, 5).map((each) => marked(all, each).map(({ y }) => y));
describe('scaling is needed', () => {
    test('and the line is marked there, from the minute before to the minute after', () => {
        expect(requiredOf(minutes(1, 6, 9, 5, 7, 0))).toEqual([[1, 6, 9, 5], [5, 7, 0]]);
        expect(requiredOf(minutes(6, 1, 2, 8))).toEqual([[6, 1], [2, 8]]);
    });
    test('in each row of minutes that require more than there may be', () => expect(shortages(minutes(1, 6, 9, 5, 7, 0), 5)).toEqual([
        { from: '2026-11-20T10:01:00.000Z', to: '2026-11-20T10:03:00.000Z', required: 9, minutes: 2 },
        { from: '2026-11-20T10:04:00.000Z', to: '2026-11-20T10:05:00.000Z', required: 7, minutes: 1 },
    ]));
    test('nowhere if what is required is just what there may be', () => expect(shortages(minutes(5, 5), 5)).toEqual([]));
    test('up to the end of what is told', () => expect(shortages(minutes(6, 6), 5)).toMatchObject([{ minutes: 2, to: '2026-11-20T10:02:00.000Z' }]));
});
test('the busiest minute is the first of those with most jobs, and none where there are no jobs', () => {
    expect(totals(minutes(1, 4, 4))).toMatchObject({ jobs: 27, required: 4, busiest: { scheduled_at: '2026-11-20T10:01:00.000Z' } });
    expect(totals(minutes(0, 0))).toEqual({ jobs: 0, required: 0, busiest: null });
});
test('a chart has a point a minute', () => expect(points(minutes(0, 2), (minute) => minute.jobs).map(({ y }) => y)).toEqual([0, 6]));
