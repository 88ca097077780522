import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { COLOURS, JOB_LOOKS, lookOfJob } from './colours';
import { timeline } from './timeline';
const CSS = readFileSync(new URL('styles.css', import.meta.url), 'utf8');
const defined = (rule) => Object.fromEntries([...(new RegExp(`^${rule} \\{([^}]*)\\}`, 'm').exec(CSS)?.[1] ?? '').matchAll(/(--[\w-]+): #(\w{6});/g)].map((found) => [found[1], found[2]]));
/** The colour as a person names it. */
function nameOf(hex) {
    const [red = 0, green = 0, blue = 0] = [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16));
    const [most, least] = [Math.max(red, green, blue), Math.min(red, green, blue)];
    if (most - least < 0.15 * most)
        return 'grey';
    if (most === blue)
        return 'blue';
    if (most === green)
        return 'green';
    return green - blue > 0.4 * most ? 'yellow' : 'red';
}
/** That of a status; Cloudscape draws each type in one colour. */
function colourOf({ type, colorOverride }) {
    return colorOverride ?? { success: 'green', error: 'red', warning: 'yellow', info: 'blue' }[type] ?? 'grey';
}
test.each([':root', '\\.awsui-dark-mode'])('a colour means the same in a chart and in the word of a status: %s', (rule) => {
    const names = defined(rule);
    const charts = Object.fromEntries(Object.entries(COLOURS).map(([name, value]) => [name, nameOf(names[value.slice(4, -1)] ?? '000000')]));
    expect(charts).toEqual({ succeeded: 'green', failed: 'red', killed: 'red', skipped: 'yellow', cancelled: 'grey', measure: 'blue', high: 'blue' });
    const statuses = Object.fromEntries(Object.entries(JOB_LOOKS).map(([name, look]) => [name, colourOf(look)]));
    expect(statuses).toMatchObject(Object.fromEntries(Object.entries(charts).filter(([name]) => name in JOB_LOOKS)));
    const used = Object.values(COLOURS).map((value) => names[value.slice(4, -1)]);
    expect(new Set(used).size, 'each has its own').toBe(used.length);
});
describe('blue goes on, yellow did not start at its time, and grey is not due or was stopped', () => {
    test.each([
        ['scheduled', false, 'grey'],
        ['queued', false, 'blue'],
        ['queued', true, 'yellow'],
        ['running', false, 'blue'],
        ['running', true, 'blue'],
        ['succeeded', true, 'green'],
        ['skipped', false, 'yellow'],
        ['cancelled', false, 'grey'],
    ])('%s, late: %s', (status, late, colour) => expect(colourOf(lookOfJob({ status, late }))).toBe(colour));
    test('in the timeline, too', () => {
        const at = '2026-11-28T08:00:00.000Z';
        const story = {
            created_at: at, scheduled_at: at, due_at: at, picked_at: null, started_at: null, completed_at: null, failed_at: null, killed_at: null, cancelled_at: null,
            skipped_at: null, cancel_requested_at: null, start_delay_ms: null, attempts: [], redriven_at: null,
        };
        const last = (given) => colourOf({ type: timeline(given).at(-1)?.look ?? 'pending' });
        expect(last({ ...story, status: 'running' })).toBe('blue');
        expect(last({ ...story, status: 'skipped', skipped_at: at })).toBe('yellow');
        expect(last({ ...story, status: 'cancelled', cancelled_at: at })).toBe('grey');
    });
});
