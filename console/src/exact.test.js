import { afterEach, describe, expect, test, vi } from 'vitest';
import { api, take } from './api/client';
import { jobCall, curlOf, pythonOf, taskCall } from './code';
import { Exact, read, readAnswer, write } from './exact';
import { empty, fromTask, toEdit, toRequest } from './form/draft';
import { asPosted, fromJob, toJob } from './form/job-draft';
import { json, typedNumber } from './form/schema';
import { pretty } from './parts/parts';
const NUMBERS = ['0', '-0', '-0.0', '1.0', '100.00', '9007199254740993', '-9007199254740993', '12345678901234567890', `1${'0'.repeat(400)}`, '1e400', '1e2', '1E+2', '5e-324', '0.1', '1.7976931348623157e308', '0.30000000000000004441'];
const TEXTS = ['', '12345678901234567890', '1.0', 'say "9007199254740993"', '\\', '\u2028\u2029\u0085', '\u0000\u001b[2J\u009b', '\u202e', '😀', '\ud800', "it's", '{"a":1.0}', '$1', '__proto__'];
/** Numbers of a small generator with a seed (mulberry32). */
function chances(seed) {
    let state = seed;
    return () => {
        state = (state + 0x6d2b79f5) | 0;
        let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
        mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
        return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
    };
}
/** A hostile JSON text, as the API writes JSON. */
function hostile(chance, depth = 3) {
    const one = (all) => all[Math.floor(chance() * all.length)];
    const text = () => JSON.stringify(one(TEXTS) + (chance() < 0.3 ? one(TEXTS) : ''));
    const kind = Math.floor(chance() * (depth > 0 ? 8 : 5));
    if (kind < 2)
        return one(NUMBERS);
    if (kind < 4)
        return text();
    if (kind === 4)
        return one(['null', 'true', 'false']);
    const count = Math.floor(chance() * 4);
    if (kind === 5)
        return `[${Array.from({ length: count }, () => hostile(chance, depth - 1)).join(',')}]`;
    // Names that are numbers would change places, which is the same JSON.
    return `{${Array.from({ length: count }, (_, at) => `${JSON.stringify(`n${at}${one(TEXTS)}`)}:${hostile(chance, depth - 1)}`).join(',')}}`;
}
const VALUES = Array.from({ length: Number(process.env['VALUES'] ?? 200) }, (_, seed) => hostile(chances(seed)));
const WORK = {
    type: 'own', target: null, tags: [], max_attempts: 3, timeout_seconds: 300, callback: null, ordering_key: null, on_failure: null, events: false, notifications: null,
    retry: { base_seconds: 1, cap_seconds: 900, jitter: 'full', max_elapsed_seconds: null, on_timeout: true },
};
const TASK = { ...WORK, id: '01', name: ' padded ', description: ' as it is\r\n', key: null, schedule: { cron: '0  2 * * *', time_zone: 'UTC' }, overlap: 'skip', misfire: 'run_latest', misfire_threshold_seconds: 60, max_catch_up: null, generation: 7 };
const JOB = { ...WORK, id: '02', key: null, scheduled_at: '2026-01-01T00:00:00Z', expires_at: null };
/** What the console has of a record, when the API answers it with this payload. */
async function answered(record, payload) {
    const text = `{"success":true,"data":${JSON.stringify({ ...record, payload: 'HERE' }).replace('"HERE"', () => payload)}}`;
    vi.stubGlobal('fetch', () => Promise.resolve(new Response(text, { headers: { 'content-type': 'application/json' } })));
    return (await take(api.GET('/api/v1/tasks/{task_id}', { baseUrl: 'https://example.com', params: { path: { task_id: '01' } } })));
}
afterEach(() => vi.unstubAllGlobals());
test('each value is read and written as it was', () => {
    expect(VALUES.filter((text) => write(read(text)) !== text)).toEqual([]);
});
test.each(['01', '1.', '-', '1e', '[1.0.0]', '{"a":00000000000000000001}', '12345678901234567890x', ''])('%j is no JSON', (text) => expect(() => read(text)).toThrow(SyntaxError));
test('numbers of an answer are numbers, those of users are exact', () => {
    const found = readAnswer('{"p99_ms":12.0,"items":[{"weight":1.0,"payload":{"id":9007199254740993,"n":1}}]}');
    expect(found).toEqual({ p99_ms: 12, items: [{ weight: 1, payload: { id: new Exact('9007199254740993'), n: 1 } }] });
});
test('the payload that an edit, a clone, a duplicate and a retry send is the one that the API answered', async () => {
    const changed = [];
    for (const text of VALUES) {
        const task = await answered(TASK, text);
        const first = fromTask(task, empty('UTC'));
        const edited = toEdit({ ...first, cron: '0 3 * * *' }, first, task);
        const job = await answered(JOB, text);
        const sent = [task, toRequest(first), edited, toJob(fromJob(job)), asPosted(job, 0)].map((each) => each?.payload);
        if (toEdit(first, first, task) !== null || sent.some((payload) => write(payload) !== text))
            changed.push(text);
    }
    expect(changed).toEqual([]);
}, 600_000);
test('the bytes that the console sends have the numbers', async () => {
    const task = await answered(TASK, '{"id":12345678901234567890,"f":1.0}');
    const sent = [];
    vi.stubGlobal('fetch', async (request) => {
        sent.push(await request.text());
        return new Response('{"success":true,"data":{}}');
    });
    await take(api.POST('/api/v1/tasks', { baseUrl: 'https://example.com', params: {}, body: toRequest(fromTask(task, empty('UTC'))) }));
    expect(sent[0]).toContain('"payload":{"id":12345678901234567890,"f":1.0}');
});
test('a field that was not edited is sent as the API returned it', async () => {
    const task = await answered(TASK, '{}');
    const first = fromTask(task, empty('UTC'));
    expect(toEdit({ ...first, maxAttempts: '5' }, first, task)).toMatchObject({ name: ' padded ', description: ' as it is\r\n', schedule: TASK.schedule, max_attempts: 5, retry: WORK.retry });
    expect(toEdit({ ...first, description: '' }, first, task)).not.toHaveProperty('description');
});
describe('copied code', () => {
    test('a curl command has each payload as it is', () => {
        const wrong = VALUES.filter((text) => {
            const command = curlOf('https://example.com', jobCall({ type: 'own', payload: { v: read(text) } }));
            const body = (command.split("-d '")[1] ?? '').trimEnd().slice(0, -1).replaceAll("'\\''", "'");
            return write(read(body).payload.v) !== text;
        });
        expect(wrong).toEqual([]);
    });
    test('no copied text has a character that a terminal obeys', () => {
        const call = taskCall({ name: 'a\u202e\u009b\u2028', payload: { '\u0085': '\u2066' } });
        expect(curlOf('https://example.com', call) + pythonOf('https://example.com', call)).not.toMatch(/[\u007f-\u009f\u2028-\u202e\u2066-\u2069]/);
    });
    test('Python gets a number as it is', () => {
        expect(pythonOf('https://example.com', jobCall({ type: 'own', payload: read('{"id":9007199254740993,"f":1.0}') }))).toContain('payload={"id": 9007199254740993, "f": 1.0},');
    });
});
test('what is shown and typed is exact', () => {
    expect(pretty('{"id":9007199254740993}')).toBe('{\n  "id": 9007199254740993\n}');
    expect(typedNumber('9007199254740993')).toEqual(new Exact('9007199254740993'));
    expect([typedNumber('5'), typedNumber(' '), typedNumber('07')]).toEqual([5, undefined, 7]);
    expect(json('{"a":')).toMatchObject({ ok: false, why: expect.stringContaining('is not JSON') });
});
