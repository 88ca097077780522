/** Tasks: schedules, and what their runs do. */
import { of, type Reference, segment, task, type TaskFields } from './bodies.js';
import type { Job, OwnedOptions } from './jobs.js';
import type { components, operations } from './schema.js';
import type { Transport } from './transport.js';

type Schemas = components['schemas'];

export type Task = Schemas['Task'];
export type ListedTask = Schemas['ListedTask'];
/** A task, and what the request did. */
export type PutTask = Schemas['PutTask'];

/** Which tasks to list. `name` is a part of the name. */
export type TaskFilter = Omit<NonNullable<operations['listTasks']['parameters']['query']>, 'limit' | 'cursor' | 'owner'> & {
  /** The most tasks. Default: all of them. */
  limit?: number;
};

/** The options of a run. `overlap` replaces the rule of the task. */
export type RunOptions = Schemas['RunRequest'] & { readonly idempotencyKey?: string };

export class Tasks {
  readonly #api: Transport;

  constructor(api: Transport) {
    this.#api = api;
  }

  /**
   * Create the task of this key, or edit it so that it is as the fields say. Idempotent.
   *
   * Fields that are left out get their defaults. A task that is as requested keeps its generation (`unchanged`). With `dryRun` the API
   * only checks the request and says what it would do; a task that would be created has no id yet.
   */
  async put(key: string, fields: TaskFields, { owner, dryRun, ...options }: OwnedOptions & { readonly dryRun?: boolean } = {}): Promise<PutTask> {
    const query = { owner, dry_run: dryRun || undefined };
    return (await this.#api.request('PUT', `/tasks/by-key/${segment(key)}`, { ...options, body: task(fields), query })) as PutTask;
  }

  /** The task of this id, or of this key, with its next runs. Throws NotFound. */
  async get(reference: Reference, { owner, ...options }: OwnedOptions = {}): Promise<Task> {
    return (await this.#api.request('GET', of(reference, '/tasks'), { ...options, query: { owner } })) as Task;
  }

  /** Yield tasks over all pages, newest first. */
  list({ limit, ...filter }: TaskFilter = {}, { owner, ...options }: OwnedOptions = {}): AsyncGenerator<ListedTask, void, undefined> {
    return this.#api.pages('/tasks', { ...options, query: { ...filter, owner } }, limit) as AsyncGenerator<ListedTask, void, undefined>;
  }

  /**
   * Run a task now, outside its schedule, and return the job. `group` is the id of an open group that the run joins.
   *
   * Throws Conflict if the task is paused, or the group is not open.
   */
  async runNow(reference: Reference, options: OwnedOptions & RunOptions = {}): Promise<Job> {
    const { owner, overlap, group, idempotencyKey = crypto.randomUUID(), ...call } = options;
    const path = `/tasks/${segment(await this.#id(reference, { owner, ...call }))}/run`;
    const headers = { 'Idempotency-Key': idempotencyKey };
    return (await this.#api.request('POST', path, { ...call, body: { overlap, group }, query: { owner }, headers })) as Job;
  }

  /** Pause a task: no run starts until it is resumed. Idempotent. */
  async pause(reference: Reference, { owner, reason, ...options }: OwnedOptions & { readonly reason?: string } = {}): Promise<Task> {
    const path = `/tasks/${segment(await this.#id(reference, { owner, ...options }))}/pause`;
    return (await this.#api.request('POST', path, { ...options, body: { reason }, query: { owner }, idempotent: true })) as Task;
  }

  /** Resume a paused task. Runs that the pause has suppressed are not made up for. Idempotent. */
  async resume(reference: Reference, { owner, ...options }: OwnedOptions = {}): Promise<Task> {
    const path = `/tasks/${segment(await this.#id(reference, { owner, ...options }))}/resume`;
    return (await this.#api.request('POST', path, { ...options, query: { owner }, idempotent: true })) as Task;
  }

  /** Delete a task with its future runs. Its past jobs stay. Throws NotFound. */
  async delete(reference: Reference, { owner, ...options }: OwnedOptions = {}): Promise<void> {
    const path = `/tasks/${segment(await this.#id(reference, { owner, ...options }))}`;
    await this.#api.request('DELETE', path, { ...options, query: { owner } });
  }

  /** The id of a task, for routes that take no key. */
  async #id(reference: Reference, options: OwnedOptions): Promise<string> {
    return typeof reference === 'string' ? reference : (await this.get(reference, options)).id;
  }
}
