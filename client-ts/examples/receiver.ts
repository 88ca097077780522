/**
 * A receiver of jobs that verifies each request and does the work of a job once.
 *
 * WEBHOOK_SECRET=whsec_… PORT=8080 node receiver.js
 */
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { InvalidSignature, verifySignature } from 'punctual-client';

const secret = process.env['WEBHOOK_SECRET'] ?? '';
const done = new Set<string>(); // in your database, written in the same transaction as the work

/** Handle a request, and return the status of the answer. */
async function handle(request: IncomingMessage): Promise<number> {
  const body = await buffer(request); // the bytes as they arrived
  try {
    verifySignature(body, request.headers, secret);
  } catch (error) {
    if (!(error instanceof InvalidSignature)) throw error;
    console.log('refused:', error.message);
    return 401;
  }
  const id = String(request.headers['webhook-id']);
  if (done.has(id)) return 200; // delivery is at least once
  console.log('work:', body.toString());
  done.add(id);
  return 200;
}

const server = createServer((request, response) => {
  handle(request).then(
    (status) => response.writeHead(status).end(),
    (error: unknown) => {
      console.error(error);
      response.writeHead(500).end(); // Punctual repeats the request
    },
  );
});
server.listen(Number(process.env['PORT'] ?? 8080), '127.0.0.1', () => {
  console.log('listening on port', (server.address() as AddressInfo).port);
});
