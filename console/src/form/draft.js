import { read, write } from '../exact';
import { fromNotifications, NOBODY, toNotifications } from './notifications';
import { number } from './typed';
/** What is run and how, in a task and in a job: the API's own defaults, shown so that nobody has to know them. */
export const NEW_WORK = {
    type: 'http',
    target: '', // the named target instead of a type; '': none
    payload: {},
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
    events: false, // whether each end is put on the event bus of the stage
    tags: [],
    // What the API returned of these and the form does not show: an edit sends it back unchanged.
    retryRest: {},
    callbackRest: {},
};
export function empty(timeZone) {
    return {
        ...NEW_WORK,
        name: '',
        key: '',
        description: '',
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
        notifications: NOBODY,
        rest: {},
        scheduleRest: { kind: 'now', fields: {} },
    };
}
const text = (value) => (value === null || value === undefined ? '' : String(value));
/** The draft of what a task or a job runs. */
export function fromWork(work) {
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
        events: work.events,
        tags: work.tags,
        retryRest: unknown(work.retry, RETRY),
        callbackRest: unknown(work.callback, CALLBACK),
    };
}
const RETRY = ['base_seconds', 'cap_seconds', 'jitter', 'max_elapsed_seconds', 'on_timeout'];
const CALLBACK = ['lease_seconds', 'max_seconds'];
const SCHEDULE = ['at', 'cron', 'rate', 'time_zone', 'jitter_seconds', 'start', 'end', 'max_runs', 'dst_gap', 'dst_overlap'];
/** The fields of a task that only the API sets. */
const ANSWERED = {
    id: true, status: true, generation: true, created_at: true, updated_at: true, inactive_at: true, inactive_reason: true, next_run: true, next_runs: true,
    defaults: true,
};
/** What the form does not know. A null means that the field is not set. */
function unknown(record, known) {
    return Object.fromEntries(Object.entries(record ?? {}).filter(([name, value]) => !known.includes(name) && value !== null));
}
export function fromTask(task, blank) {
    const schedule = task.schedule;
    const rate = rateOf(schedule?.rate);
    const kind = schedule?.cron ? 'cron' : schedule?.rate ? 'rate' : schedule?.at ? 'at' : 'now';
    return {
        ...blank,
        ...fromWork(task),
        name: task.name,
        key: task.key ?? '',
        description: task.description ?? '',
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
        notifications: fromNotifications(task.notifications),
        rest: unknown(task, [...Object.keys(requestOf(blank)), ...Object.keys(ANSWERED)]),
        scheduleRest: { kind, fields: unknown(schedule, SCHEDULE) },
    };
}
/** "rate(5 minutes)" or "5 minutes" in its two parts. */
export function rateOf(rate) {
    const parts = /^(?:rate\()?\s*(\d+)\s*([a-z]+?)s?\s*\)?$/i.exec(rate ?? '');
    return parts ? { every: parts[1] ?? '', unit: `${(parts[2] ?? '').toLowerCase()}s` } : null;
}
export function scheduleOf(draft) {
    if (draft.kind === 'now')
        return null;
    const rest = draft.scheduleRest.kind === draft.kind ? draft.scheduleRest.fields : {};
    if (draft.kind === 'at')
        return compact({ ...rest, at: draft.at, time_zone: zone(draft) });
    const common = { ...rest, time_zone: zone(draft), jitter_seconds: number(draft.jitter), end: draft.end, start: draft.start, max_runs: number(draft.maxRuns) };
    if (draft.kind === 'rate')
        return compact({ rate: `${draft.every.trim()} ${draft.unit}`, ...common });
    return compact({ cron: draft.cron.trim(), ...common, dst_gap: draft.dstGap, dst_overlap: draft.dstOverlap });
}
function zone(draft) {
    return draft.timeZone === 'UTC' ? '' : draft.timeZone;
}
/** Without what is empty; but "at" stays, so that the API can say that it is missing. */
function compact(schedule) {
    return Object.fromEntries(Object.entries(schedule).filter(([name, value]) => name === 'at' || (value !== '' && value !== undefined)));
}
/** Every field of a request that the form shows; those that are undefined are not sent. */
function requestOf(draft) {
    const recurs = draft.kind === 'cron' || draft.kind === 'rate';
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
    };
}
export function toRequest(draft) {
    // What is typed is checked by the API alone; the types say what a good request looks like.
    return read(write({ ...draft.rest, ...requestOf(draft) }));
}
/** The request of an edit: a field that was not edited is what the API returned; null if none was edited. */
export function toEdit(draft, first, task) {
    const before = toRequest(first);
    const after = toRequest(draft);
    const isEdited = (name) => write(before[name]) !== write(after[name]);
    const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
    if (!names.some(isEdited))
        return null;
    const kept = names.map((name) => [name, isEdited(name) ? after[name] : (task[name] ?? after[name])]);
    return Object.fromEntries(kept.filter(([, value]) => value !== undefined));
}
export function given(typed) {
    return typed.trim() === '' ? undefined : typed.trim();
}
/** The part of a request that tasks and jobs share. */
export function toWork(draft) {
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
        events: draft.events || undefined,
        tags: draft.tags,
    };
}
/** What the API finds wrong, by field; `prefix` goes before each, as the preview knows its fields without one. */
export function fieldErrors(error, prefix = '') {
    const found = {};
    for (const { field, rule } of error.details) {
        const name = `${prefix}${field}`;
        found[name] = name in found ? `${found[name]}; ${rule}` : rule;
    }
    return found;
}
/** Those that no shown field takes. */
export function leftOver(errors, shown) {
    return Object.entries(errors)
        .filter(([field]) => !shown.includes(field))
        .map(([field, rule]) => `${field}: ${rule}`);
}
