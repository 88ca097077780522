/** The requests that the methods send, and what the compiler accepts. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { InvalidArgument, type JobFields, Punctual, type TaskFields } from 'punctual-client';
import { all, answer, inTurn, JOB, type Received, start } from './api.js';

const sent = ({ method, path, body }: Received) => [`${method} ${path.replace('/api/v1', '')}`, body];

test('times and contents of a job', async (t) => {
  const { client, requests } = await start(t, inTurn(answer(JOB, 201)));
  const http = { method: 'PUT', url: 'https://example.com', body: { state: 'expired' } } as const;
  const cases: [JobFields, unknown][] = [
    [{ message: 'm', execute_at: new Date('2026-11-20T11:00:00+01:00') }, { message: 'm', execute_at: '2026-11-20T10:00:00.000Z' }],
    [{ message: 'm', execute_at: '2026-11-20T11:00:00+01:00' }, { message: 'm', execute_at: '2026-11-20T11:00:00+01:00' }],
    [{ message: 'm', delay: '30m' }, { message: 'm', delay: '30m' }],
    [{ message: 'm', delay: 0.25, tags: ['a'] }, { message: 'm', delay_seconds: 0.25, tags: ['a'] }],
    [{ http: 'https://example.com' }, { type: 'http', payload: { method: 'POST', url: 'https://example.com' } }],
    [{ http, expires_at: new Date(0) }, { type: 'http', payload: http, expires_at: '1970-01-01T00:00:00.000Z' }],
    [{ http: 'https://example.com', target: 'billing' }, { target: 'billing', payload: { method: 'POST', url: 'https://example.com' } }],
    [{ target: 'billing', payload: { id: 7 } }, { target: 'billing', payload: { id: 7 } }],
    [{ type: 'log', payload: { message: 'm' } }, { type: 'log', payload: { message: 'm' } }],
  ];
  for (const [fields, body] of cases) {
    await client.jobs.create(fields);
    assert.deepEqual(sent(requests.at(-1)!), ['POST /jobs', body]);
  }
});

test('a key changes the open job, unless the job is only to be created', async (t) => {
  const { client, requests } = await start(t, inTurn(answer(JOB, 201)));
  await client.jobs.create({ key: 'order/17', message: 'm', debounce: 90, max_wait: '1h' });
  await client.jobs.create({ key: 'order/17', message: 'm', idempotency_key: 'mine' });
  await client.jobs.create({ key: 'order/17', message: 'm', after: [{ job: JOB.id }] });
  assert.deepEqual(requests.map(sent), [
    ['PUT /jobs/by-key/order%2F17', { message: 'm', debounce: '90s', max_wait: '1h' }],
    ['POST /jobs', { key: 'order/17', message: 'm' }],
    ['POST /jobs', { key: 'order/17', message: 'm', after: [{ job: JOB.id }] }],
  ]);
  assert.equal(requests[1]!.headers['idempotency-key'], 'mine');
});

test('an id or a key stands for a job and a task', async (t) => {
  const { client, requests } = await start(t, inTurn(answer({ ...JOB, id: '01B' })));
  await client.jobs.get({ key: 'k' });
  await client.jobs.cancel({ key: 'k' });
  await client.jobs.cancel('01A');
  await client.jobs.update({ key: 'k' }, { delay: 1800, tags: [] });
  await client.jobs.update('01A', { http: 'https://example.com', execute_at: new Date(0) });
  await client.tasks.runNow({ key: 'k' }, { overlap: 'allow' });
  await client.tasks.pause('01A', { reason: 'r' });
  await client.tasks.resume('01A');
  await client.tasks.delete({ key: 'k' });
  assert.deepEqual(requests.map(sent), [
    ['GET /jobs/by-key/k', undefined],
    ['POST /jobs/by-key/k/cancel', undefined],
    ['POST /jobs/01A/cancel', undefined],
    ['GET /jobs/by-key/k', undefined],
    ['PATCH /jobs/01B', { delay: '1800s', tags: [] }],
    ['PATCH /jobs/01A', { payload: { method: 'POST', url: 'https://example.com' }, execute_at: '1970-01-01T00:00:00.000Z' }],
    ['GET /tasks/by-key/k', undefined],
    ['POST /tasks/01B/run', { overlap: 'allow' }],
    ['POST /tasks/01A/pause', { reason: 'r' }],
    ['POST /tasks/01A/resume', undefined],
    ['GET /tasks/by-key/k', undefined],
    ['DELETE /tasks/01B', undefined],
  ]);
});

test('filters are parameters of the query', async (t) => {
  const { client, requests } = await start(t, inTurn(answer({ items: [], cursor: null })));
  await all(client.jobs.list({ status: ['failed', 'killed'], tag: 'a', from: new Date(0), limit: 5 }));
  await all(client.jobs.list({ upcoming: true }));
  await all(client.tasks.list({ name: 'night' }));
  await all(client.list('/monitors', { limit: 1 }));
  assert.deepEqual(requests.map(({ path }) => path.replace('/api/v1', '')), [
    '/jobs?status=failed%2Ckilled&tag=a&from=1970-01-01T00%3A00%3A00.000Z&limit=5',
    '/jobs?upcoming=true&limit=100',
    '/tasks?name=night&limit=100',
    '/monitors?limit=1',
  ]);
});

test('a task has the schedule of the API', async (t) => {
  const { client, requests } = await start(t, inTurn(answer({ id: '01T', outcome: 'created' })));
  const fields: TaskFields = {
    name: 'Nightly report',
    schedule: { cron: '30 2 * * *', time_zone: 'Europe/Berlin', end: new Date(0) },
    http: 'https://example.com/reports',
  };
  const { outcome } = await client.tasks.put('nightly', fields, { dryRun: true });
  assert.equal(outcome, 'created');
  assert.deepEqual(requests.map(sent), [
    [
      'PUT /tasks/by-key/nightly?dry_run=true',
      {
        name: 'Nightly report',
        schedule: { cron: '30 2 * * *', time_zone: 'Europe/Berlin', end: '1970-01-01T00:00:00.000Z' },
        type: 'http',
        payload: { method: 'POST', url: 'https://example.com/reports' },
      },
    ],
  ]);
});

test('a batch is split, and busy jobs are sent again with the same key', async (t) => {
  const sizes: number[] = [];
  const keys = new Set<string>();
  const { client } = await start(t, ({ body }) => {
    sizes.push(body.jobs.length);
    const results = body.jobs.map((job: { message: string; idempotency_key: string }, index: number) => {
      const isBusy = job.message === 'busy' && !keys.has(job.idempotency_key);
      keys.add(job.idempotency_key);
      const error = { code: isBusy ? 'unavailable' : 'validation_failed', message: 'm', details: [] };
      return isBusy || job.message === 'bad' ? { index, error } : { index, job: { id: job.message, status: 'scheduled' } };
    });
    return answer({ results });
  });
  const numbered = Array.from({ length: 2100 }, (_, n) => ({ message: n === 1500 ? 'busy' : n === 3 ? 'bad' : String(n) }));
  const { accepted, refused, results } = await client.jobs.createMany(numbered);
  assert.deepEqual([sizes, accepted, refused], [[1000, 1000, 1, 100], 2099, 1]);
  assert.deepEqual(results.map(({ index }) => index), Array.from({ length: 2100 }, (_, n) => n));
  assert.deepEqual(results.filter(({ error }) => error).map(({ index }) => index), [3]);
  sizes.length = 0;
  await client.jobs.createMany(Array.from({ length: 40 }, () => ({ message: 'x'.repeat(200_000) })));
  assert.deepEqual(sizes, [9, 9, 9, 9, 4]);
});

test('a job that stays busy is refused after three requests', async (t) => {
  const error = { code: 'unavailable', message: 'm', details: [] };
  const { client, requests } = await start(t, inTurn(answer({ results: [{ index: 0, error }] })));
  const { refused, results } = await client.jobs.createMany([{ message: 'm' }]);
  assert.deepEqual([refused, results, requests.length], [1, [{ index: 0, error }], 3]);
});

test('a batch that is answered in part is an error', async (t) => {
  const { client } = await start(t, inTurn(answer({ results: [] })));
  await assert.rejects(client.jobs.createMany([{ message: 'm' }]), /answered 0 results for 1 jobs/);
});

test('wrong arguments are refused before a request', async (t) => {
  const { client, requests } = await start(t, inTurn(answer(JOB)));
  const circle: Record<string, unknown> = {};
  circle['self'] = circle;
  for (const call of [
    () => client.jobs.create({ message: 'm', execute_at: new Date(NaN) }),
    () => client.jobs.create({ message: 'm', delay: Infinity }),
    () => client.jobs.create({ key: 'k', message: 'm', throttle: NaN }),
    () => client.jobs.create({ http: 'https://example.com', message: 'm' } as never),
    () => client.jobs.create({ target: 't', payload: { n: 1n } as never }),
    () => client.jobs.create({ target: 't', payload: circle as never }),
    () => client.jobs.create({ message: 'm', idempotency_key: 'a\nb' }),
    () => client.jobs.get(''),
    () => client.jobs.get('..'),
    () => client.jobs.get({ key: '\ud800' }),
    () => client.jobs.get(undefined as never),
    () => all(client.jobs.list({ from: new Date(NaN) })),
  ]) {
    await assert.rejects(async () => call(), InvalidArgument, String(call));
  }
  assert.deepEqual(requests, []);
});

test('every route is typed by the document', async (t) => {
  const { client, requests } = await start(t, inTurn(answer({ version: '1', key: 'nightly' })));
  const { version } = await client.request('GET', '/version');
  const monitor = await client.request('GET', '/monitors/{key}', { path: { key: 'a b' } });
  assert.deepEqual([version satisfies string, monitor.key satisfies string], ['1', 'nightly']);
  assert.deepEqual(requests.map(({ path }) => path), ['/api/v1/version', '/api/v1/monitors/a%20b']);
});

test('a program with planted errors does not compile', () => {
  // Only the compiler reads this function. A line without an error makes `tsc` fail.
  const planted = async (client: Punctual) => {
    // @ts-expect-error a misspelled field
    await client.jobs.create({ message: 'm', max_attemps: 3 });
    // @ts-expect-error no work
    await client.jobs.create({ delay: '30m' });
    // @ts-expect-error two kinds of work
    await client.jobs.create({ http: 'https://example.com', message: 'm' });
    // @ts-expect-error a payload of another type
    await client.jobs.create({ type: 'http', payload: { message: 'm' } });
    // @ts-expect-error a method that HTTP lacks
    await client.jobs.create({ http: { url: 'https://example.com', method: 'FETCH' } });
    // @ts-expect-error an unknown rule
    await client.jobs.create({ message: 'm', key: 'k', on_conflict: 'drop' });
    // @ts-expect-error an unknown state
    client.jobs.list({ status: 'open' });
    // @ts-expect-error a rule that a batch has not
    await client.jobs.createMany([{ message: 'm', debounce: '5s' }]);
    // @ts-expect-error a field that no answer has
    (await client.jobs.get('01A')).state;
    // @ts-expect-error an unknown route
    await client.request('GET', '/job');
    // @ts-expect-error a method that the route has not
    await client.request('DELETE', '/jobs');
    // @ts-expect-error a path without its parameter
    await client.request('GET', '/monitors/{key}');
    // @ts-expect-error no list
    client.list('/version');
    // @ts-expect-error a schedule of another API
    await client.tasks.put('k', { name: 'n', message: 'm', schedule: { cronn: '* * * * *' } });
  };
  assert.equal(typeof planted, 'function');
});
