/**
 * Who is signed in. Kept in local storage, so that a shared address opens in another tab without signing in again.
 * The refresh token is in a cookie that no script can read.
 */
import { useSyncExternalStore } from 'react';

export interface Session {
  token: string;
  username: string;
  /** After a single sign-on: where the browser ends the session of the identity provider, too. */
  signOutUrl?: string | undefined;
}

const NAME = 'punctual.session';
const listeners = new Set<() => void>();
let current: Session | null = stored();
let ended: 'expired' | null = null;

function stored(): Session | null {
  try {
    return JSON.parse(localStorage.getItem(NAME) ?? 'null') as Session | null;
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

export type Role = 'user' | 'operator' | 'administrator';

/** What the groups in the token say. Only decides what is shown: the API decides what is done. */
export function roleOf(token: string): Role {
  const named = groups(token);
  return named.includes('administrators') ? 'administrator' : named.includes('operators') ? 'operator' : 'user';
}

export function useRole(): Role {
  const found = useSession();
  return found === null ? 'user' : roleOf(found.token);
}

/** Whether the role sees what is everybody's. */
export function mayOversee(role: Role): boolean {
  return role !== 'user';
}

export function groups(token: string): string[] {
  const named = claims(token)['cognito:groups'];
  return Array.isArray(named) ? named.map(String) : [];
}

/** The id of who is signed in, by which the API knows the owner of tasks and jobs. */
export function idOf(token: string): string {
  return String(claims(token)['sub'] ?? '');
}

function claims(token: string): Record<string, unknown> {
  try {
    const part = token.split('.')[1] ?? '';
    return JSON.parse(atob(part.replaceAll('-', '+').replaceAll('_', '/'))) as Record<string, unknown>;
  } catch {
    return {};
  }
}
