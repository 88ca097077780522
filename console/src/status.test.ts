import { expect, test } from 'vitest';

import { pathOf } from './api/status';

test('what mends a problem of a team names the team, and what mends the stage does not', () => {
  const path = (of: string, owner?: string): string => pathOf({ path: of }, owner);
  expect(path('/tasks/t/resume')).toBe('/api/v1/tasks/t/resume');
  expect(path('/api/v1/tasks/t/resume', 'team-a')).toBe('/api/v1/tasks/t/resume?owner=team-a');
  expect(path('/api/v1/tasks/t/resume?owner=team-a', 'team-a')).toBe('/api/v1/tasks/t/resume?owner=team-a');
  expect(path('/api/v1/system/resume', 'team-a')).toBe('/api/v1/system/resume');
});
