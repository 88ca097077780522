/** The sources of the address and the credentials. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';

import { NotConfigured, Punctual, type PunctualOptions } from 'punctual-client';
import { answer, inTurn, JOB, KEY, start } from './api.js';

const URL = 'https://api.example.com';

/** Let a test have this environment alone. */
function environment(t: TestContext, variables: Record<string, string>): void {
  const before = process.env;
  t.after(() => {
    process.env = before;
  });
  process.env = variables;
}

test('credentials come from one source as a whole', async (t) => {
  const { url, requests } = await start(t, inTurn(answer(JOB)));
  environment(t, { PUNCTUAL_URL: `${url}/api/v1/`, PUNCTUAL_KEY: KEY, PUNCTUAL_TOKEN: 't', PUNCTUAL_OWNER: 'team-1' });
  for (const options of [{}, { token: 'mine' }, { token: 'mine', owner: 'me', url }]) await new Punctual(options).jobs.get('01A');
  assert.deepEqual(requests.map(({ path, headers }) => [path, headers.authorization]), [
    ['/api/v1/key/jobs/01A?owner=team-1', `Bearer ${KEY}`],
    ['/api/v1/jobs/01A?owner=team-1', 'Bearer mine'],
    ['/api/v1/jobs/01A?owner=me', 'Bearer mine'],
  ]);
});

test('a name and its password come from the environment', async (t) => {
  const { url, requests } = await start(t, inTurn(answer({ token: 'abc', expires_in: 3600 })));
  environment(t, { PUNCTUAL_URL: url, PUNCTUAL_USERNAME: 'ann', PUNCTUAL_PASSWORD: 'secret' });
  await new Punctual().jobs.get('01A');
  await new Punctual({ username: 'bob' }).jobs.get('01A');
  assert.deepEqual(requests.map(({ body }) => body), [
    { username: 'ann', password: 'secret' },
    undefined,
    { username: 'bob', password: 'secret' },
    undefined,
  ]);
});

for (const [name, options, message] of [
  ['no address', {}, /there is no address: set PUNCTUAL_URL/],
  ['an address without its scheme', { url: 'api.example.com' }, /begins with https/],
  ['an address of another scheme', { url: 'ftp://api.example.com' }, /begins with https/],
  ['a broken address', { url: 'https://' }, /begins with https/],
  ['a key that is none', { url: URL, apiKey: 'secret' }, /has the form punctual_ID_SECRET_CHECKSUM/],
  ['a key as a token', { url: URL, token: KEY }, /give it as apiKey/],
  ['a token with a line break', { url: URL, token: 'a\nb' }, /line break/],
  ['an owner that is none', { url: URL, token: 't', owner: 'a b' }, /is no id/],
  ['a name without a password', { url: URL, username: 'ann' }, /needs password/],
] as [string, PunctualOptions, RegExp][]) {
  test(`${name} is refused`, (t) => {
    environment(t, {});
    const isRight = (error: unknown) => error instanceof NotConfigured && message.test(error.message) && !error.message.includes('SSS');
    assert.throws(() => new Punctual(options), isRight);
  });
}
