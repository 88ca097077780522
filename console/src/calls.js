/** The host and path, the function, the queue or the like; of a job that calls nothing its type. */
export function callsOf(job) {
    return job.calls ?? job.target ?? job.type;
}
const RESOURCES = ['function', 'queue', 'topic', 'bus', 'state_machine'];
/** The same of the runs of a task: the API says it only of jobs. */
export function callsOfTask({ type, target, payload }) {
    return target ?? place(payload) ?? type;
}
function place({ url, to, ...rest }) {
    if (typeof url === 'string')
        return url.replace(/^[a-z]+:\/\//i, '').replace(/^[^/?#]*@/, '').replace(/[?#].*$/s, '') || null;
    if (Array.isArray(to) && typeof to[0] === 'string')
        return to[0];
    const found = RESOURCES.map((name) => rest[name]).find((value) => typeof value === 'string');
    return typeof found === 'string' ? nameOf(found) : null;
}
/** The last part of an ARN or of the URL of a queue. */
function nameOf(address) {
    const arn = /^arn:(?:[^:]*:){4}(?:function:|stateMachine:|event-bus\/)?(.+)$/.exec(address)?.[1];
    return arn ?? /^https:\/\/.*\/([^/]+)$/.exec(address)?.[1] ?? address;
}
