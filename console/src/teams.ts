/** Roles in a team in words. Pure. */
import type { TeamRole } from './api/session';

export const TEAM_ROLES: { value: TeamRole; label: string; description: string }[] = [
  { value: 'viewer', label: 'Viewer', description: 'Sees the tasks and jobs of the team' },
  { value: 'editor', label: 'Editor', description: 'Also creates and changes them' },
  { value: 'manager', label: 'Manager', description: 'Also the members, the name and all API keys of the team' },
];

export function teamRoleInWords(role: TeamRole | null): string {
  return TEAM_ROLES.find(({ value }) => value === role)?.label ?? 'Not a member';
}
