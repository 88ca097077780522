import { describe, expect, test } from 'vitest';

import type { LaneNow, Problem } from './api/status';
import type { Me } from './api/session';
import { bySeverity, concerned, drainingOf, healthOf, homeOf, mayMend, pageOfProblem, pausedOf, questionOf, timesOf, type Backlog } from './problems';

const NONE = { since: null, by: null, by_name: null, reason: null, count: null, lane: null, circuit: null, owner: null, owner_name: null, task: null, task_name: null, fingerprint: null, last_at: null, what: null } as const;

function problem(kind: Problem['kind'], changes: Partial<Problem> = {}): Problem {
  return { ...NONE, kind, severity: 'warning', title: kind, inspect: 'punctual status', remedy: { label: 'Mend', method: 'POST', path: '/system/resume', body: null, command: 'punctual system resume' }, ...changes };
}

function lane(name: LaneNow['lane'], changes: Partial<LaneNow> = {}): LaneNow {
  return { lane: name, paused_at: null, paused_by: null, paused_by_name: null, reason: null, waiting: 0, at_least: false, ...changes };
}

const PAUSED = { paused_at: '2026-11-28T03:00:00Z', waiting: 14 };

test('the most severe problems come first, and equal ones keep their order', () => {
  const given = [problem('task_paused', { severity: 'info' }), problem('late_jobs'), problem('failures'), problem('scheduler_behind', { severity: 'critical' })];
  expect(bySeverity(given).map(({ kind }) => kind)).toEqual(['scheduler_behind', 'late_jobs', 'failures', 'task_paused']);
});

describe('a problem leads to the page with more about it', () => {
  test.each([
    [problem('failures', { fingerprint: 'f1', owner: 'ann' }), '/dead-letters/f1?owner=ann'],
    [problem('failures', { fingerprint: 'f1', owner: 'me' }), '/dead-letters/f1'],
    [problem('failures'), '/dead-letters'],
    [problem('task_skips', { task: 't', owner: 'ann' }), '/tasks/t?owner=ann'],
    [problem('breaker_open', { owner: 'ann' }), '/jobs?owner=ann&view=ahead'],
    [problem('breaker_open'), '/jobs?view=ahead'],
    [problem('user_disabled'), '/users'],
    [problem('lane_paused', { lane: 'retry' }), undefined],
  ])('%j', (given, href) => expect(pageOfProblem(given, 'me')?.href).toBe(href));
});

test('only a viewer whose role the API accepts gets the button', () => {
  const own = problem('task_paused', { owner: 'me', remedy: { label: 'Resume', method: 'POST', path: '/api/v1/tasks/t/resume', body: null, command: '' } });
  const me = (role: Me['role'], id = 'me', teams: Me['teams'] = []): Me => ({ id, role, teams });
  expect([mayMend(own, me('user')), mayMend(own, me('operator', 'other')), mayMend(own, me('administrator', 'other'))]).toEqual([true, false, true]);
  expect([mayMend(problem('lane_paused'), me('operator')), mayMend(problem('lane_paused'), me('administrator'))]).toEqual([false, true]);
  expect(mayMend(problem('late_jobs', { remedy: null }), me('administrator'))).toBe(false);
  const ofTeam = { ...own, owner: 'team-a' };
  const member = (role: 'viewer' | 'editor'): Me => me('user', 'me', [{ id: 'team-a', name: 'A', role }]);
  expect([mayMend(ofTeam, member('editor')), mayMend(ofTeam, member('viewer'))]).toEqual([true, false]);
});

describe('the times of a problem are named for what they are', () => {
  const [first, last] = ['2026-11-28T03:00:00Z', '2026-11-28T03:40:00Z'];
  test.each([
    [problem('lane_paused'), []],
    [problem('lane_paused', { since: first }), [['Since', first]]],
    [problem('failures', { since: first }), [['First failure', first]]],
    [{ ...problem('failures', { since: first }), last_at: last }, [['First failure', first], ['last failure', last]]],
    [{ ...problem('failures'), last_at: last }, [['Last failure', last]]],
  ])('%j', (given, times) => expect(timesOf(given).map(({ label, at }) => [label, at])).toEqual(times));
});

test('what starts many jobs asks first, and says how many', () => {
  expect(questionOf(problem('lane_paused', { count: 14 }))).toBe('14 jobs wait and start at once.');
  expect(questionOf(problem('lane_paused', { count: 1 }))).toBe('1 job waits and starts at once.');
  expect(questionOf(problem('lane_paused', { count: 0 }))).toBeNull();
  expect(questionOf(problem('task_paused'))).toBeNull();
  expect(questionOf(problem('failures', { count: 2 }))).toMatch(/^2 jobs run again/);
  const both = problem('failures', { count: 2 });
  const label = 'Run all 5 of this error again, of 2 places'; // as `_redrive` in scheduler/insight/problems.py
  expect(questionOf({ ...both, remedy: both.remedy && { ...both.remedy, label } })).toMatch(/^Run all 5 of this error again, of 2 places, with/);
  expect(questionOf(problem('breaker_open'))).not.toBeNull();
});

describe('lanes', () => {
  test('that are paused', () => expect(pausedOf([lane('one-time'), lane('retry', PAUSED)]).map((each) => each.lane)).toEqual(['retry']));

  const read = (waiting: number, changes: Partial<LaneNow> = {}): LaneNow[] => [lane('one-time', { waiting, ...changes }), lane('retry', { waiting: 6 })];
  const during = (lanes: LaneNow[], draining: Backlog['draining'] = []): Backlog => ({ lanes, late: { count: 20, at_least: false }, draining });
  const paused = read(14, PAUSED);

  test('drain after a resume as long as their jobs become fewer', () => {
    expect(drainingOf(during(paused), paused)).toEqual([]);
    const draining = drainingOf(during(paused), read(9));
    expect(draining).toEqual([{ lane: 'one-time', left: 9, at_least: false }]);
    expect(drainingOf(during(read(9), draining), read(2))).toEqual([{ lane: 'one-time', left: 2, at_least: false }]);
    expect(drainingOf(during(read(9), draining), read(0)), 'all started').toEqual([]);
    expect(drainingOf(during(read(9), draining), read(9)), 'they wait for something else').toEqual([]);
    expect(drainingOf(during(read(9), draining), paused), 'paused again').toEqual([]);
  });

  test('drain, too, while there are more jobs than are counted', () => {
    const many = [{ lane: 'one-time', left: 1_000, at_least: true }];
    expect(drainingOf(during(read(1_000, { at_least: true }), many), read(1_000, { at_least: true }))).toEqual(many);
  });

  test('with a usual backlog were not resumed', () => expect(drainingOf(during(read(5)), read(4))).toEqual([]));

  test.each([
    ['/tasks', 'recurring', true, true],
    ['/tasks/t/edit', 'retry', true, true],
    ['/tasks', 'one-time', true, true],
    ['/jobs', 'recurring', true, true],
    ['/jobs/new', 'one-time', true, true],
    ['/jobs/new', 'recurring', true, false],
    ['/jobs/01ARZ', 'one-time', true, false],
    ['/dead-letters/f', 'retry', true, true],
    ['/users', 'retry', true, false],
    ['/status', 'retry', true, false],
    ['/status', 'retry', false, true],
    ['/system', 'retry', false, true],
  ])('on %s, the lane %s that is paused (%s): %s', (path, name, paused, shown) => expect(concerned(path, name, paused)).toBe(shown));
});

describe('the scheduler is on time only if nothing waits that should run', () => {
  const [open, paused, none] = [lane('one-time'), lane('retry', PAUSED), { count: 0, at_least: false }];
  test.each([
    [0, [], none, [['loading', 'Not read yet']]],
    [0, [open], none, [['success', 'On time']]],
    [180, [open], none, [['success', 'On time']]],
    [181, [open], none, [['warning', 'Behind']]],
    [0, [open, paused], none, [['warning', 'Queue retry paused']]],
    [0, [open], { count: 1, at_least: false }, [['warning', '1 job late']]],
    [200, [open, paused], { count: 14, at_least: true }, [['warning', 'Behind'], ['warning', 'Queue retry paused'], ['warning', 'at least 14 jobs late']]],
  ])('behind by %s s, %j, late %j', (behind, lanes, late, words) => expect(healthOf(behind, { lanes, late }).map(({ look, word }) => [look, word])).toEqual(words));
});

test('the home page of an operator is what is wrong, and of a user the tasks', () => expect([homeOf(true), homeOf(false)]).toEqual(['/status', '/tasks']));
