/** Repeats, time-outs, errors, credentials and pages. */
import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';

import * as punctual from 'punctual-client';
import { all, answer, closedPort, ENDED, inTurn, JOB, KEY, NOW, type Received, refusal, start } from './api.js';

const idempotencyKeys = (requests: Received[]) => requests.map(({ headers }) => headers['idempotency-key']);
const GATEWAY = { status: 504, text: 'gateway' };

for (const [name, first] of Object.entries({ 429: refusal(429), 503: refusal(503), 502: refusal(502), 504: GATEWAY, broken: 'break' as const })) {
  test(`a create is repeated with the same key after: ${name}`, async (t) => {
    const { client, requests } = await start(t, inTurn(first, answer(JOB, 201)));
    assert.equal((await client.jobs.create({ message: 'm' })).id, JOB.id);
    const [one, two, ...others] = idempotencyKeys(requests);
    assert.ok(one && one === two && others.length === 0);
    assert.deepEqual(requests[0]!.body, requests[1]!.body);
  });
}

test('a put by key is repeated with the same idempotency key', async (t) => {
  const { client, requests } = await start(t, inTurn(refusal(503), answer({ ...JOB, outcome: 'created', follows: null })));
  assert.equal((await client.jobs.create({ message: 'm', key: 'order-17' })).outcome, 'created');
  assert.deepEqual(requests.map(({ method, path }) => `${method} ${path}`), Array(2).fill('PUT /api/v1/jobs/by-key/order-17'));
  assert.equal(new Set(idempotencyKeys(requests)).size, 1);
});

test('two creates have two keys', async (t) => {
  const { client, requests } = await start(t, inTurn(answer(JOB, 201)));
  await Promise.all([client.jobs.create({ message: 'm' }), client.jobs.create({ message: 'm' })]);
  assert.equal(new Set(idempotencyKeys(requests)).size, 2);
});

test('the trace of a job is a header, and no part of the body', async (t) => {
  const { client, requests } = await start(t, inTurn(answer(JOB, 201)));
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  await client.jobs.create({ message: 'm', traceparent });
  await client.jobs.create({ message: 'm', key: 'order-17', traceparent });
  await client.jobs.create({ message: 'm' });
  assert.deepEqual(requests.map(({ headers }) => headers['traceparent']), [traceparent, traceparent, undefined]);
  assert.deepEqual(requests.map(({ body }) => body), Array(3).fill({ message: 'm' }));
});

for (const [name, first, error] of [
  ['503', refusal(503), punctual.Unavailable],
  ['broken', 'break', punctual.NoAnswer],
] as const) {
  test(`a request that is not safe to repeat is sent once after: ${name}`, async (t) => {
    const { client, requests } = await start(t, inTurn(first, answer(JOB)));
    await assert.rejects(client.jobs.retry('01A'), error);
    assert.equal(requests.length, 1);
  });
}

test('a 429 changed nothing, so every request is repeated', async (t) => {
  const { client, requests } = await start(t, inTurn(refusal(429), answer(JOB)));
  assert.equal((await client.jobs.retry('01A')).id, JOB.id);
  assert.equal(requests.length, 2);
});

test('a request that found no connection is always repeated', async (t) => {
  const { url, requests, clock } = await start(t, inTurn(answer(JOB)));
  const closed = await closedPort();
  let calls = 0;
  const flaky: typeof fetch = (input, init) => fetch(calls++ === 0 ? `http://127.0.0.1:${closed}/` : input, init);
  const client = new punctual.Punctual({ url, token: 't', fetch: flaky, clock });
  assert.equal((await client.jobs.retry('01A')).id, JOB.id);
  assert.deepEqual([calls, requests.length], [2, 1]);
});

test('the pause respects Retry-After', async (t) => {
  const soon = new Date(NOW + 9_000).toUTCString();
  const replies = [refusal(429, 'c', [], { 'retry-after': '7' }), refusal(429, 'c', [], { 'retry-after': soon }), answer(JOB)];
  const { client, clock } = await start(t, inTurn(...replies));
  await client.jobs.get('01A');
  const [first, second] = clock.slept as [number, number];
  assert.ok(first >= 7 && first <= 7.25 && second >= 9 - first && second <= 9.5 - first);
});

for (const asked of ['soon', '-7', '7.5', 'Fri, 20 Nov 99999 10:00:07 GMT', '2030-01-01', '']) {
  test(`a malformed Retry-After is ignored: ${asked}`, async (t) => {
    const { client, clock } = await start(t, inTurn(refusal(429, 'c', [], { 'retry-after': asked }), answer(JOB)));
    await client.jobs.get('01A');
    assert.ok(clock.slept[0]! <= 0.25);
  });
}

test('repeats end after maxRetries or the time-out', async (t) => {
  const { client, requests } = await start(t, inTurn(refusal(503)), { maxRetries: 3 });
  await assert.rejects(client.jobs.get('01A'), punctual.Unavailable);
  assert.equal(requests.length, 4);
  const patient = await start(t, inTurn(refusal(429, 'c', [], { 'retry-after': '40' })), { timeoutSeconds: 60 });
  await assert.rejects(patient.client.jobs.get('01A'), { name: 'QuotaExceeded', retryAfter: 40 });
  assert.equal(patient.requests.length, 2);
});

test('a call ends after its own time-out, also while the API keeps silent', async (t) => {
  const { client } = await start(t, inTurn('hang'));
  const error: unknown = await client.jobs.get('01A', { timeoutSeconds: 0.1 }).catch((thrown: unknown) => thrown);
  assert.ok(error instanceof punctual.NoAnswer);
  assert.match(error.message, /no answer.*the answer was not complete after 0\.1 s/);
});

test('an AbortSignal ends a request, and the call throws its reason', async (t) => {
  const stop = new AbortController();
  const { client } = await start(t, () => {
    stop.abort(new Error('the user has left'));
    return 'hang';
  });
  await assert.rejects(client.jobs.get('01A', { signal: stop.signal }), /the user has left/);
});

test('an AbortSignal that has aborted sends nothing', async (t) => {
  const { client, requests } = await start(t, inTurn(answer(JOB)));
  await assert.rejects(client.jobs.create({ message: 'm' }, { signal: AbortSignal.abort() }), { name: 'AbortError' });
  assert.equal(requests.length, 0);
});

test('an AbortSignal ends a wait between two reads, and a pause before a repeat', async (t) => {
  const stop = new AbortController();
  const { client } = await start(t, () => (stop.abort(), answer(JOB)));
  await assert.rejects(client.jobs.wait('01A', { signal: stop.signal }), { name: 'AbortError' });
  const again = new AbortController();
  const busy = await start(t, () => (again.abort(), refusal(503)));
  await assert.rejects(busy.client.jobs.get('01A', { signal: again.signal }), { name: 'AbortError' });
});

test('a signal that a program keeps has no listeners after its calls', async (t) => {
  const { signal } = new AbortController();
  const { client } = await start(t, ({ path }) => (path.endsWith('login') ? answer({ token: 't' }) : answer(ENDED)), { username: 'a', password: 'b' });
  await client.jobs.wait('01A', { signal });
  await client.jobs.create({ message: 'm' }, { signal });
  assert.deepEqual(getEventListeners(signal, 'abort'), []);
});

test('no answer names the request and the reason', async (t) => {
  const { client, url } = await start(t, inTurn('break'), { maxRetries: 1 });
  const error: unknown = await client.jobs.get('01A').catch((thrown: unknown) => thrown);
  assert.ok(error instanceof punctual.NoAnswer && error.cause instanceof Error);
  assert.ok(error.message.startsWith(`GET ${url}/api/v1/jobs/01A: no answer after 2 tries: `));
  assert.doesNotMatch(error.message, /fetch failed/);
});

for (const [status, error] of [
  [400, punctual.InvalidRequest],
  [422, punctual.InvalidRequest],
  [403, punctual.NotAllowed],
  [404, punctual.NotFound],
  [410, punctual.NotFound],
  [409, punctual.Conflict],
  [412, punctual.Conflict],
  [418, punctual.ApiError],
] as const) {
  test(`a refusal is an error with its fields: ${status}`, async (t) => {
    const details = [{ field: 'payload.url', rule: 'must be a URL' }];
    const { client } = await start(t, inTurn(refusal(status, 'validation_failed', details)));
    const found: unknown = await client.jobs.create({ http: 'x' }).catch((thrown: unknown) => thrown);
    assert.ok(found instanceof error && found instanceof punctual.PunctualError);
    assert.equal(found.name, error.name);
    assert.deepEqual([found.status, found.code, found.reason, found.requestId], [status, 'validation_failed', 'no', 'r-1']);
    assert.deepEqual(found.details, details);
    assert.equal(found.message, `${status} validation_failed: no\n  payload.url: must be a URL`);
  });
}

test('an answer of another server is recognized', async (t) => {
  for (const [reply, error] of [
    [{ status: 200, text: '<html>' }, /is the address right/],
    [{ status: 302, text: '', headers: { location: 'https://example.com/' } }, /answered 302 without data/],
    [{ status: 404, text: '{"message": "Not Found"}' }, /404 not_found: Not Found/],
  ] as const) {
    const { client } = await start(t, inTurn(reply));
    await assert.rejects(client.request('GET', '/health'), error);
  }
  const { client } = await start(t, inTurn(answer({ jobs: [] })));
  await assert.rejects(all(client.jobs.list()), /GET \/jobs answered no list/);
});

test('a deletion that is repeated has succeeded', async (t) => {
  const { client } = await start(t, inTurn('break', refusal(404)));
  await client.tasks.delete('01A');
  await assert.rejects((await start(t, inTurn(refusal(404)))).client.tasks.delete('01A'), punctual.NotFound);
});

test('a list reads all pages up to the limit', async (t) => {
  const { client, requests } = await start(t, ({ path }) => {
    const query = new URL(path, 'http://x').searchParams;
    const [at, size] = [Number(query.get('cursor') ?? 0), Number(query.get('limit'))];
    return answer({ items: Array.from({ length: size }, (_, n) => ({ ...JOB, id: String(at + n) })), cursor: at + size < 250 ? String(at + size) : null });
  });
  assert.deepEqual((await all(client.jobs.list({ limit: 230 }))).map(({ id }) => id), Array.from({ length: 230 }, (_, n) => String(n)));
  assert.equal((await all(client.jobs.list())).length, 300);
  requests.length = 0;
  for await (const { id } of client.jobs.list()) if (id === '99') break;
  assert.equal(requests.length, 1); // a page that nobody reads is not fetched
});

test('a list that repeats a cursor ends with an error', async (t) => {
  const { client } = await start(t, inTurn(answer({ items: [JOB], cursor: 'c' })));
  await assert.rejects(all(client.jobs.list()), /same cursor twice/);
});

test('waiting ends with the job or the time-out', async (t) => {
  const { client, clock } = await start(t, inTurn(answer(JOB), answer(JOB), answer(ENDED)));
  assert.equal((await client.jobs.wait('01A', { timeoutSeconds: 5 })).status, 'succeeded');
  assert.deepEqual(clock.slept, [0.5, 0.5]);
  const open = await start(t, inTurn(answer(JOB)));
  await assert.rejects(open.client.jobs.wait('01A', { timeoutSeconds: 2 }), { name: 'WaitTimeout', message: 'the job 01A has not ended within 2 s' });
  assert.deepEqual(open.clock.slept, [0.5, 0.5, 0.5, 0.5]);
});

test('waiting goes on through an outage, but not without a first answer', async (t) => {
  const replies = [answer(JOB), ...Array(9).fill('break'), refusal(503), answer(ENDED)];
  const { client } = await start(t, inTurn(...replies), { maxRetries: 3 });
  assert.equal((await client.jobs.wait('01A')).status, 'succeeded');
  await assert.rejects((await start(t, inTurn('break'))).client.jobs.wait('01A', { timeoutSeconds: 300 }), punctual.NoAnswer);
});

test('waiting by key waits for the job that has the key now', async (t) => {
  const { client, requests } = await start(t, inTurn(answer(JOB), answer(ENDED)));
  await client.jobs.wait({ key: 'order/17' });
  assert.deepEqual(requests.map(({ path }) => path), ['/api/v1/jobs/by-key/order%2F17', `/api/v1/jobs/${JOB.id}`]);
});

// Credentials

test('an API key has its own address, and open routes get none', async (t) => {
  const { client, requests } = await start(t, inTurn(answer(JOB)), { apiKey: KEY });
  await client.jobs.get('01A');
  await client.request('GET', '/health');
  assert.deepEqual(requests.map(({ path, headers }) => [path, headers.authorization]), [
    ['/api/v1/key/jobs/01A', `Bearer ${KEY}`],
    ['/api/v1/health', undefined],
  ]);
});

test('concurrent calls share one sign-in, and one renewal after a 401', async (t) => {
  const seen: string[] = [];
  let valid = 't1';
  const { client } = await start(
    t,
    ({ path, headers, body }) => {
      seen.push(path.split('/').at(-1)!);
      if (path.endsWith('/auth/login')) {
        assert.deepEqual(body, { username: 'ann', password: 'secret' });
        return answer({ token: `t${seen.filter((each) => each === 'login').length}`, expires_in: 3600 });
      }
      return headers.authorization === `Bearer ${valid}` ? answer(JOB) : refusal(401);
    },
    { username: 'ann', password: 'secret' },
  );
  const both = () => Promise.all([client.jobs.get('01A'), client.jobs.get('01A')]);
  await both();
  valid = 't2';
  await both();
  assert.deepEqual(seen.filter((each) => each === 'login').length, 2);
  assert.equal(seen[0], 'login');
});

test('a token is renewed before it expires, with the refresh token', async (t) => {
  const seen: unknown[] = [];
  const { client, clock } = await start(
    t,
    ({ path, body }) => {
      if (path.includes('/auth/')) {
        seen.push([path, body]);
        return answer({ token: 'abc', expires_in: 3600, ...(path.endsWith('login') && { refresh_token: 'r' }) });
      }
      return answer(JOB);
    },
    { username: 'ann', password: 'secret' },
  );
  for (const minutes of [0, 58, 2]) {
    clock.at += minutes * 60_000;
    await client.jobs.get('01A');
  }
  assert.deepEqual(seen, [
    ['/api/v1/auth/login', { username: 'ann', password: 'secret' }],
    ['/api/v1/auth/refresh', { refresh_token: 'r' }],
  ]);
});

test('a session that has ended begins again with the password', async (t) => {
  const seen: string[] = [];
  const { client, clock } = await start(
    t,
    ({ path }) => {
      seen.push(path.split('/').at(-1)!);
      if (path.endsWith('/auth/refresh')) return refusal(401);
      return path.endsWith('/auth/login') ? answer({ token: 'abc', expires_in: 60, refresh_token: 'r' }) : answer(JOB);
    },
    { username: 'ann', password: 'secret' },
  );
  await client.jobs.get('01A');
  clock.at += 60_000;
  await client.jobs.get('01A');
  assert.deepEqual(seen, ['login', '01A', 'refresh', 'login', '01A']);
});

test('a refused token without another way is an error', async (t) => {
  const { client, requests } = await start(t, inTurn(refusal(401)));
  await assert.rejects(client.jobs.get('01A'), punctual.NotAuthenticated);
  assert.equal(requests.length, 1);
});

test('a token that is refused again is renewed once', async (t) => {
  let logins = 0;
  const { client, requests } = await start(
    t,
    ({ path }) => (path.endsWith('/auth/login') && logins < 9 ? answer({ token: `t${(logins += 1)}` }) : refusal(401)),
    { username: 'ann', password: 'secret' },
  );
  await assert.rejects(client.jobs.get('01A'), punctual.NotAuthenticated);
  assert.deepEqual(requests.map(({ path }) => path.split('/').at(-1)), ['login', '01A', 'login', '01A']);
});

test('a wrong password and a second factor are errors', async (t) => {
  const ann = { username: 'ann', password: 'secret' };
  await assert.rejects((await start(t, inTurn(refusal(401)), ann)).client.jobs.get('01A'), punctual.NotAuthenticated);
  const { client } = await start(t, inTurn(answer({ challenge: 'totp', session: 's' }, 202)), ann);
  await assert.rejects(client.jobs.get('01A'), /second factor: use an API key/);
});

test('no error contains an API key', async (t) => {
  const { client } = await start(t, inTurn({ status: 400, text: JSON.stringify({ error: { code: 'c', message: `bad ${KEY}`, details: [{ field: KEY, rule: 'r' }] } }) }));
  const error: unknown = await client.jobs.get('01A').catch((thrown: unknown) => thrown);
  assert.ok(error instanceof punctual.ApiError);
  assert.doesNotMatch(JSON.stringify([error.message, error.reason, error.details]), /SSS/);
  await assert.rejects(client.jobs.get(KEY), punctual.InvalidArgument);
});

test('the owner of the client, or of the call, is sent', async (t) => {
  const { client, requests } = await start(t, inTurn(answer({ ...JOB, items: [], cursor: null })), { owner: 'team-1' });
  await client.jobs.get('01A');
  await client.jobs.create({ message: 'm' }, { owner: 'team-2' });
  await all(client.tasks.list());
  assert.deepEqual(requests.map(({ path }) => path), [
    '/api/v1/jobs/01A?owner=team-1',
    '/api/v1/jobs?owner=team-2',
    '/api/v1/tasks?owner=team-1&limit=100',
  ]);
});
