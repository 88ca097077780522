/** The scopes of API keys and AWS roles, and the lifetime of keys, in words. Pure. */
import type { Schemas } from './api/client';

export type Scope = Schemas['Scope'];

/** Administrators may also grant `admin`. */
export const SCOPES: { value: Scope; label: string; description: string }[] = [
  { value: 'jobs:read', label: 'See jobs', description: 'Read and list jobs, their output and their failures' },
  { value: 'jobs:write', label: 'Change jobs', description: 'Create, change, cancel and run them again' },
  { value: 'tasks:read', label: 'See tasks', description: 'Read and list tasks and their runs' },
  { value: 'tasks:write', label: 'Change tasks', description: 'Create, edit, pause, run and delete them' },
  { value: 'admin', label: 'Administer', description: 'All that an administrator may do by the API, for every owner' },
];

/** In the order of `SCOPES`; all four of an owner in one word. */
export function scopesInWords(scopes: readonly Scope[]): string {
  const named = SCOPES.filter(({ value }) => scopes.includes(value));
  const ofOwner = named.filter(({ value }) => value !== 'admin');
  if (ofOwner.length === SCOPES.length - 1 && named.length === ofOwner.length) return 'See and change jobs and tasks';
  return named.map(({ label }) => label).join(', ');
}

export const LIFETIMES = [
  { value: '7', label: '7 days' },
  { value: '30', label: '30 days' },
  { value: '90', label: '90 days' },
  { value: '365', label: '1 year' },
  { value: '', label: 'Does not expire' },
];

export function hasExpired(expiresAt: string | null, now: number): boolean {
  return expiresAt !== null && Date.parse(expiresAt) <= now;
}

/** A first call with the key: the tasks or jobs that it sees, else who it is. */
export function firstCall(origin: string, key: string, scopes: readonly Scope[]): string {
  const path = scopes.includes('tasks:read') ? 'tasks' : scopes.includes('jobs:read') ? 'jobs' : 'me';
  return `curl -sS --fail-with-body -H 'Authorization: Bearer ${key}' '${origin}/api/v1/key/${path}'`;
}

/** The address that accepts an invitation. The browser sends no server the part after the `#`. */
export function invitationLink(origin: string, token: string): string {
  return `${origin}/invitation#${token}`;
}

export function tokenOf(hash: string): string {
  return hash.replace(/^#/, '').trim();
}
