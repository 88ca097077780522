/** A server on loopback that plays the API, and a clock that tests set. A request to a route that the API does not document fails. */
import { readFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';

import { type Clock, Punctual, type PunctualOptions } from 'punctual-client';

export interface Received {
  readonly method: string;
  /** With the query. */
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: any;
}

export interface Reply {
  readonly status: number;
  readonly text: string;
  readonly headers?: Record<string, string>;
}

/** `break` closes the connection without an answer, `hang` keeps it open. */
export type Handler = (request: Received) => Reply | 'break' | 'hang';

export const NOW = 1_800_000_000_000;
export const KEY = `punctual_${'k2'.repeat(8)}_${'S'.repeat(43)}_0123abcd`;
export const JOB = {
  id: '01ARZ3NDEKTSV4RRFFQ69G5FAV',
  type: 'http',
  status: 'scheduled',
  payload: { method: 'POST', url: 'https://example.com' },
  scheduled_at: '2026-11-20T10:00:00.000Z',
  ended_at: null,
};
export const ENDED = { ...JOB, status: 'succeeded', ended_at: '2026-11-20T10:00:01.000Z' };

export function answer(data: unknown, status = 200): Reply {
  return { status, text: JSON.stringify({ success: true, data }) };
}

export function refusal(status: number, code = 'refused', details: object[] = [], headers: Record<string, string> = {}): Reply {
  const error = { code, message: 'no', details, request_id: 'r-1' };
  return { status, text: JSON.stringify({ success: false, error }), headers };
}

/** Answers one reply after the other, the last one again and again. */
export function inTurn(...replies: (Reply | 'break' | 'hang')[]): Handler {
  return () => (replies.length > 1 ? replies.shift()! : replies[0]!);
}

/** A clock that only `sleep` moves; `slept` has each pause in seconds. */
export class SetClock implements Clock {
  at = NOW;
  readonly slept: number[] = [];

  now(): number {
    return this.at;
  }

  monotonic(): number {
    return this.at;
  }

  async sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    this.slept.push(milliseconds / 1000);
    this.at += milliseconds;
  }
}

const document = JSON.parse(readFileSync(new URL('../../../docs/reference/openapi.json', import.meta.url), 'utf8')) as {
  paths: Record<string, Record<string, unknown>>;
};
const routes = Object.entries(document.paths).map(
  ([path, methods]) => [new RegExp(`^${path.replace(/\{\w+\}/g, '[^/?]+')}(\\?|$)`), methods] as const,
);

function isDocumented(method: string, path: string): boolean {
  const plain = path.replace('/api/v1/key/', '/api/v1/');
  return routes.some(([pattern, methods]) => pattern.test(plain) && method.toLowerCase() in methods);
}

export interface Started {
  readonly client: Punctual;
  readonly clock: SetClock;
  readonly requests: Received[];
  readonly url: string;
}

/** Start the server for one test, and return a client of it. */
export async function start(test: TestContext, handler: Handler, options: PunctualOptions = {}): Promise<Started> {
  const requests: Received[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const [method, path, text] = [request.method ?? '', request.url ?? '', Buffer.concat(chunks).toString()];
      const received = { method, path, headers: request.headers, body: text === '' ? undefined : JSON.parse(text) };
      requests.push(received);
      const reply = isDocumented(method, path) ? handler(received) : { status: 501, text: `the API has no route ${method} ${path}` };
      if (reply === 'break') request.socket.destroy();
      else if (reply !== 'hang') response.writeHead(reply.status, { connection: 'close', ...reply.headers }).end(reply.text);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  test.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const clock = new SetClock();
  const hasCredentials = options.apiKey ?? options.token ?? options.username;
  return { client: new Punctual({ url, clock, ...(hasCredentials ? {} : { token: 't0k3n' }), ...options }), clock, requests, url };
}

export async function all<T>(list: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const each of list) found.push(each);
  return found;
}

/** A port on which nothing listens. */
export async function closedPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
