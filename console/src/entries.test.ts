import { expect, test } from 'vitest';

import { actionInWords, fieldsAsked, outcomeOf, pageOf } from './entries';

test('an action is told in words, and one that is not known by its name', () => {
  expect(actionInWords('task.pause')).toBe('Paused a task');
  expect(actionInWords('moon.land')).toBe('moon.land');
});

test('what was changed is linked to, unless it is gone or has no page', () => {
  expect(pageOf({ action: 'task.edit', object: '01A' })).toBe('/tasks/01A');
  expect(pageOf({ action: 'job.cancel', object: '01B' })).toBe('/jobs/01B');
  expect(pageOf({ action: 'target.change', object: 'a b' })).toBe('/targets/one?name=a%20b');
  expect(pageOf({ action: 'task.delete', object: '01A' })).toBeNull();
  expect(pageOf({ action: 'user.change', object: 'x' })).toBeNull();
  expect(pageOf({ action: 'task.create', object: null })).toBeNull();
});

test('a change whose answer was never written down is not told as done', () => {
  expect(outcomeOf(null)).toEqual({ look: 'pending', word: 'Not known' });
  expect(outcomeOf(201).word).toBe('Done');
  expect(outcomeOf(409)).toEqual({ look: 'error', word: 'Refused (409)' });
});

test('the fields asked for are named', () => {
  expect(fieldsAsked({ name: 'x', cron: 'y' })).toBe('name, cron');
  expect(fieldsAsked({ a: 1, b: 2, c: 3, d: 4, e: 5 })).toBe('a, b, c + 2');
  expect(fieldsAsked({})).toBe('–');
});
