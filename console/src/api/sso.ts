/**
 * Single sign-on in the browser: to the identity provider with a challenge (PKCE), and back with a code.
 * What the way back must prove is in the session storage of this tab, so that a planted address signs nobody in.
 */
import { api, take, type Schemas } from './client';

export type Ways = Schemas['SignInWays'];

export const BACK = '/signed-in';
const NAME = 'punctual.sign-on';

interface Begun {
  state: string;
  verifier: string;
  page: string;
  signOutUrl: string;
}

export interface Returned {
  token: string;
  username: string;
  page: string;
  signOutUrl: string;
}

const AGAIN_MS = 5_000;

/** Pass on the ways to sign in. While the API does not answer, people have passwords, and it is called again. Returns a function that ends this. */
export function onWaysToSignIn(pass: (ways: Ways) => void, ask: () => Promise<Ways> = () => take(api.GET('/api/v1/auth/sso'))): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let over = false;
  const read = async (): Promise<void> => {
    try {
      const ways = await ask();
      if (!over) pass(ways);
    } catch {
      if (over) return;
      pass({ sso: null, passwords: true });
      timer = setTimeout(() => void read(), AGAIN_MS);
    }
  };
  void read();
  return () => {
    over = true;
    clearTimeout(timer);
  };
}

/** Go to the identity provider, and later back to the present page. */
export async function go(ways: NonNullable<Ways['sso']>): Promise<void> {
  const begun = { state: random(18), verifier: random(48), page: here(), signOutUrl: ways.sign_out_url };
  sessionStorage.setItem(NAME, JSON.stringify(begun));
  const asked = new URLSearchParams({
    redirect_uri: `${location.origin}${BACK}`,
    state: begun.state,
    code_challenge: await challengeOf(begun.verifier),
    code_challenge_method: 'S256',
  });
  location.assign(`${ways.authorize_url}&${asked.toString()}`);
}

/** What the address of the way back says: a code with our state, a refusal in words, or null: this is no way back. */
export function readBack(address: URL, begun: Begun | null): { code: string } | { refusal: string } | null {
  if (address.pathname !== BACK) return null;
  const found = address.searchParams;
  if (begun === null || found.get('state') !== begun.state) return { refusal: 'This sign-in was begun in another window. Start it again.' };
  const code = found.get('code');
  return code === null ? { refusal: found.get('error_description') ?? found.get('error') ?? 'The sign-in failed.' } : { code };
}

export function begun(): Begun | null {
  try {
    return JSON.parse(sessionStorage.getItem(NAME) ?? 'null') as Begun | null;
  } catch {
    return null;
  }
}

/** Complete the sign-in of this address. Throws ApiError; null: the address is no way back from the identity provider. */
export async function comeBack(): Promise<Returned | { refusal: string } | null> {
  const before = begun();
  const back = readBack(new URL(location.href), before);
  if (back === null) return null;
  sessionStorage.removeItem(NAME);
  history.replaceState(null, '', before?.page ?? '/'); // the code is used once, and is nobody's bookmark
  if ('refusal' in back || before === null) return back as { refusal: string };
  const body = { code: back.code, verifier: before.verifier, redirect_uri: `${location.origin}${BACK}`, cookie: true };
  const found = await take(api.POST('/api/v1/auth/sso', { body }));
  return { token: found.token, username: found.user.username, page: before.page, signOutUrl: before.signOutUrl };
}

/** The challenge of a verifier: its SHA-256 in base64url. */
export async function challengeOf(verifier: string): Promise<string> {
  return encoded(new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier))));
}

function here(): string {
  return location.pathname === BACK ? '/' : `${location.pathname}${location.search}${location.hash}`;
}

function random(bytes: number): string {
  return encoded(crypto.getRandomValues(new Uint8Array(bytes)));
}

function encoded(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes)).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}
