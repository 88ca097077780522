/** Pictures of pages for the documentation, at both widths, light and dark: `make screenshots`. */
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ARTEFACTS, call, CONSOLE, launch, open, RECEIVER, signIn, until } from './driver';
import { burst, dayOfWork, ended, remove } from './scenes';
const LOOKS = [1440, 400].flatMap((width) => [false, true].map((dark) => ({ width, dark })));
const on = { timeout: 60_000 };
let browser;
let tasks;
let punctual;
beforeAll(async () => {
    browser = await launch();
    ({ tasks } = await dayOfWork());
    punctual = await until('a run of the meters started within a millisecond', 240, async () => {
        const { jobs } = await call('GET', `/tasks/${tasks[5]?.id ?? ''}/jobs?status=succeeded`);
        return jobs.find(({ start_delay_ms: delay }) => delay === 0);
    });
    const dying = { type: 'http', payload: { url: RECEIVER.replace('/ok/console', '/status/404/orders') }, max_attempts: 1, tags: ['orders'] };
    await Promise.all([1, 2, 3].map(async () => ended((await call('POST', '/jobs', dying)).id)));
}, 300_000);
afterAll(async () => {
    await remove(tasks ?? []);
    await browser?.close();
});
/** The pages; each with a text that is there, so often, once it has loaded. */
const pages = () => ({
    tasks: ['/tasks', '100 %', 5], // the sixth is paused
    task: [`/tasks/${tasks[5]?.id ?? ''}`, 'Delay and duration'],
    'task-form': [`/tasks/new?clone=${tasks[0]?.id ?? ''}`, /\+0[12]:00/],
    jobs: ['/jobs', 'Succeeded'],
    job: [`/jobs/${punctual.id}`, 'Response: 200'],
    'job-form': ['/jobs/new', 'Attempt time-out (s)'],
    'dead-letters': ['/dead-letters', /HTTP 404/],
    metrics: ['/metrics', 'By type'],
});
test.each(LOOKS)('the pages, $width pixels wide, dark: $dark', { timeout: 300_000 }, async ({ width, dark }) => {
    const page = await open(browser, { width, dark, height: width === 400 ? 844 : 900 });
    await signIn(page, '/jobs');
    const take = async (name, path, text, times = 1) => {
        await page.goto(`${CONSOLE}${path}`);
        await page.getByText(text).nth(times - 1).waitFor(on);
        await until('it has loaded', 20, async () => (await page.getByText(/^Loading /).count()) === 0);
        expect(await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth), `${name} is too wide`).toBeLessThanOrEqual(0);
        await page.screenshot({ path: join(ARTEFACTS, `${name}-${width}-${dark ? 'dark' : 'light'}.png`) });
    };
    for (const [name, [path, text]] of Object.entries(pages()))
        await take(name, path, text);
    const made = await burst();
    await take('capacity', '/capacity', /9\d executors required, 60 available/);
    await remove(made);
    await page.context().close();
});
