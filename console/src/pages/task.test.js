import { createElement } from 'react';
import { expect, test } from 'vitest';
import { rendered } from '../rendered';
import { LastRuns, Overview } from './task';
const TASK = {
    id: '01ARZ3NDEKTSV4RRFFQ69G5FAV', name: 'Nightly', status: 'active', type: 'http', target: null, payload: { url: 'https://api.example.com/orders?day=1' },
    schedule: { cron: '30 2 * * *', time_zone: 'Europe/Berlin' }, tags: [], overlap: 'skip', misfire: 'run_latest', max_attempts: 3, timeout_seconds: 30,
    key: null, ordering_key: null, generation: 1, updated_at: '2026-11-28T08:00:00Z', inactive_at: null, inactive_reason: null, next_runs: [],
};
function text(element) {
    return rendered(element).replace(/<[^>]+>/g, ' ').replace(/\s+/g, ' ');
}
test('the top of a task says what it calls, and its rules in words with their terms', () => {
    const page = text(createElement(Overview, { task: TASK }));
    expect(page).toContain('Calls api.example.com/orders ');
    expect(page).toContain('If the previous run has not ended The new run is skipped overlap: skip');
    expect(page).toContain('Missed runs Only the latest one runs misfire: run_latest');
});
function runs(count) {
    const at = (n) => `2026-11-28T08:0${n}:00.000Z`;
    const jobs = Array.from({ length: count }, (_, n) => ({
        status: 'succeeded', late: false, scheduled_at: at(n), started_at: at(n), completed_at: at(n).replace('00.000', '02.400'), start_delay_ms: 20,
    }));
    return rendered(createElement(LastRuns, { live: { data: { items: jobs }, error: null, loading: false } }));
}
test('of one run the figures are shown, and of more the chart', () => {
    const words = (page) => page.replace(/<[^>]+>/g, ' ').replace(/\s+/g, ' ');
    expect(words(runs(1))).toContain('The last run succeeded. Delay 20 ms Duration 2.4 s');
    expect(runs(1)).not.toContain('aria-label="Delay and duration of the last runs"');
    expect(runs(2)).toContain('aria-label="Delay and duration of the last runs"');
    expect(words(runs(0))).toContain('No runs yet');
});
