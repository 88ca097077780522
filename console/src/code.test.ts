import { execFileSync } from 'node:child_process';

import { describe, expect, test } from 'vitest';

import { curlOf, jobCall, pythonOf, taskCall, type Call } from './code';
import { read, write } from './exact';
import { empty, toRequest } from './form/draft';
import { NEW_JOB, toJob } from './form/job-draft';

const ORIGIN = 'https://punctual.example.com';
const NASTY = `it's "quoted", \\ $HOME \`id\` !! ü 🎉\nsecond line\t\u0000`;
const HOOK = { url: 'https://hooks.example.com/a', signing_secret: 'hook', format: 'standard' as const };
const job = (changes: object) => jobCall(toJob({ ...NEW_JOB, payload: { url: 'https://example.com/orders/17/expire', method: 'POST' }, ...changes }));
const task = { ...empty('Europe/Berlin'), name: 'Nightly report', cron: '30 2 * * *', payload: { url: 'https://example.com/report', method: 'POST', body: { full: true, since: null } } };

// client/tests/test_copied_code.py runs each program of `code/` with the package itself.
const CASES: Record<string, Call> = {
  'job-now': job({}),
  'job-after': job({ start: 'after', after: '90', unit: 'minutes', callback: true, orderingKey: 'shop 4', tags: ['orders', 'shop-4'] }),
  'job-at': job({ start: 'at', at: '2030-01-02T03:04:05.678Z', expiresAt: '2030-01-02T04:00:00.000Z', events: true }),
  'job-with-key': job({ key: 'order:17 é/?', type: 'log', payload: { message: NASTY } }),
  'job-of-target': job({ target: 'billing', payload: { body: [1, -2.5, 1e21, false] } }),
  'job-exact': job({ type: 'own', payload: read('{"id":12345678901234567890,"negative":-9007199254740993,"float":1.0,"zero":-0.0,"text":"\\u2028\\u0085\\u202e"}') }),
  'task-create': taskCall(toRequest(task)),
  'task-put': taskCall(toRequest({ ...task, key: 'nightly', notifications: { emails: ['ann@example.com'], webhooks: [HOOK], receivers: [], byDefault: false, on: ['failure', 'late'], afterFailures: '2', digest: '900', rest: {} } })),
  'task-replace': taskCall(toRequest({ ...task, kind: 'rate', every: '5', unit: 'minutes' }), undefined, '01ARZ3NDEKTSV4RRFFQ69G5FAV'),
  'task-replace-of-another': taskCall(toRequest({ ...task, key: 'nightly', kind: 'at', at: '2030-01-02T03:04:05Z' }), 'f00d', '01ARZ3NDEKTSV4RRFFQ69G5FAV'),
  'task-create-of-team': taskCall(toRequest(task), 'team-abcdefghijklmnopqrst'),
  'job-with-key-of-team': jobCall(toJob({ ...NEW_JOB, key: 'order:17', type: 'log', payload: { message: 'hello' } }), 'team-abcdefghijklmnopqrst'),
};

/** The arguments that curl would get. */
function argumentsOf(command: string): string[] {
  return execFileSync('sh', ['-c', `curl() { printf '%s\\037' "$@"; }\n${command}`], { encoding: 'utf8', env: { PUNCTUAL_TOKEN: 'the-token' } }).split('\u001f').slice(0, -1);
}

test('on the local stack the Python program reads the address: the name of the console is one for browsers', () =>
  expect(pythonOf('http://e1.cloudfront.localhost:4566', job({}))).toContain('with Punctual() as client:  # reads PUNCTUAL_URL'));

describe.each(Object.entries(CASES))('%s', (name, call) => {
  test('a shell reads the method, the address, the token and the body of the request', () => {
    const found = argumentsOf(curlOf(ORIGIN, call));
    expect(found.slice(0, -1)).toEqual(['-sS', '--fail-with-body', '-X', call.method, `${ORIGIN}/api/v1${call.path}`, '-H', 'Authorization: Bearer the-token', '-H', 'Content-Type: application/json', '-d']);
    expect(read(found.at(-1) ?? '')).toEqual(call.body);
  });

  test('the Python program is the stored one', async () => {
    await expect(pythonOf(ORIGIN, call)).toMatchFileSnapshot(`code/${name}.python.txt`);
    await expect(`${write({ method: call.method, path: call.path, body: call.body }, 2)}\n`).toMatchFileSnapshot(`code/${name}.json`);
  });
});
