/** A task as the form holds it, to and from what the API takes. Pure. */
import type { ApiError, Job, ListedTask, ScheduleRequest, Schemas, Task, TaskRequest } from '../api/client';
import { read, write } from '../exact';
import { fromAlerts, NO_ALERTS, toAlerts, type AlertsDraft } from './alerts';
import { fromNotifications, NOBODY, toNotifications, type NotificationsDraft } from './notifications';
import { number } from './typed';

export type Kind = 'now' | 'at' | 'cron' | 'every' | 'rate';

export type Rest = Record<string, unknown>;

export interface Draft extends WorkDraft {
  name: string;
  key: string;
  description: string;
  kind: Kind;
  cron: string; // one expression, or several with semicolons
  period: string;
  periodUnit: string;
  times: string;
  weekdays: string;
  every: string; // of a rate
  unit: string;
  at: string;
  timeZone: string;
  jitter: string;
  start: string;
  end: string;
  maxRuns: string;
  dstGap: string;
  dstOverlap: string;
  exclude: string; // calendars and dates, separated by commas or spaces
  only: string; // as `exclude`
  onExcluded: string;
  workingDays: string; // weekdays, separated by commas or spaces
  overlap: string;
  misfire: string;
  misfireThreshold: string;
  maxCatchUp: string;
  notifications: NotificationsDraft;
  alerts: AlertsDraft;
  rest: Rest;
  scheduleRest: { kind: Kind; fields: Rest };
}

/** What is run and how, in a task and in a job: the API's own defaults, shown so that nobody has to know them. */
export const NEW_WORK = {
  type: 'http',
  target: '', // the named target instead of a type; '': none
  payload: {} as Record<string, unknown>,
  maxAttempts: '3',
  timeout: '300',
  retryBase: '1',
  retryCap: '900',
  retryJitter: 'full',
  retryElapsed: '',
  retryOnTimeout: true,
  callback: false,
  leaseSeconds: '300',
  maxSeconds: '86400',
  orderingKey: '',
  onFailure: '',
  limitKey: '',
  limitAtOnce: '',
  limitRate: '',
  limitPeriod: '',
  events: false, // whether each end is put on the event bus of the stage
  tags: [] as string[],
  // What the API returned of these and the form does not show: an edit sends it back unchanged.
  retryRest: {} as Rest,
  callbackRest: {} as Rest,
};

export type WorkDraft = typeof NEW_WORK;

/** The names of all fields of a request or an answer, over its alternatives. */
export type Names<T> = T extends unknown ? keyof T : never;
/** A message is a short form of type log. The parts of a schedule have their own lists. */
type WorkName = Exclude<Names<TaskRequest> & Names<Schemas['JobRequest']>, 'message' | 'key' | 'notifications'>;

export function empty(timeZone: string): Draft {
  return {
    ...NEW_WORK,
    name: '',
    key: '',
    description: '',
    kind: 'cron',
    cron: '0 9 * * *',
    period: '2',
    periodUnit: 'weeks',
    times: '09:00',
    weekdays: 'MON',
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
    exclude: '',
    only: '',
    onExcluded: '',
    workingDays: '',
    overlap: '',
    misfire: '',
    misfireThreshold: '',
    maxCatchUp: '',
    notifications: NOBODY,
    alerts: NO_ALERTS,
    rest: {},
    scheduleRest: { kind: 'now', fields: {} },
  };
}

const text = (value: number | string | null | undefined): string => (value === null || value === undefined ? '' : String(value));

/** The draft of what a task or a job runs. */
export function fromWork(work: Task | Job): WorkDraft {
  return {
    type: work.type,
    target: work.target ?? '',
    payload: work.payload,
    maxAttempts: text(work.max_attempts),
    timeout: text(work.timeout_seconds),
    retryBase: text(work.retry.base_seconds),
    retryCap: text(work.retry.cap_seconds),
    retryJitter: work.retry.jitter,
    retryElapsed: text(work.retry.max_elapsed_seconds),
    retryOnTimeout: work.retry.on_timeout,
    callback: work.callback !== null,
    leaseSeconds: text(work.callback?.lease_seconds ?? 300),
    maxSeconds: text(work.callback?.max_seconds ?? 86_400),
    orderingKey: work.ordering_key ?? '',
    onFailure: work.on_failure ?? '',
    limitKey: work.limit?.key ?? '',
    limitAtOnce: text(work.limit?.concurrency),
    limitRate: text(work.limit?.rate),
    limitPeriod: work.limit?.period ?? '',
    events: work.events,
    tags: work.tags,
    retryRest: unknown(work.retry, RETRY),
    callbackRest: unknown(work.callback, CALLBACK),
  };
}

const RETRY = ['base_seconds', 'cap_seconds', 'jitter', 'max_elapsed_seconds', 'on_timeout'];
const CALLBACK = ['lease_seconds', 'max_seconds'];
const SCHEDULE = ['at', 'cron', 'every', 'times', 'weekdays', 'rate', 'time_zone', 'jitter_seconds', 'start', 'end', 'max_runs', 'dst_gap', 'dst_overlap', 'exclude', 'only', 'on_excluded', 'working_days'];
/** The fields of a task that only the API sets. */
const ANSWERED = {
  id: true, status: true, generation: true, created_at: true, updated_at: true, inactive_at: true, inactive_reason: true, next_run: true, next_runs: true,
  defaults: true, warnings: true,
} satisfies Record<Exclude<Names<Task> | Names<ListedTask>, Names<TaskRequest>> | 'generation', true>;

/** What the form does not know. A null means that the field is not set. */
function unknown(record: object | null | undefined, known: readonly string[]): Rest {
  return Object.fromEntries(Object.entries(record ?? {}).filter(([name, value]) => !known.includes(name) && value !== null));
}

export function fromTask(task: Task, blank: Draft): Draft {
  const schedule = task.schedule;
  const rate = rateOf(schedule?.rate);
  const period = rateOf(schedule?.every);
  const kind: Kind = schedule?.cron ? 'cron' : schedule?.every ? 'every' : schedule?.rate ? 'rate' : schedule?.at ? 'at' : 'now';
  return {
    ...blank,
    ...fromWork(task),
    name: task.name,
    key: task.key ?? '',
    description: task.description ?? '',
    kind,
    cron: schedule?.cron ? [schedule.cron].flat().join('; ') : blank.cron,
    period: period?.every ?? blank.period,
    periodUnit: period?.unit ?? blank.periodUnit,
    times: schedule?.times ? [schedule.times].flat().join(', ') : blank.times,
    weekdays: schedule?.weekdays ? [schedule.weekdays].flat().join(', ') : blank.weekdays,
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
    exclude: (schedule?.exclude ?? []).join(', '),
    only: (schedule?.only ?? []).join(', '),
    onExcluded: schedule?.on_excluded ?? '',
    workingDays: (schedule?.working_days ?? []).join(', '),
    overlap: task.overlap,
    misfire: task.misfire ?? '',
    misfireThreshold: text(task.misfire_threshold_seconds),
    maxCatchUp: text(task.max_catch_up),
    notifications: fromNotifications(task.notifications),
    alerts: fromAlerts(task.alerts),
    rest: unknown(task, [...Object.keys(requestOf(blank)), ...Object.keys(ANSWERED)]),
    scheduleRest: { kind, fields: unknown(schedule, SCHEDULE) },
  };
}

/** What is typed between separators: one item as a text, several as a list, as the API returns them. */
export function oneOrMore(typed: string, separator: string): string | string[] {
  const items = typed.split(separator).map((each) => each.trim()).filter((each) => each !== '');
  return items.length > 1 ? items : (items[0] ?? '');
}

/** "rate(5 minutes)" or "5 minutes" in its two parts. */
export function rateOf(rate: string | null | undefined): { every: string; unit: string } | null {
  const parts = /^(?:rate\()?\s*(\d+)\s*([a-z]+?)s?\s*\)?$/i.exec(rate ?? '');
  return parts ? { every: parts[1] ?? '', unit: `${(parts[2] ?? '').toLowerCase()}s` } : null;
}

export function scheduleOf(draft: Draft): ScheduleRequest | null {
  if (draft.kind === 'now') return null;
  const rest = draft.scheduleRest.kind === draft.kind ? draft.scheduleRest.fields : {};
  if (draft.kind === 'at') return compact({ ...rest, at: draft.at, time_zone: zone(draft) });
  const [exclude, only, working_days] = [draft.exclude, draft.only, draft.workingDays.toUpperCase()].map(entries).map((list) => (list.length > 0 ? list : undefined));
  const dates = { exclude, only, on_excluded: draft.onExcluded, working_days } as Pick<ScheduleRequest, 'exclude' | 'only' | 'on_excluded' | 'working_days'>;
  const bounds = { jitter_seconds: number(draft.jitter), end: draft.end, start: draft.start, max_runs: number(draft.maxRuns) };
  const common = { ...rest, time_zone: zone(draft), ...bounds, ...dates };
  if (draft.kind === 'rate') return compact({ rate: `${draft.every.trim()} ${draft.unit}`, ...common });
  const local = { ...common, dst_gap: draft.dstGap, dst_overlap: draft.dstOverlap };
  if (draft.kind === 'cron') return compact({ cron: oneOrMore(draft.cron, ';'), ...local } as ScheduleRequest);
  const weekdays = draft.periodUnit === 'weeks' ? oneOrMore(draft.weekdays, ',') : '';
  return compact({ every: `${draft.period.trim()} ${draft.periodUnit}`, times: oneOrMore(draft.times, ','), weekdays, ...local } as ScheduleRequest);
}

export function isRecurring(kind: Kind): boolean {
  return kind === 'cron' || kind === 'every' || kind === 'rate';
}

/** The calendars and dates of a list. */
export function entries(typed: string): string[] {
  return typed.split(/[\s,;]+/).filter((entry) => entry !== '');
}

function zone(draft: Draft): string {
  return draft.timeZone === 'UTC' ? '' : draft.timeZone;
}

/** Without what is empty; but "at" stays, so that the API can say that it is missing. */
function compact(schedule: ScheduleRequest): ScheduleRequest {
  return Object.fromEntries(Object.entries(schedule).filter(([name, value]) => name === 'at' || (value !== '' && value !== undefined)));
}

/** Every field of a request that the form shows; those that are undefined are not sent. */
function requestOf(draft: Draft): Record<Exclude<Names<TaskRequest>, 'message' | 'paused' | 'pause_reason'>, unknown> {
  const recurs = isRecurring(draft.kind);
  return {
    name: draft.name,
    key: given(draft.key),
    description: given(draft.description),
    ...toWork(draft),
    schedule: scheduleOf(draft),
    overlap: given(draft.overlap),
    misfire: recurs ? given(draft.misfire) : undefined,
    misfire_threshold_seconds: recurs ? number(draft.misfireThreshold) : undefined,
    max_catch_up: recurs && draft.misfire === 'run_all' ? number(draft.maxCatchUp) : undefined,
    notifications: toNotifications(draft.notifications),
    alerts: toAlerts(draft.alerts),
  };
}

export function toRequest(draft: Draft): TaskRequest {
  // What is typed is checked by the API alone; the types say what a good request looks like.
  return read(write({ ...draft.rest, ...requestOf(draft) })) as TaskRequest;
}

/** The request of an edit: a field that was not edited is what the API returned; null if none was edited. */
export function toEdit(draft: Draft, first: Draft, task: Task): TaskRequest | null {
  const before = toRequest(first) as Rest;
  const after = toRequest(draft) as unknown as Rest;
  const isEdited = (name: string): boolean => write(before[name]) !== write(after[name]);
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  if (!names.some(isEdited)) return null;
  const kept = names.map((name) => [name, isEdited(name) ? after[name] : ((task as unknown as Rest)[name] ?? after[name])]);
  return Object.fromEntries(kept.filter(([, value]) => value !== undefined)) as TaskRequest;
}

export function given(typed: string): string | undefined {
  return typed.trim() === '' ? undefined : typed.trim();
}

/** The part of a request that tasks and jobs share. */
export function toWork(draft: WorkDraft): Record<WorkName, unknown> {
  return {
    type: draft.target === '' ? draft.type : undefined,
    target: given(draft.target),
    payload: draft.payload,
    max_attempts: number(draft.maxAttempts),
    timeout_seconds: number(draft.timeout),
    retry: {
      ...draft.retryRest,
      base_seconds: number(draft.retryBase),
      cap_seconds: number(draft.retryCap),
      jitter: draft.retryJitter,
      max_elapsed_seconds: number(draft.retryElapsed),
      on_timeout: draft.retryOnTimeout,
    },
    callback: draft.callback ? { ...draft.callbackRest, lease_seconds: number(draft.leaseSeconds), max_seconds: number(draft.maxSeconds) } : undefined,
    ordering_key: given(draft.orderingKey),
    on_failure: given(draft.orderingKey) === undefined ? undefined : given(draft.onFailure),
    limit: limitOf(draft),
    events: draft.events || undefined,
    tags: draft.tags,
  };
}

/** The limit of a key; without a key there is none. */
function limitOf(draft: WorkDraft): Record<string, unknown> | undefined {
  if (given(draft.limitKey) === undefined) return undefined;
  return { key: given(draft.limitKey), concurrency: number(draft.limitAtOnce), rate: number(draft.limitRate), period: given(draft.limitPeriod) };
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

/** The error of a field, or of its first wrong item. */
export function errorOf(errors: FieldErrors, field: string): string | undefined {
  const item = Object.keys(errors).find((name) => name.startsWith(`${field}.`));
  return errors[field] ?? (item === undefined ? undefined : errors[item]);
}

/** The errors of a dialog: those of an item of a shown list are the list's, with what was typed. */
export function ofLists(errors: FieldErrors, shown: readonly string[], values: object): FieldErrors {
  const found: FieldErrors = {};
  for (const [name, rule] of Object.entries(errors)) {
    const [, list, at] = /^(.+)\.(\d+)$/.exec(name) ?? [];
    const own = list === undefined || !shown.includes(list) || shown.includes(name);
    const typed = own ? undefined : list.split('.').reduce<unknown>((within, part) => (within as Record<string, unknown> | undefined)?.[part], values);
    const item = Array.isArray(typed) ? `${String(typed[Number(at)])}: ${rule}` : rule;
    const [field, told] = own ? [name, rule] : [list, item];
    found[field] = field in found ? `${found[field]}; ${told}` : told;
  }
  return found;
}

/** Those that no shown field takes. */
export function leftOver(errors: FieldErrors, shown: readonly string[]): string[] {
  return Object.entries(errors)
    .filter(([field]) => !shown.includes(field))
    .map(([field, rule]) => `${field}: ${rule}`);
}

export type Overlap = Schemas['Overlap'];
