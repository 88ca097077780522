export const BLANK = { name: '', kind: 'http', description: '', enabled: true, defaults: {}, locked: null, payloadSchema: undefined, rate: '', concurrency: '' };
export function fromTarget(target) {
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
    };
}
/** Its page; a name may have dots, which in a path would be taken for a file's. */
export function pageOfTarget(name) {
    return `/targets/one?name=${encodeURIComponent(name)}`;
}
/** What is empty is left out: the API's default. */
export function toTarget(draft) {
    return {
        kind: draft.kind,
        description: draft.description.trim() || undefined,
        enabled: draft.enabled,
        defaults: draft.defaults,
        locked: draft.locked === null ? undefined : draft.locked.filter((name) => name in draft.defaults),
        payload_schema: draft.payloadSchema,
        rate: draft.rate.trim() === '' ? undefined : Number(draft.rate),
        concurrency: draft.concurrency.trim() === '' ? undefined : Number(draft.concurrency),
    };
}
/** A type's schema with nothing required: jobs give what the defaults leave open. */
export function loosened(schema) {
    return { ...schema, required: [] };
}
/** The errors of `defaults` where the form of a payload looks for them. */
export function asPayload(errors) {
    return Object.fromEntries(Object.entries(errors).map(([field, rule]) => [field.replace(/^defaults(?=\.|$)/, 'payload'), rule]));
}
