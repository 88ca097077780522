/** What is set in a folded part of a form, in a line. Pure. */
import { span } from '../words';
import type { Draft, WorkDraft } from './draft';
import { OCCASIONS, tellsAnyone, type NotificationsDraft } from './notifications';

const NOTHING = 'None';

/** Fields of payloads that are folded: credentials, and what few calls need. */
export const AUTHENTICATION = ['bearer_secret', 'basic_user', 'basic_secret', 'header_secrets', 'signing_secret'];
export const HEADERS = ['headers'];

export function authentication(payload: Record<string, unknown>): string {
  const { bearer_secret: bearer, basic_user: user, basic_secret: basic, header_secrets: headers, signing_secret: signing } = payload;
  return listed([bearer && 'bearer token', (user || basic) && 'basic authentication', headers && namesOf(headers, 'header from a secret', 'headers from secrets'), signing && 'signed']);
}

export function headers(payload: Record<string, unknown>): string {
  return typeof payload['headers'] === 'object' && payload['headers'] !== null ? listed(Object.keys(payload['headers'])) : NOTHING;
}

function namesOf(value: unknown, one: string, many: string): string {
  const count = typeof value === 'object' && value !== null ? Object.keys(value).length : 1;
  return count === 1 ? one : `${count} ${many}`;
}

export function retries({ maxAttempts, retryBase, retryCap, retryElapsed, retryOnTimeout }: WorkDraft): string {
  if (maxAttempts.trim() === '1') return 'None: a single attempt';
  return listed([`waits from ${seconds(retryBase)} to ${seconds(retryCap)}`, retryElapsed && `stops after ${seconds(retryElapsed)}`, !retryOnTimeout && 'not after a time-out']);
}

export function order({ orderingKey, onFailure, limitKey, limitAtOnce, limitRate, limitPeriod }: WorkDraft): string {
  const ordered = orderingKey.trim() !== '';
  const limit = [limitAtOnce && `${limitAtOnce} at once`, limitRate && `${limitRate} per ${limitPeriod || '?'}`].filter(Boolean).join(' and ');
  return listed([ordered && `key ${orderingKey.trim()}`, ordered && onFailure === 'pause' && 'pauses after a failure', limitKey.trim() && `limit of ${limitKey.trim()}: ${limit || '?'}`]);
}

export function callback({ callback: wanted, leaseSeconds, maxSeconds }: WorkDraft): string {
  return wanted ? `A heartbeat within ${seconds(leaseSeconds)}, ${seconds(maxSeconds)} in all` : NOTHING;
}

export function notifications({ notifications: draft, events }: { notifications: NotificationsDraft; events: boolean }): string {
  const receivers = draft.emails.length + draft.webhooks.length + draft.receivers.length;
  const whom = receivers === 0 ? 'default receivers' : `${receivers} receiver${receivers === 1 ? '' : 's'}`;
  const on = draft.on.map((each) => OCCASIONS[each]?.short ?? each).join(', ');
  return listed([tellsAnyone(draft) && `${whom} on ${on || 'nothing'}`, events && 'an event when it ends']);
}

export function missed({ misfire, misfireThreshold, maxCatchUp }: Draft): string {
  const rule = { run_all: 'all run', skip: 'none runs' }[misfire] ?? 'the latest runs';
  return listed([rule, misfireThreshold && `missed after ${seconds(misfireThreshold)}`, misfire === 'run_all' && maxCatchUp && `at most ${maxCatchUp}`]);
}

export function alerts({ alerts: draft }: Draft): string {
  const { lateAfter, maxDuration, doneBy, missed: onMissed, none } = draft;
  if (none) return 'None';
  const rules = [lateAfter && `late after ${seconds(lateAfter)}`, maxDuration && `too long after ${seconds(maxDuration)}`, doneBy.trim() && `done by ${doneBy.trim()}`, onMissed && 'missed runs'];
  return rules.some(Boolean) ? listed(rules) : 'The default ones';
}

export function bounds({ start, end, maxRuns, jitter, dstGap, dstOverlap }: Draft): string {
  return listed([start && 'a start', end && 'an end', maxRuns && `at most ${maxRuns} runs`, jitter && `jitter of ${seconds(jitter)}`, (dstGap || dstOverlap) && 'clock changes']);
}

export function days({ exclude, only, workingDays }: Draft): string {
  return listed([exclude.trim() && `not on ${exclude.trim()}`, only.trim() && `only on ${only.trim()}`, workingDays.trim() && `working days ${workingDays.trim()}`]);
}

export function labels({ key, tags, description = '' }: { key: string; tags: readonly string[]; description?: string }): string {
  return listed([description.trim() && 'a description', key.trim() && `key ${key.trim()}`, tags.length > 0 && `tags ${tags.join(', ')}`]);
}

/** A first letter in upper case, and commas between. */
function listed(parts: readonly unknown[]): string {
  const words = parts.filter((part): part is string => typeof part === 'string' && part !== '').join(', ');
  return words === '' ? NOTHING : words.charAt(0).toUpperCase() + words.slice(1);
}

function seconds(typed: string): string {
  const value = Number(typed);
  return typed.trim() === '' || Number.isNaN(value) ? `${typed || '?'} s` : span(value * 1_000);
}
