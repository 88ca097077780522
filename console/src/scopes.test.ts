import { expect, test } from 'vitest';

import { firstCall, hasExpired, invitationLink, scopesInWords, SCOPES, tokenOf } from './scopes';

test('scopes are named in their order, and all of an owner in one phrase', () => {
  expect(scopesInWords(['tasks:read', 'jobs:read'])).toBe('See jobs, See tasks');
  expect(scopesInWords(['tasks:write', 'tasks:read', 'jobs:write', 'jobs:read'])).toBe('See and change jobs and tasks');
  expect(scopesInWords(['admin'])).toBe('Administer');
  expect(scopesInWords(SCOPES.map(({ value }) => value))).toContain('Administer');
});

test('a key has expired from its last instant on', () => {
  const at = '2030-01-02T03:04:05Z';
  expect([hasExpired(at, Date.parse(at) - 1), hasExpired(at, Date.parse(at)), hasExpired(null, Date.parse(at))]).toEqual([false, true, false]);
});

test('the first call of a key is one that its scopes allow', () => {
  expect(firstCall('https://example.com', 'punctual_k', ['jobs:write', 'jobs:read'])).toBe("curl -sS --fail-with-body -H 'Authorization: Bearer punctual_k' 'https://example.com/api/v1/key/jobs'");
  expect(firstCall('https://example.com', 'punctual_k', ['tasks:read'])).toContain('/api/v1/key/tasks');
  expect(firstCall('https://example.com', 'punctual_k', ['jobs:write'])).toContain('/api/v1/key/me');
});

test('the link of an invitation has its token where no server sees it', () => {
  const link = invitationLink('https://example.com', 'team-a.b.c');
  expect(new URL(link).pathname).toBe('/invitation');
  expect(tokenOf(new URL(link).hash)).toBe('team-a.b.c');
  expect(tokenOf('')).toBe('');
});
