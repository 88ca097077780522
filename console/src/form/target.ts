/** A named target as its form holds it, to and from what the API takes. Pure. */
import type { Schemas } from '../api/client';
import type { FieldErrors } from './draft';
import type { Schema } from './schema';

export type Target = Schemas['Target'];

export interface TargetDraft {
  name: string;
  kind: string;
  description: string;
  enabled: boolean;
  defaults: Record<string, unknown>;
  /** Null: the usual, all but what is said to the target. */
  locked: string[] | null;
  payloadSchema: Record<string, unknown> | undefined;
  rate: string;
  concurrency: string;
  /** The form does not change it. */
  limit: Target['limit'];
  /** Whether its jobs call hosts of the private network, … */
  isPrivate: boolean;
  /** … and which: a host or range in each line. */
  allow: string;
}

export const BLANK: TargetDraft = { name: '', kind: 'http', description: '', enabled: true, defaults: {}, locked: null, payloadSchema: undefined, rate: '', concurrency: '', limit: null, isPrivate: false, allow: '' };

export function fromTarget(target: Target): TargetDraft {
  return {
    name: target.name,
    kind: target.kind,
    description: target.description ?? '',
    enabled: target.enabled,
    defaults: target.defaults ?? {},
    locked: target.locked,
    payloadSchema: target.payload_schema ?? undefined,
    rate: target.rate === null ? '' : String(target.rate),
    concurrency: target.concurrency === null ? '' : String(target.concurrency),
    limit: target.limit,
    isPrivate: target.network === 'private',
    allow: (target.allow ?? []).join('\n'),
  };
}

/** Its page; a name may have dots, which in a path would be taken for a file's. */
export function pageOfTarget(name: string): string {
  return `/targets/one?name=${encodeURIComponent(name)}`;
}

/** What is empty is left out: the API's default. */
export function toTarget(draft: TargetDraft): Schemas['TargetEdit'] {
  return {
    kind: draft.kind,
    description: draft.description.trim() || undefined,
    enabled: draft.enabled,
    defaults: draft.defaults,
    locked: draft.locked === null ? undefined : draft.locked.filter((name) => name in draft.defaults),
    payload_schema: draft.payloadSchema,
    rate: draft.rate.trim() === '' ? undefined : Number(draft.rate),
    concurrency: draft.concurrency.trim() === '' ? undefined : Number(draft.concurrency),
    limit: draft.limit ?? undefined,
    ...(draft.isPrivate && draft.kind === 'http' ? { network: 'private', allow: draft.allow.split(/\s+/).filter(Boolean) } : {}),
  };
}

/** A type's schema with nothing required: jobs give what the defaults leave open. */
export function loosened(schema: Schema): Schema {
  return { ...schema, required: [] };
}

/** The errors of `defaults` where the form of a payload looks for them. */
export function asPayload(errors: FieldErrors): FieldErrors {
  return Object.fromEntries(Object.entries(errors).map(([field, rule]) => [field.replace(/^defaults(?=\.|$)/, 'payload'), rule]));
}
