import { createElement } from 'react';
import { expect, test } from 'vitest';

import type { Job } from './api/client';
import { exitInWords, startedBy, type Awaiting } from './awaited';
import { InAws } from './parts/awaited';
import { rendered } from './rendered';

const TASK = 'arn:aws:ecs:eu-west-1:123456789012:task/jobs/0123456789abcdef';
const LOG = 'https://eu-west-1.console.aws.amazon.com/cloudwatch/home?region=eu-west-1#logsV2:log-groups/log-group/$252Fecs$252Freport';
const PAGE = 'https://eu-west-1.console.aws.amazon.com/ecs/v2/clusters/jobs/tasks/0123456789abcdef?region=eu-west-1';
const ENDED = {
  task: TASK,
  url: PAGE,
  status: 'STOPPED',
  stop_code: 'EssentialContainerExited',
  stopped_reason: 'Essential container in task exited',
  started_at: '2026-11-30T10:00:05Z',
  stopped_at: '2026-11-30T10:12:00Z',
  containers: [{ name: 'report', exit_code: 3, reason: null, log: LOG }],
};
const job = (changes: Partial<Awaiting>): Awaiting => ({ type: 'ecs', status: 'running', output: null, attempts: [], ...changes }) as unknown as Job;
const page = (changes: Partial<Awaiting>): string => rendered(createElement(InAws, { job: job(changes) }));

test('the end of a container has its exit code, its reason and its log', () => {
  const html = page({ status: 'failed', output: JSON.stringify(ENDED) });
  const shown = html.replace(/<[^>]+>/g, '\n');
  for (const text of ['STOPPED', 'A container ended', 'Essential container in task exited', 'report', 'Exit code 3']) expect(shown).toContain(text);
  expect(html).toContain(`href="${LOG}"`);
  expect(html).toContain(`href="${PAGE}"`);
});

test('a running container has its page in AWS, and why it is being stopped', () => {
  const url = 'https://eu-west-1.console.aws.amazon.com/ecs/v2/clusters/jobs/tasks/x';
  const html = page({ awaited: { id: TASK, url, logs: { report: LOG }, stopping: 'cancelled by ann' } });
  expect(html).toContain(`href="${url}"`);
  expect(html).toContain(`href="${LOG}"`);
  expect(html).toContain('cancelled by ann');
  expect(html).toContain('Running');
});

test('the output of an earlier attempt is not that of the container that runs', () => {
  const last = `${TASK}2`;
  expect(startedBy(job({ output: JSON.stringify(ENDED), awaited: { id: last } }))).toMatchObject({ arn: last, status: null, containers: [] });
});

test('a failed job without an output has that of its last attempt', () =>
  expect(startedBy(job({ attempts: [{ output: JSON.stringify(ENDED) }] as Job['attempts'] }))?.containers[0]?.exitCode).toBe(3));

test.each(['', '{', '[]', 'null', '7', '{"task": 7}', '{"status": "paid", "containers": {}}'])('nothing is made of the output %s', (output) =>
  expect(startedBy(job({ output }))).toBeNull());

test('missing and strange parts are left out', () => {
  expect(page({ output: JSON.stringify({ task: TASK, containers: [{}, null, { exit_code: '3', log: 'javascript:alert(1)' }] }) })).not.toContain('javascript:');
  expect(startedBy(job({ awaited: { id: 'arn:aws:batch:eu-west-1:1:job/x', url: 'https://evil.example/console.aws.amazon.com/' } }))?.page).toBeNull();
});

test('an execution has its page, also in another partition', () => {
  const url = 'https://cn-north-1.console.amazonaws.cn/states/home?region=cn-north-1#/v2/executions/details/arn:aws-cn:states:cn-north-1:1:execution:bill:7';
  const awaited = { id: 'arn:aws-cn:states:cn-north-1:1:execution:bill:7', url };
  expect(startedBy(job({ type: 'stepfunctions', output: '{"status": "paid"}', awaited }))).toMatchObject({ page: url, status: null });
});

test('an exit code beyond 128 names its signal', () => {
  expect([0, 3, 137, 200].map(exitInWords)).toEqual(['Exit code 0, success', 'Exit code 3', 'Exit code 137, killed, as by a lack of memory', 'Exit code 200']);
});
