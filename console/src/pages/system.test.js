import { createElement } from 'react';
import { beforeAll, expect, test } from 'vitest';
import { rendered } from '../rendered';
process.env['TZ'] = 'Asia/Tokyo'; // before the formats of times are made
let Health;
beforeAll(async () => {
    ({ Health } = await import('./system'));
});
const lanes = [{ lane: 'one-time', paused_at: null, paused_by: null, paused_by_name: null, reason: null, waiting: 0, at_least: false }];
function shown(oldest, late) {
    return rendered(createElement(Health, { lag: 0, oldest, now: { lanes, late: { count: late, at_least: false } } }));
}
test('the oldest open minute is in the zone of the viewer, with UTC beside it', () => {
    const page = shown('2026-11-27T22:50:00Z', 0);
    expect(page).toContain('Nov 28, 07:50:00');
    expect(page).toContain('title="2026-11-27T22:50:00Z (UTC)"');
});
test('the scheduler is not on time while jobs are late', () => {
    expect(shown(null, 0)).toContain('On time');
    expect(shown(null, 14)).toContain('14 jobs late');
    expect(shown(null, 14)).not.toContain('On time');
});
