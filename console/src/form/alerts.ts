/** The alerts of a task: the form's shape, to and from the API's. Pure. */
import type { Schemas, Task } from '../api/client';
import { span } from '../words';
import { number } from './typed';

export type Alerts = NonNullable<Task['alerts']>;

/** As typed: a rule that does not apply is empty. */
export interface AlertsDraft {
  lateAfter: string;
  maxDuration: string;
  doneBy: string;
  missed: boolean;
  /** No rules, and not the default ones either. */
  none: boolean;
}

export const NO_ALERTS: AlertsDraft = { lateAfter: '', maxDuration: '', doneBy: '', missed: false, none: false };

const text = (value: number | null | undefined): string => (value === null || value === undefined ? '' : String(value));

export function fromAlerts(told: Partial<Alerts> | null | undefined): AlertsDraft {
  if (told === null || told === undefined) return NO_ALERTS;
  return { none: rulesOf(told).length === 0, lateAfter: text(told.late_after_seconds), maxDuration: text(told.max_duration_seconds), doneBy: told.done_by ?? '', missed: told.missed ?? false };
}

/** Undefined: the default alerts of the owner. Empty: none. */
export function toAlerts(draft: AlertsDraft): object | undefined {
  if (draft.none) return {};
  const doneBy = draft.doneBy.trim();
  const rules = { late_after_seconds: number(draft.lateAfter), max_duration_seconds: number(draft.maxDuration), done_by: doneBy === '' ? undefined : doneBy, missed: draft.missed || undefined };
  return Object.values(rules).every((rule) => rule === undefined) ? undefined : rules;
}

/** The body of the default alerts, all of whose fields are optional. */
export function toDefaultAlerts(draft: AlertsDraft): Schemas['DefaultAlertsRequest'] {
  return { late_after_seconds: number(draft.lateAfter) ?? null, max_duration_seconds: number(draft.maxDuration) ?? null, missed: draft.missed } as Schemas['DefaultAlertsRequest'];
}

/** The rules in words. */
export function rulesOf(alerts: Partial<Alerts>): string[] {
  const { late_after_seconds: late, max_duration_seconds: longest, done_by: doneBy, missed } = alerts;
  return [
    late ? `has not started ${span(late * 1_000)} after its time` : '',
    longest ? `takes longer than ${span(longest * 1_000)}` : '',
    doneBy ? `is not done by ${doneBy}` : '',
    missed ? 'is missed' : '',
  ].filter((rule) => rule !== '');
}
