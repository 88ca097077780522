import { createElement } from 'react';
import { afterEach, expect, test, vi } from 'vitest';

import type { Job } from '../api/client';
import type { Group } from '../groups';
import { JobTable } from '../parts/job-table';
import { rendered } from '../rendered';
import { Note, Overview } from './group';
import { NoGroups } from './groups';

const GROUP: Group = {
  id: '01ARZ3NDEKTSV4RRFFQ69G5FAV', name: null, state: 'sealed', jobs: 50, counts: { unfinished: 13, succeeded: 35, failed: 2, killed: 0, cancelled: 0, skipped: 0 },
  callbacks: [{ kind: 'on_complete', type: 'http', job_id: null }], created_at: '2026-11-30T08:00:00.000Z', seal_by: '2026-12-01T08:00:00.000Z', sealed_at: '2026-11-30T08:00:00.000Z',
  cancelled_at: null, abandoned_at: null, ended_at: null, succeeded_at: null,
};

function text(element: Parameters<typeof rendered>[0]): string {
  return rendered(element).replace(/<[^>]+>/g, ' ').replace(/\s+/g, ' ');
}

afterEach(() => void vi.unstubAllGlobals());

test('the top of a group has a part of the bar and a number for each status of its jobs', () => {
  const page = rendered(createElement(Overview, { group: GROUP }));
  expect([...page.matchAll(/flex-grow:(\d+)(?:;background:var\(--(\w+)\))?/g)].map((found) => found.slice(1))).toEqual([['35', 'succeeded'], ['2', 'failed'], ['13', undefined]]);
  expect(text(createElement(Overview, { group: GROUP }))).toMatch(/37 of 50 ended, 2 failed .*35 succeeded .*2 failed .*13 not ended/);
});

test('an open group says what it waits for, and an abandoned one what became of it', () => {
  const note = (state: Group['state'], callbacks = GROUP.callbacks): string => text(createElement(Note, { group: { ...GROUP, state, callbacks } }));
  expect(note('open')).toContain('Seal the group when all its jobs have joined. Its call-backs start after that. If it is not sealed by');
  expect(note('open', [])).not.toContain('call-backs');
  expect(note('abandoned')).toContain('Its jobs run, but none of its call-backs starts, and no other job can join.');
  expect([note('sealed'), note('ended')]).toEqual(['', '']);
});

test('an empty list has the command that makes a group', () => {
  vi.stubGlobal('window', { location: { origin: 'https://punctual.example' } });
  const page = text(createElement(NoGroups, { owner: 'team-1', command: true }));
  expect(page).toContain("https://punctual.example/api/v1/groups?owner=team-1");
  expect(page).toContain('on_complete');
  expect(text(createElement(NoGroups, { owner: 'ann', command: false }))).not.toContain('curl');
});

test('a list of jobs has their numbers in the group', () => {
  const job = { id: GROUP.id, group_member: 7, attempts: [], task_id: null } as unknown as Job;
  expect(text(createElement(JobTable, { jobs: [job], columns: ['number'] }))).toContain('Number 7');
});
