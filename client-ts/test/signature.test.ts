/** The check of signatures, with the cases that the Python client has, too. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

import { InvalidSignature, verifySignature } from 'punctual-client';

interface Case {
  readonly name: string;
  readonly headers: Record<string, string>;
  readonly body: string;
  readonly secret: string;
  readonly now: number;
  /** A part of the message; null: the request is valid. */
  readonly error: string | null;
}

const cases = JSON.parse(readFileSync(new URL('../../../client/tests/signatures.json', import.meta.url), 'utf8')) as Case[];

for (const { name, headers, body, secret, now, error } of cases) {
  test(name, () => {
    for (const content of [body, Buffer.from(body)]) {
      const check = () => verifySignature(content, headers, secret, { now });
      if (error === null) check();
      else assert.throws(check, (thrown: unknown) => thrown instanceof InvalidSignature && thrown.message.includes(error));
    }
  });
}

const valid = cases.find(({ error }) => error === null)!;
const { headers, body, secret, now } = valid;
const OTHER = 'another secret of enough bytes';

test('one of several secrets is enough', () => {
  verifySignature(body, headers, [OTHER, secret], { now });
  assert.throws(() => verifySignature(body, headers, [OTHER], { now }), /does not match/);
  assert.throws(() => verifySignature(body, headers, [], { now }), /there is no secret/);
  assert.throws(() => verifySignature(body, headers, [secret, ''], { now }), /the secret is empty/);
  assert.throws(() => verifySignature(body, headers, [secret, undefined as never], { now }), /the secret is no text/);
});

test('a secret that is no text is refused', () => {
  assert.throws(() => verifySignature(body, headers, undefined as never, { now }), /is its environment variable set/);
});

test('the headers of fetch and of Node are read', () => {
  verifySignature(body, new Headers(headers), secret, { now });
  const lowered = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
  verifySignature(body, lowered, secret, { now });
  assert.throws(() => verifySignature(body, { ...lowered, 'webhook-signature': undefined }, secret, { now }), /no header webhook-signature/);
});

test('the tolerance can be changed, and nothing disables it', () => {
  assert.throws(() => verifySignature(body, headers, secret, { now: now + 500 }), /s are allowed/);
  verifySignature(body, headers, secret, { now: now + 500, toleranceSeconds: 900 });
  assert.throws(() => verifySignature(body, headers, secret, { now, toleranceSeconds: NaN }), InvalidSignature);
  assert.throws(() => verifySignature(body, headers, secret), /s are allowed/); // by the clock of the machine
});
