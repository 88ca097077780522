import { read, write } from '../exact';
import { fromWork, given, NEW_WORK, toWork } from './draft';
import { fromNotifications, NOBODY, toNotifications } from './notifications';
import { number } from './typed';
export const NEW_JOB = { ...NEW_WORK, key: '', start: 'now', after: '30', unit: 'minutes', at: '', expiresAt: '', notifications: NOBODY };
export const UNITS = { seconds: 1, minutes: 60, hours: 3_600, days: 86_400 };
/** A new job with the content of another one; its key, its time and its expiry are not taken over. */
export function fromJob(job) {
    return { ...NEW_JOB, ...fromWork(job), notifications: fromNotifications(job.notifications) };
}
/** The request that posts this job: with its key, and with its time and expiry unless they have passed at `now`. */
export function asPosted(job, now) {
    const ahead = (instant) => (instant !== null && Date.parse(instant) > now ? instant : '');
    const at = ahead(job.scheduled_at);
    return toJob({ ...fromJob(job), key: job.key ?? '', start: at === '' ? 'now' : 'at', at, expiresAt: ahead(job.expires_at) });
}
/** The request. A time that is missing is sent empty, so that the API says so at its field. */
export function toJob(draft) {
    const request = {
        ...toWork(draft), key: given(draft.key), ...startOf(draft), expires_at: given(draft.expiresAt), notifications: toNotifications(draft.notifications),
    };
    return read(write(request));
}
function startOf(draft) {
    if (draft.start === 'now')
        return {};
    if (draft.start === 'at')
        return { execute_at: draft.at };
    const seconds = Number(number(draft.after)) * (UNITS[draft.unit] ?? 1);
    return { delay_seconds: Number.isNaN(seconds) ? draft.after : seconds };
}
