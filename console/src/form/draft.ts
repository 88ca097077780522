/** A task as the form holds it, to and from what the API takes. Pure. */
import type { ApiError, ScheduleRequest, Schemas, Task, TaskRequest } from '../api/client';
import { fieldsOfNotifications, fromNotifications, NOBODY, toNotifications, type NotificationsDraft } from './notifications';
import { number } from './typed';

export type Kind = 'now' | 'at' | 'cron' | 'rate';

export interface Draft {
  name: string;
  description: string;
  type: string;
  /** The named target instead of a type; '': none. */
  target: string;
  payload: Record<string, unknown>;
  kind: Kind;
  cron: string;
  every: string;
  unit: string;
  at: string;
  timeZone: string;
  jitter: string;
  start: string;
  end: string;
  maxRuns: string;
  dstGap: string;
  dstOverlap: string;
  overlap: string;
  misfire: string;
  misfireThreshold: string;
  maxCatchUp: string;
  maxAttempts: string;
  timeout: string;
  retryBase: string;
  retryCap: string;
  retryJitter: string;
  retryElapsed: string;
  retryOnTimeout: boolean;
  callback: boolean;
  leaseSeconds: string;
  maxSeconds: string;
  orderingKey: string;
  onFailure: string;
  notifications: NotificationsDraft;
  tags: string[];
}

/** The API's own defaults, shown so that nobody has to know them. */
export function empty(timeZone: string): Draft {
  return {
    name: '',
    description: '',
    type: 'http',
    target: '',
    payload: {},
    kind: 'cron',
    cron: '*/5 * * * *',
    every: '5',
    unit: 'minutes',
    at: '',
    timeZone,
    jitter: '',
    start: '',
    end: '',
    maxRuns: '',
    dstGap: '',
    dstOverlap: '',
    overlap: '',
    misfire: '',
    misfireThreshold: '',
    maxCatchUp: '',
    maxAttempts: '3',
    timeout: '300',
    retryBase: '1',
    retryCap: '900',
    retryJitter: 'full',
    retryElapsed: '',
    retryOnTimeout: false,
    callback: false,
    leaseSeconds: '300',
    maxSeconds: '86400',
    orderingKey: '',
    onFailure: '',
    notifications: NOBODY,
    tags: [],
  };
}

export function fromTask(task: Task, blank: Draft): Draft {
  const schedule = task.schedule;
  const rate = rateOf(schedule?.rate);
  const kind: Kind = schedule?.cron ? 'cron' : schedule?.rate ? 'rate' : schedule?.at ? 'at' : 'now';
  const text = (value: number | string | null | undefined): string => (value === null || value === undefined ? '' : String(value));
  return {
    ...blank,
    name: task.name,
    description: task.description ?? '',
    type: task.type,
    target: task.target ?? '',
    payload: task.payload,
    kind,
    cron: schedule?.cron ?? blank.cron,
    every: rate?.every ?? blank.every,
    unit: rate?.unit ?? blank.unit,
    at: schedule?.at ?? '',
    timeZone: schedule === null ? blank.timeZone : (schedule.time_zone ?? 'UTC'),
    jitter: text(schedule?.jitter_seconds),
    start: schedule?.start ?? '',
    end: schedule?.end ?? '',
    maxRuns: text(schedule?.max_runs),
    dstGap: schedule?.dst_gap ?? '',
    dstOverlap: schedule?.dst_overlap ?? '',
    overlap: task.overlap,
    misfire: task.misfire ?? '',
    misfireThreshold: text(task.misfire_threshold_seconds),
    maxCatchUp: text(task.max_catch_up),
    maxAttempts: text(task.max_attempts),
    timeout: text(task.timeout_seconds),
    retryBase: text(task.retry.base_seconds),
    retryCap: text(task.retry.cap_seconds),
    retryJitter: task.retry.jitter,
    retryElapsed: text(task.retry.max_elapsed_seconds),
    retryOnTimeout: task.retry.on_timeout,
    callback: task.callback !== null,
    leaseSeconds: text(task.callback?.lease_seconds ?? 300),
    maxSeconds: text(task.callback?.max_seconds ?? 86_400),
    orderingKey: task.ordering_key ?? '',
    onFailure: task.on_failure ?? '',
    notifications: fromNotifications(task.notifications),
    tags: task.tags,
  };
}

/** "rate(5 minutes)" or "5 minutes" in its two parts. */
export function rateOf(rate: string | null | undefined): { every: string; unit: string } | null {
  const parts = /^(?:rate\()?\s*(\d+)\s*([a-z]+?)s?\s*\)?$/i.exec(rate ?? '');
  return parts ? { every: parts[1] ?? '', unit: `${(parts[2] ?? '').toLowerCase()}s` } : null;
}

export function scheduleOf(draft: Draft): ScheduleRequest | null {
  if (draft.kind === 'now') return null;
  if (draft.kind === 'at') return compact({ at: draft.at, time_zone: zone(draft) });
  const common = { time_zone: zone(draft), jitter_seconds: number(draft.jitter), end: draft.end, start: draft.start, max_runs: number(draft.maxRuns) };
  if (draft.kind === 'rate') return compact({ rate: `${draft.every.trim()} ${draft.unit}`, ...common });
  return compact({ cron: draft.cron.trim(), ...common, dst_gap: draft.dstGap, dst_overlap: draft.dstOverlap } as ScheduleRequest);
}

function zone(draft: Draft): string {
  return draft.timeZone === 'UTC' ? '' : draft.timeZone;
}

/** Without what is empty; but "at" stays, so that the API can say that it is missing. */
function compact(schedule: ScheduleRequest): ScheduleRequest {
  return Object.fromEntries(Object.entries(schedule).filter(([name, value]) => name === 'at' || (value !== '' && value !== undefined)));
}

export function toRequest(draft: Draft): TaskRequest {
  const recurs = draft.kind === 'cron' || draft.kind === 'rate';
  const text = (value: string): string | undefined => (value.trim() === '' ? undefined : value.trim());
  const request = {
    name: draft.name,
    description: text(draft.description),
    ...(draft.target === '' ? { type: draft.type } : { target: draft.target }),
    payload: draft.payload,
    schedule: scheduleOf(draft),
    overlap: text(draft.overlap),
    misfire: recurs ? text(draft.misfire) : undefined,
    misfire_threshold_seconds: recurs ? number(draft.misfireThreshold) : undefined,
    max_catch_up: recurs && draft.misfire === 'run_all' ? number(draft.maxCatchUp) : undefined,
    max_attempts: number(draft.maxAttempts),
    timeout_seconds: number(draft.timeout),
    retry: {
      base_seconds: number(draft.retryBase),
      cap_seconds: number(draft.retryCap),
      jitter: draft.retryJitter,
      max_elapsed_seconds: number(draft.retryElapsed),
      on_timeout: draft.retryOnTimeout,
    },
    callback: draft.callback ? { lease_seconds: number(draft.leaseSeconds), max_seconds: number(draft.maxSeconds) } : undefined,
    ordering_key: text(draft.orderingKey),
    on_failure: text(draft.orderingKey) === undefined ? undefined : text(draft.onFailure),
    notifications: toNotifications(draft.notifications),
    tags: draft.tags,
  };
  // What is typed is checked by the API alone; the types say what a good request looks like.
  return JSON.parse(JSON.stringify(request)) as TaskRequest;
}

export type FieldErrors = Record<string, string>;

/** What the API finds wrong, by field; `prefix` goes before each, as the preview knows its fields without one. */
export function fieldErrors(error: ApiError, prefix = ''): FieldErrors {
  const found: FieldErrors = {};
  for (const { field, rule } of error.details) {
    const name = `${prefix}${field}`;
    found[name] = name in found ? `${found[name]}; ${rule}` : rule;
  }
  return found;
}

/** Those that no shown field takes. */
export function leftOver(errors: FieldErrors, shown: readonly string[]): string[] {
  return Object.entries(errors)
    .filter(([field]) => !shown.includes(field))
    .map(([field, rule]) => `${field}: ${rule}`);
}

const SHOWN_FIELDS = [
  'name', 'description', 'type', 'target', 'schedule.cron', 'schedule.rate', 'schedule.at', 'schedule.time_zone', 'schedule.jitter_seconds',
  'schedule.start', 'schedule.end', 'schedule.max_runs', 'schedule.dst_gap', 'schedule.dst_overlap', 'overlap', 'misfire', 'misfire_threshold_seconds', 'max_catch_up',
  'max_attempts', 'timeout_seconds', 'retry.base_seconds', 'retry.cap_seconds', 'retry.max_elapsed_seconds', 'retry.jitter', 'callback',
  'callback.lease_seconds', 'callback.max_seconds', 'ordering_key', 'on_failure', 'tags',
];

/** The fields of the API at which the form shows what is wrong; those of the payload come from its schema. */
export function shownFields(draft: Draft): string[] {
  return [...SHOWN_FIELDS, ...fieldsOfNotifications(draft.notifications)];
}

export type Overlap = Schemas['Overlap'];
