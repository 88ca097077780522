import { afterEach, describe, expect, it, vi } from 'vitest';

import { challengeOf, onWaysToSignIn, readBack, type Ways } from './api/sso';

const BEGUN = { state: 'mine', verifier: 'v', page: '/jobs', signOutUrl: '' };
const at = (query: string, path = '/signed-in'): URL => new URL(`https://console.example.com${path}?${query}`);

describe('the way back from the identity provider', () => {
  it('has a code with our state', () => {
    expect(readBack(at('code=c&state=mine'), BEGUN)).toEqual({ code: 'c' });
  });

  it('is refused with another state, or if nothing was begun here', () => {
    expect(readBack(at('code=c&state=other'), BEGUN)).toHaveProperty('refusal');
    expect(readBack(at('code=c'), BEGUN)).toHaveProperty('refusal');
    expect(readBack(at('code=c&state=mine'), null)).toHaveProperty('refusal');
  });

  it('shows the words of a refusal', () => {
    expect(readBack(at('error=access_denied&error_description=Not%20for%20you&state=mine'), BEGUN)).toEqual({ refusal: 'Not for you' });
  });

  it('is one address alone', () => {
    expect(readBack(at('code=c&state=mine', '/jobs'), BEGUN)).toBeNull();
  });
});

it('the challenge is that of RFC 7636, appendix B', async () => {
  expect(await challengeOf('dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk')).toBe('E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM');
});

describe('the ways to sign in', () => {
  const WAYS = { sso: { name: 'Corp' }, passwords: false } as Ways;
  afterEach(() => {
    vi.useRealTimers();
  });

  it('are read again while the API does not answer', async () => {
    vi.useFakeTimers();
    let up = false;
    const ask = (): Promise<Ways> => (up ? Promise.resolve(WAYS) : Promise.reject(new Error('504')));
    const seen: unknown[] = [];
    const end = onWaysToSignIn((ways) => seen.push(ways), ask);
    await vi.advanceTimersByTimeAsync(6_000);
    expect(seen[0]).toEqual({ sso: null, passwords: true });
    up = true;
    await vi.advanceTimersByTimeAsync(6_000);
    expect(seen.at(-1)).toEqual(WAYS);
    end();
  });
});
