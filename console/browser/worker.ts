/** Whoever does the work of a job that was taken over: an address that takes it, and reports on it. */
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Worker {
  url: string;
  /** Once the job has come. */
  called: Promise<IncomingHttpHeaders>;
  report: (verb: 'heartbeat' | 'complete' | 'fail', body: unknown) => Promise<void>;
  close: () => void;
}

export async function taken(): Promise<Worker> {
  let come: (headers: IncomingHttpHeaders) => void = () => undefined;
  const called = new Promise<IncomingHttpHeaders>((resolve) => (come = resolve));
  const server = createServer((request, response) => {
    come(request.headers);
    response.writeHead(202).end('taken');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/work`,
    called,
    report: async (verb, body) => {
      const headers = await called;
      const answer = await fetch(`${String(headers['punctual-callback-url'])}/${verb}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${String(headers['punctual-callback-token'])}` },
        body: JSON.stringify(body),
      });
      if (!answer.ok) throw new Error(`${verb}: ${answer.status} ${await answer.text()}`);
    },
    close: () => server.close(),
  };
}
