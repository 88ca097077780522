/** The client. */
import { path as filled } from './bodies.js';
import { Jobs } from './jobs.js';
import type { Data, Entry, ListOptions, ListPath, Method, PathOf, Rest, RouteOptions } from './routes.js';
import { type Settings, settings } from './settings.js';
import { Tasks } from './tasks.js';
import { type Call, Transport, type TransportOptions } from './transport.js';

export type PunctualOptions = Settings & TransportOptions;

/**
 * A client of one stage. Create one for the whole program: concurrent calls share it and its sign-in.
 *
 * Credentials are an `apiKey`, or a `token`, or a `username` and its `password`. Omitted ones come from the environment (`PUNCTUAL_URL`,
 * `PUNCTUAL_KEY`, `PUNCTUAL_TOKEN`, `PUNCTUAL_USERNAME`, `PUNCTUAL_PASSWORD`, `PUNCTUAL_OWNER`). A request is repeated after 429, 502,
 * 503, 504 and broken connections if a repeat is safe.
 *
 * Throws NotConfigured without an address, and for credentials that can be none. Calls reject with NotAuthenticated without valid ones.
 */
export class Punctual {
  readonly jobs: Jobs;
  readonly tasks: Tasks;
  readonly #api: Transport;

  constructor(options: PunctualOptions = {}) {
    this.#api = new Transport(settings(options, process.env), options);
    this.jobs = new Jobs(this.#api);
    this.tasks = new Tasks(this.#api);
  }

  /** The address of the API, without `/api/v1`. */
  get url(): string {
    return this.#api.base;
  }

  /** The id of the owner whose objects the calls are about that name none; undefined: the account itself. */
  get owner(): string | undefined {
    return this.#api.owner;
  }

  /**
   * Call any route of the API, and return the `data` of its answer. All of it is typed by the OpenAPI document.
   *
   * It is about the account itself, unless its query names an `owner`: `query: { owner: punctual.owner }`.
   *
   *     await punctual.request('GET', '/monitors/{key}', { path: { key: 'nightly' } });
   */
  async request<M extends Method, P extends PathOf<M>>(method: M, path: P, ...[options]: Rest<RouteOptions<M, P>>): Promise<Data<M, P>> {
    const { path: parameters, ...call } = (options ?? {}) as Call & { path?: Record<string, unknown> };
    return (await this.#api.request(method, filled(path, parameters), call)) as Data<M, P>;
  }

  /**
   * Yield the entries of any list of the API, over all its pages.
   *
   *     for await (const monitor of punctual.list('/monitors')) console.log(monitor.key);
   */
  list<P extends ListPath>(path: P, ...[options]: Rest<ListOptions<P>>): AsyncGenerator<Entry<P>, void, undefined> {
    const { path: parameters, limit, ...call } = (options ?? {}) as Call & { path?: Record<string, unknown>; limit?: number };
    return this.#api.pages(filled(path, parameters), call, limit) as AsyncGenerator<Entry<P>, void, undefined>;
  }
}
