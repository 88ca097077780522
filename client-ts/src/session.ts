/** The credential of a client: an API key, or a token that is fetched, cached and renewed. Concurrent requests share one renewal. */
import { fromAnswer, isRecord, NotAuthenticated, UnexpectedAnswer } from './errors.js';
import type { Settings } from './settings.js';

const SAFETY_MS = 60_000; // a token is renewed this long before it expires; a short one after nine tenths of its life
const TOKEN = /^[!-~]+$/;

interface Tokens {
  readonly access: string;
  /** The instant from which it is renewed, in epoch milliseconds. */
  readonly renewAt?: number;
  readonly refresh?: string | undefined;
}

/** The status and the parsed body of an answer to a sign-in. */
export interface SignIn {
  readonly status: number;
  readonly body: unknown;
  readonly retryAfter: number | undefined;
}

export class Session {
  readonly #settings: Settings;
  readonly #call: (path: string, body: unknown) => Promise<SignIn>;
  readonly #now: () => number;
  #tokens: Tokens | undefined;
  #renewal: Promise<Tokens> | undefined;

  /** `call` posts a sign-in without a credential. */
  constructor(settings: Settings, call: (path: string, body: unknown) => Promise<SignIn>, now: () => number) {
    this.#settings = settings;
    this.#call = call;
    this.#now = now;
    const credential = settings.apiKey || settings.token;
    this.#tokens = credential ? { access: credential } : undefined;
  }

  /** A token that has not expired, or the API key; undefined without credentials. Throws NotAuthenticated, NoAnswer. */
  async token(): Promise<string | undefined> {
    const tokens = this.#tokens;
    if (!this.#canSignIn || (tokens !== undefined && (tokens.renewAt === undefined || this.#now() < tokens.renewAt))) {
      return tokens?.access;
    }
    return (await this.#renewed()).access;
  }

  /** Renew the token that the API has refused. Returns whether there is another one now. */
  async renew(refused: string): Promise<boolean> {
    if (!this.#canSignIn) return false;
    if (this.#tokens?.access === refused) await this.#renewed();
    return this.#tokens !== undefined && this.#tokens.access !== refused;
  }

  get #canSignIn(): boolean {
    const { apiKey, token, username, password } = this.#settings;
    return !apiKey && !token && Boolean(username) && password !== undefined;
  }

  #renewed(): Promise<Tokens> {
    this.#renewal ??= this.#signedIn().finally(() => {
      this.#renewal = undefined;
    });
    return this.#renewal;
  }

  async #signedIn(): Promise<Tokens> {
    const { username, password } = this.#settings;
    const refresh = this.#tokens?.refresh;
    let answer = refresh ? await this.#call('/auth/refresh', { refresh_token: refresh }) : undefined;
    if (answer === undefined || answer.status === 401) answer = await this.#call('/auth/login', { username, password });
    return (this.#tokens = this.#read(answer, refresh));
  }

  #read({ status, body, retryAfter }: SignIn, refresh: string | undefined): Tokens {
    if (status >= 400) throw fromAnswer(status, body, retryAfter);
    const data = isRecord(body) && isRecord(body['data']) ? body['data'] : {};
    if ('challenge' in data) {
      const message = 'the account has a second factor: use an API key';
      throw new NotAuthenticated({ status: 401, code: 'second_factor', message });
    }
    const { token, expires_in: seconds, refresh_token: renewed } = data;
    if (typeof token !== 'string' || !TOKEN.test(token)) {
      throw new UnexpectedAnswer('the answer to the sign-in has no token: is the address right?');
    }
    const lasts = typeof seconds === 'number' && seconds > 0 ? seconds * 1000 : undefined;
    return {
      access: token,
      ...(lasts !== undefined && { renewAt: this.#now() + Math.max(lasts - SAFETY_MS, lasts < 2 * SAFETY_MS ? lasts * 0.9 : 0) }),
      refresh: typeof renewed === 'string' && renewed !== '' ? renewed : refresh,
    };
  }
}
