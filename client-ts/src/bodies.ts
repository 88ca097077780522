/** The bodies and addresses of requests, from the arguments of the methods. Pure; the API checks the rules. */
import { InvalidArgument, isRecord } from './errors.js';
import type { components } from './schema.js';

type Schemas = components['schemas'];

/** An instant: a `Date`, or a text of RFC 3339 with an offset, such as `2030-01-01T12:00:00Z`. */
export type Instant = Date | string;
/** A length of time: a text such as `30m`, `1h30m` or `2d`, or a number of seconds. */
export type Duration = string | number;
/** A URL, which is called with POST, or the payload of a job of type `http`. */
export type Http = string | Schemas['HttpPayload'];

/** A request of the API whose times may be `Instant` and `Duration`. Its other fields are those of the API. */
type WithTimes<T> = T extends unknown
  ? Omit<T, 'execute_at' | 'expires_at' | 'delay' | 'delay_seconds' | 'debounce' | 'max_wait' | 'throttle'> & Pick<Times, keyof T & keyof Times>
  : never;

interface Times {
  /** When to start the job. Default: now. */
  execute_at?: Instant | null;
  /** The expiry. At this instant or later the job neither starts nor is retried. */
  expires_at?: Instant | null;
  /** The time from this request to the start, instead of `execute_at`. */
  delay?: Duration | null;
  /** The delay, which each request with the key restarts. */
  debounce?: Duration;
  /** Of `debounce`: the longest time from the creation of the job to its start. */
  max_wait?: Duration;
  /** The period in which the first request with the key wins. */
  throttle?: Duration;
}

/** The short form of a job of type `http`, or of the payload for a named target. */
interface HttpWork {
  http: Http;
  target?: string;
  type?: never;
  payload?: never;
  message?: never;
}

/** The fields of a task, with `Instant` for the instants of its schedule. */
type WithSchedule<T> = T extends { schedule?: unknown } ? Omit<T, 'schedule'> & { schedule?: ScheduleFields | null } : never;

/** When to run: exactly one of `cron`, `every`, `rate` and `at`, and its options. */
export type ScheduleFields = Omit<Schemas['ScheduleRequest'], 'at' | 'start' | 'end'> & {
  at?: Instant | null;
  start?: Instant | null;
  end?: Instant | null;
};

/**
 * A job to create: the fields of the API, with one kind of work.
 *
 * `http` is a URL, which is called with POST, or a payload of type `http`. `message` is a text to log. `target` is the name of a named
 * target, with its `payload`. A `type` has a `payload`, too. Without a time, the job starts now.
 */
export type JobFields = WithTimes<
  | Schemas['TypedKeyedJobRequest']
  | Schemas['TargetKeyedJobRequest']
  | Schemas['MessageKeyedJobRequest']
  | (HttpWork & Schemas['WorkFields'] & Schemas['KeyedJobRequestFields'])
> & {
  /** Your name for the job. An open job of this key is changed. */
  key?: string;
  /** Makes a repeated call safe: the same key and fields return the job of the first call. Default: a new one for each call. */
  idempotency_key?: string;
  /** The trace that the job belongs to, as the header of W3C Trace Context. It is no part of the body. */
  traceparent?: string;
};

/** A job of `createMany`: without the rules for an existing job of its key. */
export type BatchJob = WithTimes<
  | Schemas['TypedBatchItem']
  | Schemas['TargetBatchItem']
  | Schemas['MessageBatchItem']
  | (HttpWork & Schemas['WorkFields'] & Schemas['BatchItemFields'])
>;

/** The changes of a job that has not started. An absent field stays as it is. */
export type JobChange = WithTimes<Schemas['JobChange']> & { http?: Http };

/** A task to create or to edit: the fields of the API, with one kind of work as for a job. An absent field gets its default. */
export type TaskFields = WithSchedule<
  | Schemas['TypedTaskEdit']
  | Schemas['TargetTaskEdit']
  | Schemas['MessageTaskEdit']
  | (HttpWork & Schemas['WorkFields'] & Schemas['TaskEditFields'])
>;

type Body = Record<string, unknown>;

/** The body of a job, without the fields that are headers. */
export function job(fields: object): Body {
  const { idempotency_key: _key, traceparent: _trace, delay, ...rest } = fields as Body;
  const body: Body = { ...work(rest), ...(typeof delay === 'number' ? { delay_seconds: delay } : { delay }) };
  for (const name of ['debounce', 'max_wait', 'throttle']) {
    if (typeof body[name] === 'number') body[name] = duration(body[name]);
  }
  return body;
}

/** The body of a change of a job. The API takes a `delay` as a text here. */
export function jobChange({ http, ...changes }: JobChange): Body {
  const body: Body = { ...changes };
  if (http !== undefined) body['payload'] = called(http);
  if (typeof body['delay'] === 'number') body['delay'] = duration(body['delay']);
  return body;
}

/** The body of a task. */
export function task(fields: TaskFields): Body {
  return work(fields as Body);
}

/** The fields with `http` as type and payload. Throws InvalidArgument if there is other work beside it. */
function work({ http, ...fields }: Body): Body {
  if (http === undefined || http === null) return fields;
  if (fields['payload'] !== undefined || fields['message'] !== undefined || !['http', undefined].includes(fields['type'] as string)) {
    throw new InvalidArgument('http stands alone, without type, payload and message. With a body: http: { url: "https://…", body: {…} }');
  }
  return { ...fields, ...(fields['target'] === undefined && { type: 'http' }), payload: called(http as Http) };
}

function called(http: Http): Body {
  return typeof http === 'string' ? { method: 'POST', url: http } : { ...http };
}

/** Seconds as the API reads a duration, such as `1800s`. */
function duration(seconds: number): string {
  if (!Number.isFinite(seconds)) throw new InvalidArgument(`${seconds} is no number of seconds`);
  return `${seconds.toFixed(9).replace(/\.?0+$/, '')}s`;
}

/** A body as JSON. Throws InvalidArgument for what has no JSON form, which `JSON.stringify` would change without a word. */
export function encode(body: unknown): string {
  try {
    return JSON.stringify(body, function (this: Record<string, unknown>, name: string, value: unknown) {
      const original = this[name];
      if (original instanceof Date && Number.isNaN(original.getTime())) throw new InvalidArgument(`${name} is an invalid Date`);
      if (typeof value === 'number' && !Number.isFinite(value)) throw new InvalidArgument(`${name} is ${value}, which JSON has not`);
      return value;
    });
  } catch (error) {
    if (error instanceof InvalidArgument) throw error;
    throw new InvalidArgument(`the body has no JSON form: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }
}

/** The parameters of a query: without undefined and null, lists with commas, instants as RFC 3339. */
export function query(fields: Readonly<Record<string, unknown>>): string {
  const found = new URLSearchParams();
  for (const [name, value] of Object.entries(fields)) {
    if (value !== undefined && value !== null) found.set(name, checked(word(name, value)));
  }
  return found.size === 0 ? '' : `?${found}`;
}

function word(name: string, value: unknown): string {
  if (!(value instanceof Date)) return Array.isArray(value) ? value.join(',') : String(value);
  if (Number.isNaN(value.getTime())) throw new InvalidArgument(`${name} is an invalid Date`);
  return value.toISOString();
}

/** An id, a key or a name as one segment of a path. */
export function segment(name: unknown): string {
  if (typeof name !== 'string' || ['', '.', '..'].includes(name)) throw new InvalidArgument(`${JSON.stringify(name)} is no id, key or name`);
  try {
    return encodeURIComponent(checked(name));
  } catch (error) {
    if (error instanceof URIError) throw new InvalidArgument(`${JSON.stringify(name)} is no text in UTF-8`, { cause: error });
    throw error;
  }
}

/** A path with its parameters, such as `/jobs/{job_id}` and `{ job_id: '01A' }`. */
export function path(template: string, parameters: Readonly<Record<string, unknown>> = {}): string {
  return template.replace(/\{(\w+)\}/g, (_, name: string) => segment(parameters[name]));
}

/** A job or a task by its id, or by your key. */
export type Reference = string | { readonly key: string };

/** The path of a job or a task. Throws InvalidArgument if `reference` is neither an id nor a key. */
export function of(reference: Reference, collection: string): string {
  if (typeof reference === 'string') return `${collection}/${segment(reference)}`;
  if (!isRecord(reference)) throw new InvalidArgument('specify an id, or { key }');
  return `${collection}/by-key/${segment(reference['key'])}`;
}

/** A part of an address. Throws InvalidArgument if it has an API key, since addresses are logged. */
function checked(text: string): string {
  if (/punctual_[a-z2-7]{16}_[A-Za-z0-9_]+/.test(text)) {
    throw new InvalidArgument('an API key is no id, key or name, and no address may contain one');
  }
  return text;
}
