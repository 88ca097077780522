/** What of a JSON Schema a form of a payload needs. Pure. */
import { Exact, read, write } from '../exact';
import { descriptionOfPayload, labelOfPayload } from './labels';
const LONG = 1_000;
const LINES = ['url', 'subject']; // of one line, however long
export function fieldsOf(schema) {
    const required = new Set(schema.required ?? []);
    const fields = Object.entries(schema.properties ?? {}).map(([name, given]) => field(name, resolved(given, schema), required.has(name)));
    return [...fields.filter((each) => each.required), ...fields.filter((each) => !each.required)];
}
function resolved(given, root) {
    const target = given.$ref?.split('/').at(-1);
    if (target !== undefined)
        return { ...(root.$defs?.[target] ?? {}), ...given };
    const real = given.anyOf?.filter((each) => each.type !== 'null') ?? [];
    const only = real[0];
    if (real.length === 1 && only !== undefined)
        return { ...resolved(only, root), ...given };
    return given;
}
function field(name, schema, required) {
    const base = { name, label: labelOfPayload(name), description: descriptionOfPayload(name, schema.description ?? ''), required, choices: schema.enum ?? [], fallback: schema.default };
    return { ...base, widget: widget(name, schema) };
}
function widget(name, schema) {
    if (schema.enum)
        return 'choice';
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
export function fallbackOf({ name, choices, fallback }, payload) {
    const posts = name === 'method' && choices.includes('POST') && payload['body'] !== undefined && payload['body'] !== null;
    return posts ? 'POST' : fallback;
}
/** With the field set; empty means absent. */
export function withField(payload, name, value) {
    const { [name]: _, ...rest } = payload;
    return value === undefined || value === '' ? rest : { ...payload, [name]: value };
}
/** A value as text: strings as they are, anything else as JSON. */
export function asText(value) {
    if (value === undefined)
        return '';
    return typeof value === 'string' ? value : write(value, 2);
}
/** What was typed where anything goes: JSON if it looks so, else the text itself. */
export function anything(text) {
    if (!/^\s*[[{]/.test(text))
        return text;
    try {
        return read(text);
    }
    catch {
        return text;
    }
}
/** A number as it is typed; undefined if nothing is, NaN if it is none. */
export function typedNumber(text) {
    if (text.trim() === '')
        return undefined;
    const parsed = json(text);
    return parsed.ok && (typeof parsed.value === 'number' || parsed.value instanceof Exact) ? parsed.value : Number(text);
}
/** What was typed where JSON is needed; nothing typed is fine. */
export function json(text) {
    if (text.trim() === '')
        return { ok: true, value: undefined };
    try {
        return { ok: true, value: read(text) };
    }
    catch (error) {
        return { ok: false, why: `is not JSON: ${error.message}` };
    }
}
