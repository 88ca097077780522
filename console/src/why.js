import { plain } from './words';
/** Null if there is nothing to explain. */
export function whyOf(job) {
    if (job.status === 'succeeded')
        return null;
    const failure = job.status === 'failed' || job.status === 'killed' ? (job.attempts.at(-1)?.failure ?? null) : null;
    if (failure === null)
        return job.reason === null ? null : { error: plain(job.reason), reason: null };
    return { error: failure.message, reason: job.reason === null ? null : withoutError(job.reason, failure.message) };
}
const ENOUGH = 200; // characters by which the error is found: the reason may have it cut
/** The reason of a failed job ends with its last error, which is shown beside it. Null: it was nothing else. */
function withoutError(reason, error) {
    if (reason === error)
        return null;
    const at = error === '' ? -1 : reason.lastIndexOf(`: ${error.slice(0, ENOUGH)}`);
    return at < 0 ? reason : reason.slice(0, at);
}
