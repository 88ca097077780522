/** A one-time job as its form holds it, to what the API takes. Pure. */
import type { Job, Schemas } from '../api/client';
import { read, write } from '../exact';
import { fromWork, given, NEW_WORK, toWork, type Names, type WorkDraft } from './draft';
import { fromNotifications, NOBODY, toNotifications, type NotificationsDraft } from './notifications';
import { number } from './typed';

export type Start = 'now' | 'after' | 'at';

export interface JobDraft extends WorkDraft {
  key: string;
  start: Start;
  after: string;
  unit: string;
  at: string;
  expiresAt: string;
  notifications: NotificationsDraft;
}

export const NEW_JOB: JobDraft = { ...NEW_WORK, key: '', start: 'now', after: '30', unit: 'minutes', at: '', expiresAt: '', notifications: NOBODY };

export const UNITS: Record<string, number> = { seconds: 1, minutes: 60, hours: 3_600, days: 86_400 };

/** A new job with the content of another one; its key, its time and its expiry are not taken over. */
export function fromJob(job: Job): JobDraft {
  return { ...NEW_JOB, ...fromWork(job), notifications: fromNotifications(job.notifications) };
}

/** The request that posts this job: with its key, and with its time and expiry unless they have passed at `now`. */
export function asPosted(job: Job, now: number): Schemas['JobRequest'] {
  const ahead = (instant: string | null): string => (instant !== null && Date.parse(instant) > now ? instant : '');
  const at = ahead(job.scheduled_at);
  return toJob({ ...fromJob(job), key: job.key ?? '', start: at === '' ? 'now' : 'at', at, expiresAt: ahead(job.expires_at) });
}

/** The request. A time that is missing is sent empty, so that the API says so at its field. The form takes no jobs to wait for, and no group: that of another job may be sealed. */
export function toJob(draft: JobDraft): Schemas['JobRequest'] {
  const request: Record<Exclude<Names<Schemas['JobRequest']>, 'message' | 'after' | 'group' | keyof ReturnType<typeof startOf>>, unknown> = {
    ...toWork(draft), key: given(draft.key), ...startOf(draft), expires_at: given(draft.expiresAt), notifications: toNotifications(draft.notifications),
  };
  return read(write(request)) as Schemas['JobRequest'];
}

function startOf(draft: JobDraft): { execute_at?: unknown; delay_seconds?: unknown; delay?: never } {
  if (draft.start === 'now') return {};
  if (draft.start === 'at') return { execute_at: draft.at };
  const seconds = Number(number(draft.after)) * (UNITS[draft.unit] ?? 1);
  return { delay_seconds: Number.isNaN(seconds) ? draft.after : seconds };
}
