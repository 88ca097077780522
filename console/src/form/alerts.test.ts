import { expect, test } from 'vitest';

import { fromAlerts, NO_ALERTS, rulesOf, toAlerts, toDefaultAlerts } from './alerts';

const ALL = { late_after_seconds: 60, max_duration_seconds: 3_600, done_by: '07:30', missed: true };

test('alerts go back to the API as they came', () => {
  expect(toAlerts(fromAlerts(ALL))).toEqual(ALL);
  expect(toAlerts(fromAlerts({ missed: true }))).toEqual({ missed: true });
  expect(fromAlerts(null)).toBe(NO_ALERTS);
});

test('no alerts differ from the default ones', () => {
  expect(toAlerts(fromAlerts({}))).toEqual({});
  expect(fromAlerts({ missed: false }).none).toBe(true);
  expect(toAlerts(fromAlerts(null))).toBeUndefined();
});

test('a form without a rule sends no alerts', () => {
  expect(toAlerts({ ...NO_ALERTS, doneBy: '  ' })).toBeUndefined();
});

test('what is no number is sent as it was typed, so that the API reports it', () => {
  expect(toAlerts({ ...NO_ALERTS, lateAfter: 'soon' })).toEqual({ late_after_seconds: 'soon' });
});

test('the rules are shown in words', () => {
  expect(rulesOf(ALL)).toEqual(['has not started 1 min after its time', 'takes longer than 1 h', 'is not done by 07:30', 'is missed']);
});

test('default alerts go back to the API without what it only answers', () => {
  const told = { late_after_seconds: 60, max_duration_seconds: null, missed: true, updated_at: '2026-11-20T12:00:00.000Z' };
  expect(toDefaultAlerts(fromAlerts(told))).toEqual({ late_after_seconds: 60, max_duration_seconds: null, missed: true });
  expect(toDefaultAlerts(NO_ALERTS)).toEqual({ late_after_seconds: null, max_duration_seconds: null, missed: false });
});
