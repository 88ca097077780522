import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';

type Client = typeof import('./client');
type Sessions = typeof import('./session');

/** What the API answers to a refresh, one after the other; the last one again and again. */
let renewals: Response[];
let sent: string[];
let client: Client;
let sessions: Sessions;

const answer = (status: number, body: unknown): Response => new Response(JSON.stringify(body), { status, headers: { 'content-type': 'application/json' } });
const refusal = (status: number): Response => answer(status, { success: false, error: { code: 'busy', message: 'Not now.', details: [] } });
const renewed = (): Response => answer(200, { success: true, data: { token: 'new' } });

beforeEach(async () => {
  sent = [];
  const kept = new Map([['punctual.session', JSON.stringify({ token: 'over', username: 'ann', me: null })]]);
  vi.stubGlobal('localStorage', {
    getItem: (name: string) => kept.get(name) ?? null,
    setItem: (name: string, value: string) => kept.set(name, value),
    removeItem: (name: string) => kept.delete(name),
  });
  vi.stubGlobal('location', new URL('https://console.example/tasks'));
  vi.stubGlobal('Request', class extends Request {
    constructor(input: string | Request, init?: RequestInit) {
      super(typeof input === 'string' ? new URL(input, 'https://console.example') : input, init);
    }
  });
  vi.stubGlobal('fetch', (input: string | Request) => {
    const path = typeof input === 'string' ? input : new URL(input.url).pathname;
    sent.push(path);
    if (path === '/api/v1/auth/refresh') return Promise.resolve((renewals.length > 1 ? renewals.shift()! : renewals[0]!).clone());
    const valid = typeof input !== 'string' && input.headers.get('authorization') === 'Bearer new';
    return Promise.resolve(valid ? answer(200, { success: true, data: { id: 'u1', role: 'user', teams: [] } }) : answer(401, { message: 'Unauthorized' }));
  });
  vi.resetModules();
  client = await import('./client');
  sessions = await import('./session');
});

afterEach(() => {
  vi.unstubAllGlobals();
});

const me = (): Promise<unknown> => client.take(client.api.GET('/api/v1/me'));

describe('a token that is over', () => {
  test('is renewed once for all calls, which are sent again', async () => {
    renewals = [renewed()];
    await Promise.all([me(), me(), me()]);
    expect(sent.filter((path) => path.endsWith('/refresh'))).toHaveLength(1);
    expect(sessions.session()?.token).toBe('new');
  });

  test.each([429, 500, 502, 503, 504])('keeps its session if the API answers the renewal with %i, and is renewed by the next call', async (status) => {
    renewals = [refusal(status), renewed()];
    const all = await Promise.allSettled([me(), me()]);
    for (const each of all) expect(each).toMatchObject({ status: 'rejected', reason: { status, code: 'busy', message: 'Not now.' } });
    expect(sent.filter((path) => path.endsWith('/refresh'))).toHaveLength(1);
    expect([sessions.session()?.token, sessions.hasExpired()]).toEqual(['over', false]);
    await me();
    expect(sessions.session()?.token).toBe('new');
  });

  test.each([400, 401])('ends its session if the API refuses the renewal with %i', async (status) => {
    renewals = [refusal(status)];
    await expect(me()).rejects.toMatchObject({ status: 401 });
    expect([sessions.session(), sessions.hasExpired()]).toEqual([null, true]);
  });

  test('ends its session if the new token is refused, too', async () => {
    renewals = [answer(200, { success: true, data: { token: 'also over' } })];
    await expect(me()).rejects.toMatchObject({ status: 401 });
    expect([sessions.session(), sessions.hasExpired()]).toEqual([null, true]);
  });
});
