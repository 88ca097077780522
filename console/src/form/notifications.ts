/** The notifications of a task: the form's shape, to and from the API's. Pure. */
import type { Schemas, Task } from '../api/client';
import { number } from './typed';

export type Notifications = NonNullable<Task['notifications']>;
export type Occasion = Schemas['Occasion'];
/** As typed: without a secret it is empty. */
export type Webhook = Omit<Schemas['Webhook'], 'signing_secret'> & { signing_secret: string };

export interface NotificationsDraft {
  emails: string[];
  webhooks: Webhook[];
  /** Names of receivers. */
  receivers: string[];
  /** Without any receiver: the default receivers of the owner are notified. */
  byDefault: boolean;
  on: Occasion[];
  afterFailures: string;
  digest: string;
  /** What the API told beside these: goes back as it came. */
  rest: Record<string, unknown>;
}

/** In the order of the form; `short` stands after "of". */
export const OCCASIONS: Record<Occasion, { label: string; short: string; description: string }> = {
  failure: { label: 'A run fails', short: 'failure', description: 'After its last attempt, or by a kill that is not selected itself' },
  recovery: { label: 'Runs succeed again', short: 'recovery', description: 'The first success after failures' },
  success: { label: 'A run succeeds', short: 'success', description: 'Every success' },
  late: { label: 'A run starts late', short: 'late start', description: 'Ten seconds or more after its scheduled time' },
  killed: { label: 'A run is killed', short: 'kill', description: 'After its time-out, without waiting for failures in a row' },
};

/** Nobody; and the API's own defaults for when somebody is named. */
export const NOBODY: NotificationsDraft = { emails: [], webhooks: [], receivers: [], byDefault: false, on: ['failure', 'recovery'], afterFailures: '1', digest: '900', rest: {} };

export function fromNotifications(told: Task['notifications']): NotificationsDraft {
  if (told === null) return NOBODY;
  const { emails, webhooks, receivers, on, after_failures, digest_seconds, ...rest } = told;
  const byDefault = emails.length + webhooks.length + receivers.length === 0;
  return { emails, webhooks: webhooks.map((hook) => ({ ...hook, signing_secret: hook.signing_secret ?? '' })), receivers, byDefault, on, afterFailures: String(after_failures), digest: String(digest_seconds), rest };
}

/** Undefined: no notifications. An empty row is sent, too: the API reports at it what is missing. */
export function toNotifications(draft: NotificationsDraft): object | undefined {
  if (!tellsAnyone(draft)) return undefined;
  return {
    ...draft.rest,
    emails: draft.emails.map((address) => address.trim()),
    webhooks: draft.webhooks.map((hook) => ({ ...hook, url: hook.url.trim(), signing_secret: hook.signing_secret.trim() || undefined })),
    receivers: draft.receivers.map((name) => name.trim()),
    on: draft.on,
    after_failures: number(draft.afterFailures),
    digest_seconds: number(draft.digest),
  };
}

export function tellsAnyone(draft: NotificationsDraft): boolean {
  return namesAnyone(draft) || draft.byDefault;
}

/** Whether it names a receiver itself: the default receivers are then not notified. */
export function namesAnyone(draft: NotificationsDraft): boolean {
  return draft.emails.length + draft.webhooks.length + draft.receivers.length > 0;
}

/** With or without the occasion, in the order of the form; one that this console does not know stays. */
export function withOccasion(on: readonly Occasion[], occasion: Occasion, wanted: boolean): Occasion[] {
  const known = (Object.keys(OCCASIONS) as Occasion[]).filter((each) => (each === occasion ? wanted : on.includes(each)));
  return [...known, ...on.filter((each) => !(each in OCCASIONS))];
}
