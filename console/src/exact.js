/**
 * JSON whose numbers stay as they are written. JavaScript rounds integers beyond 2^53, and writes 1.0 as 1; the API does neither.
 * A number that it would change is an `Exact`. Pure.
 */
/** What no text of anybody begins with. */
const MARK = crypto.randomUUID();
const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?/g;
const MARKED = new RegExp(`"${MARK}([^"]*)"`, 'g');
/** What drives a terminal, ends a line or turns one around, wherever a copied text is pasted. JSON escapes the rest itself. */
const HIDDEN = /[\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g;
/** The fields of an answer whose values are the users' own. All other numbers of an answer are numbers to calculate with. */
const OWN = new Set(['payload', 'defaults', 'payload_schema', 'changes']);
export class Exact {
    source;
    constructor(source) {
        this.source = source;
    }
    toString() {
        return this.source;
    }
    toJSON() {
        return MARK + this.source;
    }
}
/** The value of a JSON text. Throws SyntaxError. */
export function read(text) {
    const rounded = JSON.parse(text);
    const marked = text.replace(TOKEN, (token) => (token.startsWith('"') || String(Number(token)) === token ? token : `"${MARK}${token}"`));
    if (marked === text)
        return rounded;
    return JSON.parse(marked, (_, value) => (typeof value === 'string' && value.startsWith(MARK) ? new Exact(value.slice(MARK.length)) : value));
}
/** The value of an answer of the API: numbers of users stay exact. Throws SyntaxError. */
export function readAnswer(text) {
    return calculable(read(text));
}
function calculable(value) {
    if (value instanceof Exact)
        return Number(value.source);
    if (Array.isArray(value))
        return value.map(calculable);
    if (value === null || typeof value !== 'object')
        return value;
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, OWN.has(name) ? each : calculable(each)]));
}
/** A value as JSON, in one line or indented; '' for undefined. */
export function write(value, indent) {
    return (JSON.stringify(value, null, indent) ?? '').replace(MARKED, '$1');
}
/** The same without a character that a terminal or an editor obeys. */
export function writeVisible(value, indent) {
    return write(value, indent).replace(HIDDEN, (hidden) => `\\u${hidden.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
