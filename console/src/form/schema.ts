/** What of a JSON Schema a form of a payload needs. Pure. */
import { Exact, read, write } from '../exact';
import { descriptionOfPayload, labelOfPayload } from './labels';

export interface Schema {
  type?: string;
  title?: string;
  description?: string;
  default?: unknown;
  enum?: string[];
  anyOf?: Schema[];
  $ref?: string;
  $defs?: Record<string, Schema>;
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: boolean | Schema;
  maxLength?: number;
  format?: string;
  contentEncoding?: string;
}

export type Widget = 'line' | 'text' | 'number' | 'switch' | 'choice' | 'lines' | 'pairs' | 'json' | 'any';

export interface Field {
  name: string;
  label: string;
  description: string;
  required: boolean;
  widget: Widget;
  choices: string[];
  fallback: unknown;
}

const LONG = 1_000;
const LINES = ['url', 'subject']; // of one line, however long

export function fieldsOf(schema: Schema): Field[] {
  const required = new Set(schema.required ?? []);
  const fields = Object.entries(schema.properties ?? {}).map(([name, given]) => field(name, resolved(given, schema), required.has(name)));
  return [...fields.filter((each) => each.required), ...fields.filter((each) => !each.required)];
}

export function resolved(given: Schema, root: Schema): Schema {
  const target = given.$ref?.split('/').at(-1);
  if (target !== undefined) return { ...(root.$defs?.[target] ?? {}), ...given };
  const real = given.anyOf?.filter((each) => each.type !== 'null') ?? [];
  const only = real[0];
  if (real.length === 1 && only !== undefined) return { ...resolved(only, root), ...given };
  return given;
}

function field(name: string, schema: Schema, required: boolean): Field {
  const base = { name, label: labelOfPayload(name), description: descriptionOfPayload(name, schema.description ?? ''), required, choices: schema.enum ?? [], fallback: schema.default };
  return { ...base, widget: widget(name, schema) };
}

function widget(name: string, schema: Schema): Widget {
  if (schema.enum) return 'choice';
  switch (schema.type) {
    case 'string':
      return LINES.includes(name) || (schema.maxLength ?? Infinity) <= LONG ? 'line' : 'text';
    case 'number':
    case 'integer':
      return 'number';
    case 'boolean':
      return 'switch';
    case 'array':
      return schema.items?.type === 'string' ? 'lines' : 'json';
    case 'object':
      return typeof schema.additionalProperties === 'object' && schema.additionalProperties.type === 'string' ? 'pairs' : 'json';
    default:
      return 'any';
  }
}

/** What the API takes for an absent choice. The method of a call depends on its body. */
export function fallbackOf({ name, choices, fallback }: Field, payload: Record<string, unknown>): unknown {
  const posts = name === 'method' && choices.includes('POST') && payload['body'] !== undefined && payload['body'] !== null;
  return posts ? 'POST' : fallback;
}

/** With the field set; empty means absent. */
export function withField(payload: Record<string, unknown>, name: string, value: unknown): Record<string, unknown> {
  const { [name]: _, ...rest } = payload;
  return value === undefined || value === '' ? rest : { ...payload, [name]: value };
}

/** A value as text: strings as they are, anything else as JSON. */
export function asText(value: unknown): string {
  if (value === undefined) return '';
  return typeof value === 'string' ? value : write(value, 2);
}

/** What was typed where anything goes: JSON if it looks so, else the text itself. */
export function anything(text: string): unknown {
  if (!/^\s*[[{]/.test(text)) return text;
  try {
    return read(text);
  } catch {
    return text;
  }
}

/** A number as it is typed; undefined if nothing is, NaN if it is none. */
export function typedNumber(text: string): number | Exact | undefined {
  if (text.trim() === '') return undefined;
  const parsed = json(text);
  return parsed.ok && (typeof parsed.value === 'number' || parsed.value instanceof Exact) ? parsed.value : Number(text);
}

export type Parsed = { ok: true; value: unknown } | { ok: false; why: string };

/** What was typed where JSON is needed; nothing typed is fine. */
export function json(text: string): Parsed {
  if (text.trim() === '') return { ok: true, value: undefined };
  try {
    return { ok: true, value: read(text) };
  } catch (error) {
    return { ok: false, why: `is not JSON: ${(error as Error).message}` };
  }
}
