/** The form of a monitor: its shape, to and from the API's. Pure. */
import type { Schemas } from '../api/client';
import { number } from './typed';

export type Monitor = Schemas['Monitor'];
/** `kept`: a schedule that the form cannot show, which stays as it is. */
export type Rhythm = 'period' | 'cron' | 'kept';

export interface MonitorDraft {
  key: string;
  name: string;
  rhythm: Rhythm;
  period: string;
  cron: string;
  zone: string;
  grace: string;
  maxDuration: string;
  emails: string;
  receivers: string[];
  /** The default receivers of the owner, if nobody is named. Null: if there are any. */
  byDefault: boolean | null;
}

export const FIELDS = ['key', 'name', 'period_seconds', 'schedule.cron', 'schedule.time_zone', 'grace_seconds', 'max_duration_seconds', 'notifications.emails', 'notifications.receivers', 'notifications'];

export function blank(zone: string): MonitorDraft {
  return { key: '', name: '', rhythm: 'period', period: '3600', cron: '30 2 * * *', zone, grace: '300', maxDuration: '3600', emails: '', receivers: [], byDefault: null };
}

export function fromMonitor(monitor: Monitor, zone: string): MonitorDraft {
  const { schedule, notifications } = monitor;
  const plain = schedule !== null && typeof schedule.cron === 'string' && Object.keys(schedule).every((name) => name === 'cron' || name === 'time_zone');
  return {
    ...blank(schedule?.time_zone ?? zone),
    key: monitor.key,
    name: monitor.name,
    rhythm: schedule === null ? 'period' : plain ? 'cron' : 'kept',
    ...(monitor.period_seconds === null ? {} : { period: String(monitor.period_seconds) }),
    ...(plain ? { cron: String(schedule.cron), zone: schedule.time_zone ?? 'UTC' } : {}),
    grace: String(monitor.grace_seconds),
    maxDuration: String(monitor.max_duration_seconds),
    emails: notifications?.emails.join(', ') ?? '',
    receivers: notifications?.receivers ?? [],
    byDefault: notifications !== null && notifications.emails.length + notifications.receivers.length + notifications.webhooks.length === 0,
  };
}

/** The body of the request. The webhooks and the schedule that the form does not show come from `before`. */
export function toRequest(draft: MonitorDraft, before: Monitor | null): Schemas['MonitorRequest'] {
  const notifications = {
    emails: listed(draft.emails),
    receivers: draft.receivers,
    webhooks: before?.notifications?.webhooks ?? [],
  };
  const named = namesAnyone(draft, before);
  const rhythm = {
    period: { period_seconds: number(draft.period) },
    cron: { schedule: { cron: draft.cron.trim(), time_zone: draft.zone.trim() || 'UTC' } },
    kept: { schedule: before?.schedule },
  }[draft.rhythm];
  return {
    name: draft.name.trim(),
    grace_seconds: number(draft.grace),
    max_duration_seconds: number(draft.maxDuration),
    ...rhythm,
    ...(named ? { notifications } : draft.byDefault ? { notifications: {} } : {}),
  } as Schemas['MonitorRequest'];
}

/** Whether the monitor has receivers of its own: the default ones are then not notified. */
export function namesAnyone(draft: MonitorDraft, before: Monitor | null): boolean {
  return listed(draft.emails).length + draft.receivers.length + (before?.notifications?.webhooks ?? []).length > 0;
}

/** The draft with what follows from the default receivers that the owner has; null: not known yet. */
export function settled(draft: MonitorDraft, defaults: readonly string[] | null): MonitorDraft & { byDefault: boolean } {
  return { ...draft, byDefault: draft.byDefault ?? (defaults !== null && defaults.length > 0) };
}

/** The draft with another name. A key that nobody typed follows the name. */
export function withName(draft: MonitorDraft, name: string, before: Monitor | null): MonitorDraft {
  const follows = before === null && draft.key === keyFrom(draft.name);
  return { ...draft, name, key: follows ? keyFrom(name) : draft.key };
}

function keyFrom(name: string): string {
  return name.normalize('NFKD').toLowerCase().replace(/[^a-z0-9]+/g, '-').replace(/^-|-$/g, '');
}

/** What stands between commas. */
export function listed(text: string): string[] {
  return text.split(',').map((each) => each.trim()).filter((each) => each !== '');
}
