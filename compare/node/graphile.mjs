// Graphile Worker on PostgreSQL, as its page on performance advises: a local queue, batched completion, a short poll interval.
import { Logger, makeWorkerUtils, run } from 'graphile-worker';
import * as lib from './lib.mjs';

const logger = new Logger(() => (level, message) => { if (level === 'error' || level === 'warning') console.error(level, message); });
const tuned = { pollInterval: 100, localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 };
const preset = { worker: { connectionString: lib.POSTGRES, concurrentJobs: 10, maxPoolSize: 12, ...tuned } };

const describe = () => ({
  versions: { 'graphile-worker': lib.version('graphile-worker'), pg: lib.version('pg'), node: process.version },
  settings: `${lib.cores} processes, concurrentJobs 10 each, pollInterval 100 ms, localQueue 500, batched completion`,
  workers: Array(lib.cores).fill(lib.worker('graphile.mjs')),
  per_second: 3000,
  ready_s: 4,
});

async function init() {
  const utils = await makeWorkerUtils({ connectionString: lib.POSTGRES, logger });
  await utils.migrate();
  await utils.release();
}

async function worker() {
  await run({ preset, logger, crontab: '', taskList: { job: async payload => { await lib.run(payload.id, payload.url); } } });
}

async function produce(order) {
  const utils = await makeWorkerUtils({ connectionString: lib.POSTGRES, logger });
  await utils.withPgClient(client => client.query('select 1'));
  return lib.creating(`addJobs(runAt), ${lib.CALL} a call`, async () => {
    for await (const call of lib.calls(order)) {
      await utils.addJobs(call.map(([id, at]) => ({ identifier: 'job', payload: { id, url: order.url }, runAt: new Date(at * 1000) })));
    }
  });
}

lib.main({ describe, init, worker, produce });
