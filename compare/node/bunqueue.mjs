// bunqueue on Bun: its server with SQLite, and a process per core, which waits for jobs by long polls.
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { Queue, Worker } from 'bunqueue/client';
import * as lib from './lib.mjs';

const HOST = '127.0.0.1';
const ports = path.join(lib.FOLDER, 'bunqueue.ports');
const connection = () => ({ host: HOST, port: JSON.parse(fs.readFileSync(ports))[0] });

const freePort = () => new Promise(resolve => {
  const listener = net.createServer().listen(0, HOST, () => {
    const { port } = listener.address();
    listener.close(() => resolve(port));
  });
});

async function describe() {
  const [tcp, http] = [await freePort(), await freePort()];
  fs.writeFileSync(ports, JSON.stringify([tcp, http])); // workers and producers find the server by it
  const store = ['--host', HOST, '--tcp-port', String(tcp), '--http-port', String(http), '--data-path', path.join(lib.FOLDER, 'bunqueue.db')];
  return {
    versions: { bunqueue: lib.version('bunqueue'), bun: Bun.version },
    settings: `its server with SQLite (WAL, writes buffered for 10 ms: default), ${lib.cores} processes, concurrency 50 each, ` +
      'batchSize 100 (default 10), pollTimeout 30 s (default 0: a poll each 50 ms), removeOnComplete',
    workers: [['bunqueue', 'start', ...store], ...Array(lib.cores).fill(['bun', 'bunqueue.mjs', 'worker'])],
    per_second: 3000,
    ready_s: 5,
  };
}

async function worker() {
  const options = { connection: connection(), concurrency: 50, batchSize: 100, pollTimeout: 30_000 };
  new Worker('compare', async job => { await lib.run(job.data.id, job.data.url); }, options).on('error', console.error);
}

async function produce(order) {
  const queue = new Queue('compare', { connection: connection() });
  await queue.waitUntilReady();
  return lib.creating(`addBulk(delay), ${lib.CALL} a call`, async () => {
    for await (const call of lib.calls(order)) {
      const timestamp = Date.now(); // the delay counts from this
      await queue.addBulk(call.map(([id, at]) => ({
        name: 'job',
        data: { id, url: order.url },
        opts: { timestamp, delay: Math.max(0, Math.round(at * 1000) - timestamp), removeOnComplete: true },
      })));
    }
  });
}

lib.main({ describe, worker, produce });
