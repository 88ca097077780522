// Shared by the drivers that run on Node and on Bun. The contract is that of ../drivers/lib.py.
import fs from 'node:fs';
import http from 'node:http';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { performance } from 'node:perf_hooks';

export const FOLDER = process.env.COMPARE_FOLDER ?? '.';
export const POSTGRES = process.env.COMPARE_POSTGRES ?? '';
export const redis = () => {
  const { hostname, port } = new URL(process.env.COMPARE_REDIS);
  return { host: hostname, port: Number(port), maxRetriesPerRequest: null };
};
export const CALL = 1000; // jobs of a bulk call
export const cores = os.cpus().length;

const agent = new http.Agent({ keepAlive: true, maxSockets: 10 });
let log = null;
const now = () => (performance.timeOrigin + performance.now()) / 1000;

// Run a job: note its start in one write to a shared file, or call a URL, whose server notes it.
export function run(job, url) {
  if (url) return call(`${url}?${job}`);
  const at = now();
  log ??= fs.openSync(path.join(FOLDER, 'starts.log'), 'a');
  fs.writeSync(log, `${job} ${at.toFixed(6)}\n`);
}

function call(url) {
  return new Promise((resolve, reject) => {
    const request = http.get(url, { agent }, answer => answer.resume().on('end', resolve));
    request.on('error', reject);
  });
}

export function jobs({ prefix, count, at, seconds = 0 }) {
  return Array.from({ length: count }, (_, number) => [prefix + number, at + (number * seconds) / count]);
}

export async function* calls(order) {
  const all = jobs(order);
  if (!order.one_by_one) {
    for (let first = 0; first < all.length; first += CALL) yield all.slice(first, first + CALL);
    return;
  }
  for (const job of all) {
    for (let left; (left = job[1] - now()) > 0;) await new Promise(resolve => setTimeout(resolve, left * 1000));
    yield [job];
  }
}

export async function creating(api, create) {
  const cpu = process.cpuUsage(), began = now();
  await create();
  const used = process.cpuUsage(cpu);
  return { began, ended: now(), cpu_s: (used.user + used.system) / 1e6, api };
}

export function version(name) {
  const from = createRequire(path.join(process.cwd(), 'node_modules', name, 'package.json'));
  return JSON.parse(fs.readFileSync(from.resolve('./package.json'))).version;
}

export async function main({ describe, init, worker, produce }) {
  const [command, file] = process.argv.slice(2);
  if (command === 'describe') console.log(JSON.stringify(await describe()));
  else if (command === 'init') { await init?.(); process.exit(0); }
  else if (command === 'worker') await worker();
  else {
    const answer = await produce(JSON.parse(fs.readFileSync(file)));
    fs.writeSync(1, JSON.stringify(answer) + '\n');
    process.exit(0);
  }
}

export const worker = file => ['node', file, 'worker'];
