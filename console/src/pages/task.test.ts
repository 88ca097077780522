import { createElement } from 'react';
import { expect, test } from 'vitest';

import type { Task } from '../api/client';
import { rendered } from '../rendered';
import { Overview } from './task';

const TASK = {
  id: '01ARZ3NDEKTSV4RRFFQ69G5FAV', name: 'Nightly', status: 'active', type: 'http', target: null, payload: { url: 'https://api.example.com/orders?day=1' },
  schedule: { cron: '30 2 * * *', time_zone: 'Europe/Berlin' }, tags: [], overlap: 'skip', misfire: 'run_latest', max_attempts: 3, timeout_seconds: 30,
  key: null, ordering_key: null, generation: 1, updated_at: '2026-11-28T08:00:00Z', inactive_at: null, inactive_reason: null, next_runs: [],
} as unknown as Task;

function text(element: Parameters<typeof rendered>[0]): string {
  return rendered(element).replace(/<[^>]+>/g, ' ').replace(/\s+/g, ' ');
}

test('the top of a task says what it calls, and its rules in words with their terms', () => {
  const page = text(createElement(Overview, { task: TASK }));
  expect(page).toContain('Calls api.example.com/orders ');
  expect(page).toContain('If the previous run has not ended The new run is skipped overlap: skip');
  expect(page).toContain('Missed runs Only the latest runs misfire: run_latest');
});
