/**
 * Who is signed in. Kept in local storage, so that a shared address opens in another tab without signing in again.
 * The refresh token is in a cookie that no script can read.
 */
import { useSyncExternalStore } from 'react';

export type Role = 'user' | 'operator' | 'administrator';
export type TeamRole = 'viewer' | 'editor' | 'manager';

export interface OwnTeam {
  id: string;
  name: string;
  role: TeamRole;
}

/** What `GET /me` says of who is signed in. Only decides what is shown: the API decides what is done. */
export interface Me {
  /** By which the API knows the owner of tasks and jobs. The token has another id, that of the account. */
  id: string;
  role: Role;
  teams: OwnTeam[];
}

export interface Session {
  token: string;
  username: string;
  /** Null right after a sign-in: no page is shown before it is read. */
  me: Me | null;
  /** After a single sign-on: where the browser ends the session of the identity provider, too. */
  signOutUrl?: string | undefined;
}

const NAME = 'punctual.session';
const listeners = new Set<() => void>();
let current: Session | null = stored();
let ended: 'expired' | null = null;

function stored(): Session | null {
  try {
    const found = JSON.parse(localStorage.getItem(NAME) ?? 'null') as Session | null;
    return found === null ? null : { ...found, me: found.me ?? null };
  } catch {
    return null;
  }
}

function tell(): void {
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  const fromAnotherTab = (event: StorageEvent): void => {
    if (event.key !== NAME) return;
    current = stored();
    listener();
  };
  listeners.add(listener);
  window.addEventListener('storage', fromAnotherTab);
  return () => {
    listeners.delete(listener);
    window.removeEventListener('storage', fromAnotherTab);
  };
}

export function session(): Session | null {
  return current;
}

export function begin(next: Session): void {
  current = next;
  ended = null;
  localStorage.setItem(NAME, JSON.stringify(next));
  tell();
}

/** The session goes on with another token, or with other rights. Without a session nothing happens. */
export function goOn(changes: Partial<Pick<Session, 'token' | 'me'>>): void {
  if (current !== null) begin({ ...current, ...changes });
}

/** End the session, and delete the cookie. If this fails, the cookie stays until the next sign-in replaces it. */
async function signOut({ token, signOutUrl }: Session): Promise<void> {
  await fetch('/api/v1/auth/logout', {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
    body: JSON.stringify({ everywhere: false }),
    keepalive: true,
  }).catch(() => undefined);
  if (signOutUrl !== undefined) location.assign(signOutUrl);
}

/** Sign out, or find that the session is over. */
export function end(why: 'expired' | null): void {
  if (why === null && current !== null) void signOut(current);
  current = null;
  ended = why;
  localStorage.removeItem(NAME);
  tell();
}

export function useSession(): Session | null {
  return useSyncExternalStore(subscribe, session, session);
}

export function hasExpired(): boolean {
  return ended === 'expired';
}

const NOBODY: Me = { id: '', role: 'user', teams: [] };

/** Who is signed in. */
export function useMe(): Me {
  return useSession()?.me ?? NOBODY;
}

export function useRole(): Role {
  return useMe().role;
}

/** Whether the role sees what is everybody's. */
export function mayOversee(role: Role): boolean {
  return role !== 'user';
}

const refusals = new Set<() => void>();

/** Listen for answers by which the rights may have changed. Returns what ends it. */
export function onRefusal(listener: () => void): () => void {
  refusals.add(listener);
  return () => void refusals.delete(listener);
}

/** The API refused something to who is signed in. */
export function refused(): void {
  for (const listener of refusals) listener();
}
