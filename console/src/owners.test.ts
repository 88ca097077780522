import { describe, expect, test } from 'vitest';

import { meOf } from './api/me';
import type { Me } from './api/session';
import { choicesOf, mayManage, ownersOf, whoseOf } from './owners';

const TEAMS: Me['teams'] = [
  { id: 'team-a', name: 'Accounting', role: 'editor' },
  { id: 'team-b', name: 'Building', role: 'viewer' },
];
const me = (role: Me['role'] = 'user', teams = TEAMS): Me => ({ id: 'me', role, teams });

describe('whose objects a page shows', () => {
  test('without an owner, and with my id, they are mine', () => {
    for (const named of ['', 'me']) expect(whoseOf(named, me())).toMatchObject({ owner: undefined, several: null, mayChange: true });
  });

  test('an editor changes what the team has, a viewer does not', () => {
    expect(whoseOf('team-a', me())).toMatchObject({ owner: 'team-a', mayChange: true });
    expect(whoseOf('team-b', me())).toMatchObject({ owner: 'team-b', mayChange: false });
  });

  test('of others, administrators change it and operators do not', () => {
    expect(whoseOf('ann', me('administrator')).mayChange).toBe(true);
    expect(whoseOf('team-b', me('administrator')).mayChange).toBe(true);
    expect(whoseOf('ann', me('operator')).mayChange).toBe(false);
    expect(whoseOf('ann', me()).mayChange).toBe(false);
  });

  test('objects are created for me and for teams that I edit, and for nobody else', () => {
    const creates = (named: string, role: Me['role'] = 'user') => whoseOf(named, me(role)).creates;
    expect(creates('')).toEqual({ owner: undefined });
    expect(creates('team-a')).toEqual({ owner: 'team-a' });
    for (const named of ['team-b', 'ann']) expect(creates(named, 'administrator')).toBeNull();
    for (const named of ['mine', 'all']) expect(creates(named, 'administrator')).toEqual({ owner: undefined });
  });

  test('of mine and my teams’, each object has the rights of its owner', () => {
    const { several, mayChange, mayChangeOf } = whoseOf('mine', me());
    expect([several, mayChange]).toEqual(['mine', true]);
    expect(['me', 'team-a', 'team-b', undefined].map(mayChangeOf)).toEqual([true, true, false, true]);
  });

  test('everyone’s objects are changed by administrators', () => {
    expect(whoseOf('all', me('operator', []))).toMatchObject({ several: 'everyone', mayChange: false });
    expect(whoseOf('all', me('administrator', []))).toMatchObject({ several: 'everyone', mayChange: true });
  });
});

describe('the choice of owner', () => {
  const others = { users: [{ id: 'me', username: 'me' }, { id: 'ann', username: 'ann' }], teams: [{ id: 'team-a', username: 'Accounting' }, { id: 'team-c', username: 'Cleaning' }] };
  const labels = (role: Me['role'], single = false, teams = TEAMS): string[][] => {
    const { first, teams: own, users, otherTeams } = choicesOf(me(role, teams), others, single);
    return [first, own, users, otherTeams].map((each) => each.map(({ label }) => label));
  };

  test('a member has their teams', () => expect(labels('user')).toEqual([['Me', 'Me and my teams'], ['Accounting', 'Building'], [], []]));
  test('an operator also has everyone, all others once', () => expect(labels('operator')).toEqual([['Me', 'Me and my teams', 'Everyone'], ['Accounting', 'Building'], ['ann'], ['Cleaning']]));
  test('a page of one owner merges none', () => expect(labels('operator', true)[0]).toEqual(['Me']));
  test('without a team there is nothing to merge', () => expect(labels('user', false, [])).toEqual([['Me'], [], [], []]));
});

test('a removed membership disappears with the next answer of the API', () => {
  const answer = { id: 'me', role: 'user' as const, teams: TEAMS };
  expect(whoseOf('team-a', meOf(answer)).mayChange).toBe(true);
  expect(whoseOf('team-a', meOf({ ...answer, teams: [] })).mayChange).toBe(false);
});

test('the viewer comes before the teams', () => expect(ownersOf(me(), 'mia').map(({ username }) => username)).toEqual(['mia', 'Accounting', 'Building']));

test('managers and administrators manage a team', () => {
  expect(mayManage('manager', 'user')).toBe(true);
  expect(mayManage('editor', 'user')).toBe(false);
  expect(mayManage(null, 'administrator')).toBe(true);
  expect(mayManage(null, 'operator')).toBe(false);
});
