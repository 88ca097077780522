import { expect, test } from 'vitest';

import type { Me } from '../api/session';
import { mayRevoke, offeredOf } from './keys';

const me = (role: Me['role'], ...teams: [string, 'viewer' | 'editor' | 'manager'][]): Me => ({ id: 'me', role, teams: teams.map(([id, of]) => ({ id, name: id, role: of })) });

test('a key is offered no more than its maker may do', () => {
  const four = ['jobs:read', 'jobs:write', 'tasks:read', 'tasks:write'];
  expect(offeredOf(undefined, me('user'))).toEqual(four);
  expect(offeredOf('team-a', me('user', ['team-a', 'editor']))).toEqual(four);
  expect(offeredOf('team-a', me('user', ['team-a', 'viewer']))).toEqual(['jobs:read', 'tasks:read']);
  expect(offeredOf(undefined, me('administrator'))).toEqual([...four, 'admin']);
});

test('the maker, the managers of the team and administrators revoke a key', () => {
  const key = { maker: 'ann', owner: 'team-a' };
  expect(mayRevoke({ ...key, maker: 'me' }, me('user', ['team-a', 'viewer']))).toBe(true);
  expect(mayRevoke(key, me('user', ['team-a', 'editor']))).toBe(false);
  expect(mayRevoke(key, me('user', ['team-a', 'manager']))).toBe(true);
  expect(mayRevoke(key, me('administrator'))).toBe(true);
  expect(mayRevoke({ maker: 'ann', owner: 'me' }, me('user'))).toBe(true);
});
