// pg-boss on PostgreSQL: a process per core, a hundred jobs a fetch, polled as often as it allows.
import { PgBoss } from 'pg-boss';
import * as lib from './lib.mjs';

const open = options => {
  const boss = new PgBoss({ connectionString: lib.POSTGRES, ...options });
  boss.on('error', console.error);
  return boss;
};

const describe = () => ({
  versions: { 'pg-boss': lib.version('pg-boss'), pg: lib.version('pg'), node: process.version },
  settings: `${lib.cores} processes, batchSize 100 (default 1), burstWhenBatchFull, pollingIntervalSeconds 0.5 (the least; default 2)`,
  workers: Array(lib.cores).fill(lib.worker('pgboss.mjs')),
  per_second: 3000,
  ready_s: 5,
});

async function init() {
  const boss = open({});
  await boss.start();
  await boss.createQueue('compare');
  await boss.stop({ graceful: false });
}

async function worker() {
  const boss = open({});
  await boss.start();
  const options = { batchSize: 100, burstWhenBatchFull: true, pollingIntervalSeconds: 0.5 };
  await boss.work('compare', options, async jobs => { await Promise.all(jobs.map(job => lib.run(job.data.id, job.data.url))); });
}

async function produce(order) {
  const boss = open({ supervise: false, schedule: false });
  await boss.start();
  return lib.creating(`insert(startAfter), ${lib.CALL} a call`, async () => {
    for await (const call of lib.calls(order)) {
      await boss.insert('compare', call.map(([id, at]) => ({ data: { id, url: order.url }, startAfter: new Date(at * 1000) })));
    }
  });
}

lib.main({ describe, init, worker, produce });
