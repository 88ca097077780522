// BullMQ with Redis: a process per core, 50 jobs at once each. Redis looks at the timeouts of blocked clients `hz` times a second.
import { Queue, Worker } from 'bullmq';
import * as lib from './lib.mjs';

const describe = () => ({
  versions: { bullmq: lib.version('bullmq'), ioredis: lib.version('ioredis'), node: process.version },
  settings: `${lib.cores} processes, concurrency 50 each, removeOnComplete {count: 1000}; Redis with hz 100 (default 10)`,
  workers: Array(lib.cores).fill(lib.worker('bullmq.mjs')),
  per_second: 3000,
  ready_s: 3,
});

async function worker() {
  const options = { connection: lib.redis(), concurrency: 50, removeOnComplete: { count: 1000 }, removeOnFail: { count: 5000 } };
  new Worker('compare', async job => { await lib.run(job.data.id, job.data.url); }, options).on('error', console.error);
}

async function produce(order) {
  const queue = new Queue('compare', { connection: lib.redis() });
  await queue.waitUntilReady();
  return lib.creating(`addBulk(delay), ${lib.CALL} a call`, async () => {
    for await (const call of lib.calls(order)) {
      const timestamp = Date.now(); // the delay counts from this
      await queue.addBulk(call.map(([id, at]) => (
        { name: 'job', data: { id, url: order.url }, opts: { timestamp, delay: Math.max(0, Math.round(at * 1000) - timestamp) } }
      )));
    }
  });
}

lib.main({ describe, worker, produce });
