/** The example of a receiver, as a process. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const SECRET = 'a secret of enough bytes to sign with';
const BODY = '{"order": 17}';

test('the receiver does the work of a job once, and of a forged request never', async (t) => {
  const program = fileURLToPath(new URL('../examples/receiver.js', import.meta.url));
  const environment = { ...process.env, WEBHOOK_SECRET: SECRET, PORT: '0' };
  const child = spawn(process.execPath, [program], { env: environment, stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => child.kill());
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async () => String((await lines.next()).value);
  const port = (await next()).replace('listening on port ', '');

  const stamp = String(Math.floor(Date.now() / 1000));
  const mac = createHmac('sha256', SECRET).update(`job-1.${stamp}.${BODY}`).digest('base64');
  const headers = { 'webhook-id': 'job-1', 'webhook-timestamp': stamp, 'webhook-signature': `v1,${mac}` };
  const post = async (body: string, sent: Record<string, string>) =>
    (await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body, headers: sent })).status;

  const answers = [await post(BODY, headers), await post(BODY, headers), await post('{"order": 18}', headers), await post(BODY, {})];
  assert.deepEqual(answers, [200, 200, 401, 401]);
  assert.deepEqual([await next(), await next(), await next()], [
    `work: ${BODY}`,
    'refused: the signature does not match: another secret, or a changed body',
    'refused: the request is not signed: it has no header webhook-id',
  ]);
});
