/**
 * Who is signed in. Kept in local storage, so that a shared address opens in another tab without signing in again.
 * The refresh token is in a cookie that no script can read.
 */
import { useSyncExternalStore } from 'react';
const NAME = 'punctual.session';
const listeners = new Set();
let current = stored();
let ended = null;
function stored() {
    try {
        return JSON.parse(localStorage.getItem(NAME) ?? 'null');
    }
    catch {
        return null;
    }
}
function tell() {
    for (const listener of listeners)
        listener();
}
function subscribe(listener) {
    const fromAnotherTab = (event) => {
        if (event.key !== NAME)
            return;
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
export function session() {
    return current;
}
export function begin(next) {
    current = next;
    ended = null;
    localStorage.setItem(NAME, JSON.stringify(next));
    tell();
}
/** End the session, and delete the cookie. If this fails, the cookie stays until the next sign-in replaces it. */
async function signOut({ token, signOutUrl }) {
    await fetch('/api/v1/auth/logout', {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
        body: JSON.stringify({ everywhere: false }),
        keepalive: true,
    }).catch(() => undefined);
    if (signOutUrl !== undefined)
        location.assign(signOutUrl);
}
/** Sign out, or find that the session is over. */
export function end(why) {
    if (why === null && current !== null)
        void signOut(current);
    current = null;
    ended = why;
    localStorage.removeItem(NAME);
    tell();
}
export function useSession() {
    return useSyncExternalStore(subscribe, session, session);
}
export function hasExpired() {
    return ended === 'expired';
}
/** What the groups in the token say. Only decides what is shown: the API decides what is done. */
export function roleOf(token) {
    const named = groups(token);
    return named.includes('administrators') ? 'administrator' : named.includes('operators') ? 'operator' : 'user';
}
export function useRole() {
    const found = useSession();
    return found === null ? 'user' : roleOf(found.token);
}
/** Whether the role sees what is everybody's. */
export function mayOversee(role) {
    return role !== 'user';
}
export function groups(token) {
    const named = claims(token)['cognito:groups'];
    return Array.isArray(named) ? named.map(String) : [];
}
/** The id of who is signed in, by which the API knows the owner of tasks and jobs. */
export function idOf(token) {
    return String(claims(token)['sub'] ?? '');
}
function claims(token) {
    try {
        const part = token.split('.')[1] ?? '';
        return JSON.parse(atob(part.replaceAll('-', '+').replaceAll('_', '/')));
    }
    catch {
        return {};
    }
}
