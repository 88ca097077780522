import { number } from './typed';
/** In the order of the form; `short` stands after "of". */
export const OCCASIONS = {
    failure: { label: 'A run fails', short: 'failure', description: 'After its last attempt, or by a kill that is not selected itself' },
    recovery: { label: 'Runs succeed again', short: 'recovery', description: 'The first success after failures' },
    success: { label: 'A run succeeds', short: 'success', description: 'Every success' },
    late: { label: 'A run starts late', short: 'late start', description: 'Ten seconds or more after its scheduled time' },
    killed: { label: 'A run is killed', short: 'kill', description: 'After its time-out, without waiting for failures in a row' },
};
/** Nobody; and the API's own defaults for when somebody is named. */
export const NOBODY = { emails: [], webhooks: [], on: ['failure', 'recovery'], afterFailures: '1', digest: '900', rest: {} };
export function fromNotifications(told) {
    if (told === null)
        return NOBODY;
    const { emails, webhooks, on, after_failures, digest_seconds, ...rest } = told;
    return { emails, webhooks: webhooks.map((hook) => ({ ...hook, signing_secret: hook.signing_secret ?? '' })), on, afterFailures: String(after_failures), digest: String(digest_seconds), rest };
}
/** Undefined: no notifications. An empty row is sent, too: the API reports at it what is missing. */
export function toNotifications(draft) {
    if (!tellsAnyone(draft))
        return undefined;
    return {
        ...draft.rest,
        emails: draft.emails.map((address) => address.trim()),
        webhooks: draft.webhooks.map((hook) => ({ ...hook, url: hook.url.trim(), signing_secret: hook.signing_secret.trim() || undefined })),
        on: draft.on,
        after_failures: number(draft.afterFailures),
        digest_seconds: number(draft.digest),
    };
}
export function tellsAnyone(draft) {
    return draft.emails.length > 0 || draft.webhooks.length > 0;
}
/** With or without the occasion, in the order of the form; one that this console does not know stays. */
export function withOccasion(on, occasion, wanted) {
    const known = Object.keys(OCCASIONS).filter((each) => (each === occasion ? wanted : on.includes(each)));
    return [...known, ...on.filter((each) => !(each in OCCASIONS))];
}
