import { readdirSync, readFileSync } from 'node:fs';

import { expect, test } from 'vitest';

import { actionInWords, fieldsAsked, outcomeOf, pageOf } from './entries';

test('an action is told in words, and one that is not known by its name', () => {
  const words = (action: string, changes = {}) => actionInWords({ action, changes });
  expect(words('task.pause')).toBe('Paused a task');
  expect(words('moon.land')).toBe('moon.land');
  expect(words('operation.pause_tasks', { all: true })).toBe('Paused many tasks');
  expect(words('operation.pause_tasks', { all: true, dry_run: true })).toBe('Previewed an operation');
});

test('every action that the API writes into the audit trail has its words', () => {
  const routes = new URL('../../lambdas/rest/', import.meta.url);
  const named = readdirSync(routes).filter((name) => name.endsWith('.py')).flatMap((name) => [...readFileSync(new URL(name, routes), 'utf8').matchAll(/action="([\w-]+\.[\w-]+)"/g)].map((found) => found[1] ?? ''));
  expect(named.length).toBeGreaterThan(20);
  expect(named.filter((action) => actionInWords({ action, changes: {} }) === action)).toEqual([]);
});

test('what was changed is linked to, unless it is gone or has no page', () => {
  const page = (action: string, object: string | null, owner = 'me') => pageOf({ action, object, owner }, 'me');
  expect(page('task.edit', '01A')).toBe('/tasks/01A');
  expect(page('job.cancel', '01B')).toBe('/jobs/01B');
  expect(page('group.seal', '01G')).toBe('/groups/01G');
  expect(page('target.change', 'a b', 'system')).toBe('/targets/one?name=a%20b');
  expect(page('redrive.start', '01C')).toBe('/dead-letters?operation=01C');
  expect(page('operation.cancel_jobs', '01D')).toBe('/operations?operation=01D');
  expect(page('task.delete', '01A')).toBeNull();
  expect(page('user.change', 'x')).toBeNull();
  expect(page('task.create', null)).toBeNull();
});

test('what is somebody else’s is linked to with its owner', () => {
  const page = (action: string) => pageOf({ action, object: '01A', owner: 'ann' }, 'me');
  expect(page('task.edit')).toBe('/tasks/01A?owner=ann');
  expect(page('job.cancel')).toBe('/jobs/01A?owner=ann');
  expect(page('redrive.start')).toBe('/dead-letters?owner=ann&operation=01A');
  expect(page('operation.abort')).toBe('/operations?owner=ann&operation=01A');
});

test('a change whose answer was never written down is not told as done', () => {
  expect(outcomeOf(null)).toEqual({ look: 'pending', word: 'Unknown' });
  expect(outcomeOf(201).word).toBe('Done');
  expect(outcomeOf(409)).toEqual({ look: 'error', word: 'Refused (409)' });
});

test('the fields asked for are named', () => {
  expect(fieldsAsked({ name: 'x', cron: 'y' })).toBe('name, cron');
  expect(fieldsAsked({ a: 1, b: 2, c: 3, d: 4, e: 5 })).toBe('a, b, c + 2');
  expect(fieldsAsked({})).toBe('–');
});
