/** The operations of AWS that jobs may call, and the parameters of one, as the form of an `aws` job shows them. Pure. */
import type { Schemas } from '../api/client';
import { fieldsOf, resolved, type Field, type Schema } from './schema';

export type Action = Schemas['AwsAction'];

/** Whose actions a form offers: those of one owner, or of all owners of the stage, for a named target. */
export type Scope = { owner?: string | undefined; scope?: 'all' };

/** Those that have all words of the search: first the ones whose names have them, then the ones that have some in the summary. */
export function searched(actions: readonly Action[], search: string): Action[] {
  const words = search.toLowerCase().split(/[\s:]+/).filter((word) => word !== '');
  const has = (text: string): boolean => words.every((word) => text.toLowerCase().includes(word));
  const named = actions.filter(({ name }) => has(name));
  return [...named, ...actions.filter((action) => !named.includes(action) && has(`${action.name} ${action.summary}`))];
}

/** The action that a payload calls with the defaults of its target; null if they do not name one yet. */
export function actionOf(payload: Record<string, unknown>, defaults: Record<string, unknown>): { service: string; action: string } | null {
  const { service, action } = { ...defaults, ...payload };
  return typeof service === 'string' && typeof action === 'string' && service !== '' && action !== '' ? { service, action } : null;
}

/** Whether the parameters of the action decide: a target may have a schema of its own. */
export function takesParameters(schema: Schema): boolean {
  const parameters = schema.properties?.['parameters'];
  return parameters?.type === 'object' && parameters.properties === undefined;
}

/** The parameters, the required ones first. Their names are those of AWS, since its errors and its documentation have them. */
export function parametersOf(schema: Schema): Field[] {
  return fieldsOf(schema).map((field) => {
    const own = schema.properties?.[field.name] ?? {};
    const parts = [own.description ?? '', own.contentEncoding === 'base64' ? 'Bytes, as base64.' : '', own.format === 'date-time' ? 'An instant, as RFC 3339.' : '', insides(own, schema)];
    const isLine = field.widget === 'text' && (own.contentEncoding !== undefined || own.format !== undefined);
    return { ...field, label: field.name, description: parts.filter((part) => part !== '').join(' '), widget: isLine ? 'line' : field.widget };
  });
}

/** What an object, or each entry of a list, consists of. */
function insides(own: Schema, root: Schema): string {
  const whole = resolved(own, root);
  const entry = resolved(whole.items ?? (typeof whole.additionalProperties === 'object' ? whole.additionalProperties : {}), root);
  const names = (of: Schema): string => Object.keys(of.properties ?? {}).map((name) => ((of.required ?? []).includes(name) ? `${name} (required)` : name)).join(', ');
  if (whole.properties !== undefined) return `An object with ${names(whole)}.`;
  if (entry.properties === undefined) return '';
  return `${whole.type === 'array' ? 'A list of objects' : 'An object of objects'} with ${names(entry)}.`;
}

/** The parameters that the form shows: the required ones, those with a value, and those that were added. */
export function shownOf(fields: readonly Field[], values: Record<string, unknown>, added: readonly string[]): Field[] {
  return fields.filter(({ name, required }) => required || name in values || added.includes(name));
}
