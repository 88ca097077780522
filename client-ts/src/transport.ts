/** Requests to the API: with a credential, repeated when that is safe, and errors as exceptions. */
import { encode, query } from './bodies.js';
import { type Clock, systemClock } from './clock.js';
import { fromAnswer, InvalidArgument, isRecord, NoAnswer, UnexpectedAnswer, Unavailable, WaitTimeout } from './errors.js';
import { isRepeated, pause, retryAfter, wasNeverSent } from './retrying.js';
import { Session, type SignIn } from './session.js';
import type { Settings } from './settings.js';

const TIMEOUT_SECONDS = 60;
const MAX_RETRIES = 5;
const LONGEST_TRY_MS = 35_000; // API Gateway gives up after 30 s
const LEAST_TRY_MS = 100;
const PAGE = 100; // entries: the most of a page
const OPEN = ['/health', '/keys/revoke', '/openapi.json']; // routes that need no credential, and that take no API key
const HEADER = /^(?:[!-~](?:[ -~]*[!-~])?)?$/; // a value of a header that every server takes

/** How a client sends its requests. */
export interface TransportOptions {
  /** The time in seconds that a call may take with all its repeats. Default: 60. */
  readonly timeoutSeconds?: number | undefined;
  /** The most repeats of a request. Default: 5. */
  readonly maxRetries?: number | undefined;
  /** Replaces the `fetch` of the runtime, such as one with a proxy or with traces. */
  readonly fetch?: typeof fetch | undefined;
  /** For tests: the time that the client goes by. */
  readonly clock?: Clock | undefined;
}

/** The options of every call. */
export interface CallOptions {
  /** Ends the call: it throws the reason of the signal. A change may have been applied. */
  readonly signal?: AbortSignal | undefined;
  /** The time in seconds that this call may take with all its repeats. Default: that of the client. */
  readonly timeoutSeconds?: number | undefined;
}

export interface Call extends CallOptions {
  readonly body?: unknown;
  /** An `owner` of undefined stands for the owner of the client. */
  readonly query?: Readonly<Record<string, unknown>> | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Whether it may be repeated after a lost answer. Default: GET, PUT, DELETE, and calls with an `Idempotency-Key`. */
  readonly idempotent?: boolean | undefined;
}

interface Answer {
  readonly status: number;
  readonly text: string;
  readonly retryAfter: number | undefined;
}

interface Sent {
  readonly method: string;
  readonly url: string;
  readonly body: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly idempotent: boolean;
  readonly deadline: number;
  readonly signal: AbortSignal | undefined;
}

/** Sends the requests of one client. */
export class Transport {
  readonly base: string;
  readonly owner: string | undefined;
  readonly clock: Clock;
  readonly #hasKey: boolean;
  readonly #timeoutMs: number;
  readonly #retries: number;
  readonly #fetch: typeof fetch;
  readonly #session: Session;

  constructor(settings: Settings & { readonly url: string }, options: TransportOptions) {
    this.base = settings.url;
    this.owner = settings.owner;
    this.clock = options.clock ?? systemClock;
    this.#hasKey = Boolean(settings.apiKey);
    this.#timeoutMs = (options.timeoutSeconds ?? TIMEOUT_SECONDS) * 1000;
    this.#retries = options.maxRetries ?? MAX_RETRIES;
    this.#fetch = options.fetch ?? ((input, init) => fetch(input, init));
    this.#session = new Session(settings, (path, body) => this.#signIn(path, body), () => this.clock.now());
  }

  /** The `data` of a successful answer. `path` is without `/api/v1`. Throws an ApiError, NoAnswer, UnexpectedAnswer, InvalidArgument. */
  async request(method: string, path: string, call: Call = {}): Promise<unknown> {
    const { signal } = call;
    signal?.throwIfAborted();
    const fixed = checkedHeaders(call.headers ?? {});
    const body = call.body === undefined ? undefined : encode(call.body);
    const suffix = path + query(this.#withOwner(call.query ?? {}));
    const idempotent = call.idempotent ?? (['GET', 'HEAD', 'PUT', 'DELETE'].includes(method) || 'Idempotency-Key' in fixed);
    const deadline = this.clock.monotonic() + (call.timeoutSeconds === undefined ? this.#timeoutMs : call.timeoutSeconds * 1000);
    const isOpen = this.#hasKey && OPEN.includes(path);
    const url = `${this.base}/api/v1${this.#hasKey && !isOpen ? '/key' : ''}${suffix}`;
    let token = isOpen ? undefined : await unlessAborted(this.#session.token(), signal);
    for (let isRenewed = false; ; isRenewed = true) {
      const headers = { ...fixed, ...(token !== undefined && { authorization: `Bearer ${token}` }) };
      const answer = await this.#exchange({ method, url, body, headers, idempotent, deadline, signal });
      if (answer.status !== 401 || token === undefined || isRenewed || !(await unlessAborted(this.#session.renew(token), signal))) {
        return data(answer, url);
      }
      token = await unlessAborted(this.#session.token(), signal);
    }
  }

  /** Yield the entries of a list, page by page, at most `limit` of them. */
  async *pages(path: string, call: Call = {}, limit = Infinity): AsyncGenerator<unknown, void, undefined> {
    const seen = new Set<unknown>();
    let cursor: unknown;
    for (let left = limit; left > 0; ) {
      const page = await this.request('GET', path, { ...call, query: { ...call.query, limit: Math.min(PAGE, left), cursor } });
      if (!isRecord(page) || !Array.isArray(page['items'])) throw new UnexpectedAnswer(`GET ${path} answered no list`);
      yield* page['items'];
      left -= page['items'].length;
      cursor = page['cursor'];
      if (cursor === null || cursor === undefined) return;
      if (typeof cursor !== 'string' || seen.has(cursor)) {
        throw new UnexpectedAnswer(`GET ${path} answered the same cursor twice: the list would never end`);
      }
      seen.add(cursor);
    }
  }

  /**
   * Read a record until it has ended, and return it. Throws WaitTimeout with its `name` after `timeoutSeconds`.
   *
   * Throws what the first read throws. An outage after it is waited through.
   */
  async wait<T>(read: () => Promise<T>, hasEnded: (found: T) => boolean, options: WaitOptions & { readonly name: string }): Promise<T> {
    const { name, timeoutSeconds = Infinity, pollSeconds = 0.5, signal } = options;
    const deadline = this.clock.monotonic() + timeoutSeconds * 1000;
    for (let found: T | undefined; ; ) {
      try {
        found = await read();
      } catch (error) {
        if (found === undefined || !(error instanceof NoAnswer || error instanceof Unavailable)) throw error;
      }
      if (hasEnded(found)) return found;
      const left = Math.min(pollSeconds * 1000, deadline - this.clock.monotonic());
      if (!(left > 0)) throw new WaitTimeout(`${name} has not ended within ${timeoutSeconds} s`);
      await this.clock.sleep(left, signal);
    }
  }

  #withOwner(fields: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
    return 'owner' in fields && fields['owner'] === undefined ? { ...fields, owner: this.owner } : fields;
  }

  /** Send a request until there is an answer that is not worth a repeat, or the repeats or the time are used up. */
  async #exchange(sent: Sent): Promise<Answer> {
    for (let attempt = 1; ; attempt += 1) {
      let answer: Answer | undefined;
      let failure: unknown;
      try {
        answer = await this.#try(sent);
      } catch (error) {
        sent.signal?.throwIfAborted();
        failure = error;
      }
      const wait = pause(attempt, Math.random(), answer?.retryAfter) * 1000;
      const isWorth = attempt <= this.#retries && this.clock.monotonic() + wait < sent.deadline;
      const isSafe = answer === undefined ? sent.idempotent || wasNeverSent(failure) : isRepeated(answer.status, sent.idempotent);
      if (!isWorth || !isSafe) {
        if (answer === undefined) throw noAnswer(sent, failure, attempt);
        const isDeleted = sent.method === 'DELETE' && attempt > 1 && answer.status === 404; // an earlier try has deleted it
        return isDeleted ? { status: 200, text: '{"success":true,"data":null}', retryAfter: undefined } : answer;
      }
      await this.clock.sleep(wait, sent.signal);
    }
  }

  /** Send a request once, and return its answer with its whole body. */
  async #try({ method, url, body, headers, deadline, signal }: Sent): Promise<Answer> {
    signal?.throwIfAborted();
    const left = Math.min(LONGEST_TRY_MS, Math.max(LEAST_TRY_MS, deadline - this.clock.monotonic()));
    const ended = new AbortController();
    const stop = (): void => ended.abort(signal?.reason);
    const timer = setTimeout(() => ended.abort(new Error(`the answer was not complete after ${(left / 1000).toFixed(1)} s`)), left);
    signal?.addEventListener('abort', stop, { once: true });
    try {
      const answer = await this.#fetch(url, { method, headers, body: body ?? null, redirect: 'manual', signal: ended.signal });
      const text = await answer.text();
      return { status: answer.status, text, retryAfter: retryAfter(answer.headers.get('retry-after'), this.clock.now()) };
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener('abort', stop);
    }
  }

  /** Post a sign-in. It is shared by all calls that wait for it, so none of their signals ends it. */
  async #signIn(path: string, body: unknown): Promise<SignIn> {
    const sent = { method: 'POST', url: `${this.base}/api/v1${path}`, body: encode(body), headers: checkedHeaders({}), idempotent: true };
    const answer = await this.#exchange({ ...sent, deadline: this.clock.monotonic() + this.#timeoutMs, signal: undefined });
    return { status: answer.status, body: parsed(answer.text), retryAfter: answer.retryAfter };
  }
}

/** The options of a wait. `timeoutSeconds` is the time of the whole wait; without it, the wait has no end of its own. */
export interface WaitOptions extends CallOptions {
  /** The seconds between two reads. Default: 0.5. */
  readonly pollSeconds?: number;
}

function data(answer: Answer, url: string): unknown {
  const body = parsed(answer.text);
  if (answer.status >= 400) throw fromAnswer(answer.status, body, answer.retryAfter);
  if (answer.status < 300 && isRecord(body) && body['success'] === true) return body['data'];
  throw new UnexpectedAnswer(`${url} answered ${answer.status} without data of this API: is the address right?`);
}

/** The JSON of an answer, or its text if it is none. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function checkedHeaders(headers: Readonly<Record<string, string>>): Record<string, string> {
  for (const [name, value] of Object.entries(headers)) {
    if (!HEADER.test(value)) {
      throw new InvalidArgument(`${name} must be printable ASCII without blanks at its ends, not ${JSON.stringify(value).slice(0, 100)}`);
    }
  }
  return { 'content-type': 'application/json', 'user-agent': 'punctual-typescript', ...headers };
}

function noAnswer({ method, url }: Sent, error: unknown, attempts: number): NoAnswer {
  const tries = attempts === 1 ? '' : ` after ${attempts} tries`;
  return new NoAnswer(`${method} ${url}: no answer${tries}: ${words(error)}`, { cause: error });
}

/** What went wrong. The `fetch` of Node says "fetch failed", and has the reason as the cause. */
function words(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause instanceof Error ? error.cause : error;
  return cause.message || ('code' in cause ? String(cause.code) : cause.name);
}

/** The result of work that goes on for others when the signal aborts. */
function unlessAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work;
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(signal.reason);
    signal.addEventListener('abort', stop, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop));
  });
}
