/** One-time jobs, and the runs of tasks. */
import { type BatchJob, type Instant, job, type JobChange, jobChange, type JobFields, of, type Reference, segment } from './bodies.js';
import { UnexpectedAnswer } from './errors.js';
import type { components, operations } from './schema.js';
import type { CallOptions, Transport, WaitOptions } from './transport.js';

type Schemas = components['schemas'];

export type Job = Schemas['Job'];
/** A job that was created or changed. With a key, `outcome` says what was done. */
export type CreatedJob = Job & Partial<Pick<Schemas['PutJob'], 'outcome' | 'follows'>>;
export type BatchResult = Schemas['BatchResult'];

const BATCH = 1_000; // jobs: the most of a call
const BATCH_BYTES = 2_000_000; // of a body; the API takes 2,048,000

/** The options of a call about the objects of an owner. */
export interface OwnedOptions extends CallOptions {
  /** The id of a team of yours, or for operators of any owner. Default: that of the client. */
  readonly owner?: string | undefined;
}

/** Which jobs to list. One of the `status` words matches, all `tag` words match. `from` and `to` bound `scheduled_at`. */
export type JobFilter = Omit<NonNullable<operations['listJobs']['parameters']['query']>, 'limit' | 'cursor' | 'from' | 'to' | 'owner'> & {
  from?: Instant;
  to?: Instant;
  /** The most jobs. Default: all of them. */
  limit?: number;
};

export class Jobs {
  readonly #api: Transport;

  constructor(api: Transport) {
    this.#api = api;
  }

  /**
   * Create a job and return it.
   *
   * With a `key`, the job of this key that has not started is changed instead, by `on_conflict` (`replace`, `keep`, `extend`), or by one
   * of the rules `debounce`, `throttle` and `singleton`. The request carries an idempotency key, so a repeat after a lost answer does
   * nothing twice. With an `idempotency_key` of your own, or with `after`, a job of a `key` is only created: an open job of the key is
   * a Conflict.
   *
   * The job belongs to the trace of `traceparent`, if it has one.
   */
  async create(fields: JobFields, { owner, ...options }: OwnedOptions = {}): Promise<CreatedJob> {
    const { key, ...body } = job(fields);
    const { traceparent } = fields;
    const headers = { 'Idempotency-Key': fields.idempotency_key ?? crypto.randomUUID(), ...(traceparent !== undefined && { traceparent }) };
    const call = { ...options, query: { owner }, headers };
    if (key !== undefined && fields.idempotency_key === undefined && !(fields.after && fields.after.length > 0)) {
      return (await this.#api.request('PUT', `/jobs/by-key/${segment(key)}`, { ...call, body })) as CreatedJob;
    }
    return (await this.#api.request('POST', '/jobs', { ...call, body: { ...body, key } })) as CreatedJob;
  }

  /**
   * Create any number of jobs, a thousand in a request, each accepted or refused on its own.
   *
   * Each job carries an idempotency key, its own or a new one, so that a repeat creates no job twice. Jobs that the API refuses for now
   * (`unavailable`) are sent again. Results are in the order of the jobs. If a request fails as a whole, its error is thrown, and jobs
   * of earlier requests exist.
   */
  async createMany(jobs: Iterable<BatchJob>, options: OwnedOptions = {}): Promise<BatchResult> {
    const items = Array.from(jobs, (each) => ({ ...job(each), idempotency_key: each.idempotency_key ?? crypto.randomUUID() }));
    const results: Schemas['BatchItemResult'][] = [];
    for (const some of parts(items)) results.push(...(await this.#createPart(some, results.length, options)));
    const accepted = results.filter((one) => one.job).length;
    return { accepted, refused: results.length - accepted, results };
  }

  async #createPart(items: readonly unknown[], offset: number, { owner, ...options }: OwnedOptions): Promise<Schemas['BatchItemResult'][]> {
    const results: Schemas['BatchItemResult'][] = [];
    let left = items.map((_, index) => index);
    for (const isLast of [false, false, true]) {
      const body = { jobs: left.map((index) => items[index]) };
      const found = (await this.#api.request('POST', '/jobs/batch', { ...options, body, query: { owner }, idempotent: true })) as BatchResult;
      if (found.results?.length !== left.length) {
        throw new UnexpectedAnswer(`POST /jobs/batch answered ${found.results?.length} results for ${left.length} jobs`);
      }
      const again: number[] = [];
      found.results.forEach((one, position) => {
        const index = left[position]!;
        if (one.error?.code === 'unavailable' && !isLast) again.push(index);
        else results[index] = { ...one, index: offset + index };
      });
      left = again;
      if (left.length === 0) break;
    }
    return results;
  }

  /** The job of this id, or of this key. Throws NotFound. */
  async get(reference: Reference, { owner, ...options }: OwnedOptions = {}): Promise<Job> {
    return (await this.#api.request('GET', of(reference, '/jobs'), { ...options, query: { owner } })) as Job;
  }

  /** Yield jobs over all pages: those due up to now, newest first; or with `upcoming` those ahead, next first. */
  list({ limit, ...filter }: JobFilter = {}, { owner, ...options }: OwnedOptions = {}): AsyncGenerator<Job, void, undefined> {
    const query = { ...filter, upcoming: filter.upcoming || undefined, owner };
    return this.#api.pages('/jobs', { ...options, query }, limit) as AsyncGenerator<Job, void, undefined>;
  }

  /** Change the job of this id, or of this key, that has not started, and return it. Throws Conflict, NotFound, InvalidRequest. */
  async update(reference: Reference, changes: JobChange, { owner, ...options }: OwnedOptions = {}): Promise<Job> {
    const path = `/jobs/${segment(await this.#id(reference, { owner, ...options }))}`;
    return (await this.#api.request('PATCH', path, { ...options, body: jobChange(changes), query: { owner } })) as Job;
  }

  /** Cancel the job of this id, or of this key, and return it. Idempotent. A running job is asked to stop. Throws Conflict, NotFound. */
  async cancel(reference: Reference, { owner, ...options }: OwnedOptions = {}): Promise<Job> {
    const path = `${of(reference, '/jobs')}/cancel`;
    return (await this.#api.request('POST', path, { ...options, query: { owner }, idempotent: true })) as Job;
  }

  /** Run a failed or killed job again, at once and from the start. Throws Conflict if it is neither, NotFound. */
  async retry(reference: Reference, { owner, ...options }: OwnedOptions = {}): Promise<Job> {
    const path = `/jobs/${segment(await this.#id(reference, { owner, ...options }))}/retry`;
    return (await this.#api.request('POST', path, { ...options, query: { owner } })) as Job;
  }

  /**
   * Wait until the job has ended, and return it. Throws WaitTimeout after `timeoutSeconds`.
   *
   * With a key, that is the job that has it now. Later outages of the API are waited through.
   */
  async wait(reference: Reference, options: OwnedOptions & WaitOptions = {}): Promise<Job> {
    const { owner, signal } = options;
    const id = await this.#id(reference, { owner, signal });
    return this.#api.wait(() => this.get(id, { owner, signal }), (found) => found.ended_at !== null, { ...options, name: `the job ${id}` });
  }

  /** The id of a job, for routes that take no key. */
  async #id(reference: Reference, options: OwnedOptions): Promise<string> {
    return typeof reference === 'string' ? reference : (await this.get(reference, options)).id;
  }
}

/** The items in parts that one request may have. */
function* parts<T>(items: readonly T[]): Generator<T[]> {
  let part: T[] = [];
  let bytes = 0;
  for (const item of items) {
    const size = Buffer.byteLength(JSON.stringify(item)) + 1;
    if (part.length === BATCH || (part.length > 0 && bytes + size > BATCH_BYTES)) {
      yield part;
      [part, bytes] = [[], 0];
    }
    part.push(item);
    bytes += size;
  }
  if (part.length > 0) yield part;
}
