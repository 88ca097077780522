/** What there is to see on some pages: a day's tasks with their first runs, and a burst that is ahead. */
import { call, RECEIVER, until } from './driver';
const MINUTE = 60_000;
const SAMPLE_TOPIC = 'arn:aws:sns:us-east-1:000000000000:punctual-sample';
const http = (name) => ({ type: 'http', payload: { url: RECEIVER.replace('/ok/console', `/ok/${name}`), method: 'POST', body: { report: name } } });
const DAYS_WORK = [
    { name: 'Nightly report', ...http('nightly'), schedule: { cron: '30 2 * * *', time_zone: 'Europe/Berlin' }, tags: ['reports'] },
    { name: 'Invoices of the day', ...http('invoices'), schedule: { cron: '0 9 * * 1-5', time_zone: 'Europe/Berlin' }, tags: ['billing'] },
    { name: 'Month-end closing', ...http('closing'), schedule: { cron: '0 0 1 * *', time_zone: 'America/New_York' }, tags: ['billing'] },
    { name: 'Exchange rates', ...http('rates'), schedule: { cron: '*/5 * * * *' }, tags: ['finance'] },
    { name: 'Clean up uploads', ...http('uploads'), schedule: { cron: '0 4 * * 0', time_zone: 'Asia/Tokyo' } },
    { name: 'Read the meters', ...http('meters'), schedule: { rate: '20 seconds' }, tags: ['plant'] },
];
export async function ended(id) {
    return until(`${id} has ended`, 60, async () => {
        const job = await call('GET', `/jobs/${id}`);
        return ['succeeded', 'failed', 'killed', 'cancelled', 'skipped'].includes(job.status) && job;
    });
}
/** Six tasks, the fifth paused, the last one running every 20 seconds; the runs of the first four that have ended. */
export async function dayOfWork() {
    const tasks = [];
    for (const each of DAYS_WORK)
        tasks.push(await call('POST', '/tasks', each));
    await call('POST', `/tasks/${tasks[4]?.id ?? ''}/pause`, { reason: 'until the move' });
    const started = await Promise.all(tasks.slice(0, 4).map(({ id }) => call('POST', `/tasks/${id}/run`, {})));
    return { tasks, runs: await Promise.all(started.map(({ id }) => ended(id))) };
}
/**
 * Tasks that need 40 executors for an hour and a half, and 94 for five minutes of it.
 * A type of which nothing has run counts a second each: 60 in a minute of each of these tasks.
 */
export async function burst() {
    const first = Math.ceil(Date.now() / MINUTE) * MINUTE;
    const made = [];
    const plan = async (tasks, from, minutes) => {
        const schedule = { rate: '1 second', start: new Date(first + from * MINUTE).toISOString(), end: new Date(first + (from + minutes) * MINUTE).toISOString() };
        const payload = { topic: SAMPLE_TOPIC, message: 'burst' };
        for (let n = 0; n < tasks; n += 1)
            made.push(await call('POST', '/tasks', { name: `burst ${n}`, type: 'sns', payload, schedule }));
    };
    await plan(6, 30, 90);
    await plan(8, 60, 5);
    return made;
}
export async function remove(tasks) {
    for (const { id } of tasks)
        await call('DELETE', `/tasks/${id}`);
}
