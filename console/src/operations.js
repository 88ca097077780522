import { wordOf } from './words';
export const WORDS = {
    redrive: { name: 'New runs of failed jobs', past: 'run again', of: 'job' },
    cancel_jobs: { name: 'Cancellation of jobs', past: 'cancelled', of: 'job' },
    pause_tasks: { name: 'Pause of tasks', past: 'paused', of: 'task' },
    resume_tasks: { name: 'Resumption of tasks', past: 'resumed', of: 'task' },
    delete_tasks: { name: 'Deletion of tasks', past: 'deleted', of: 'task' },
};
export function counted(count, of) {
    return `${count.toLocaleString('en')} ${of}${count === 1 ? '' : 's'}`;
}
/** What it does, or has done: for the box that shows its progress. */
export function headerOf({ action, status, matched, done, limit, filter }) {
    const { name } = WORDS[action];
    if (status === 'running')
        return name;
    if (action !== 'redrive')
        return `${name} ${status}`;
    if (done === 0)
        return status === 'aborted' ? 'Aborted: no failed jobs run again' : 'No failed jobs run again';
    if (status === 'aborted')
        return `Aborted: ${done} failed ${done === 1 ? 'job runs' : 'jobs run'} again`;
    if (done < matched)
        return `${done} of ${matched} failed jobs run again`;
    if (filter.fingerprint !== null && limit === null)
        return 'All failed jobs of this group run again';
    return done === 1 ? 'The failed job runs again' : `All ${done} failed jobs run again`;
}
/** How many were changed so far, and how many were not. */
export function countsInWords({ action, matched, done, skipped, failed, conflicts, rate }) {
    const beside = conflicts > 0 ? `, ${conflicts} still failed, since another open job has their key` : '';
    return `${matched} matched: ${done} ${WORDS[action].past} at ${rate}/s, ${skipped} skipped, ${failed} failed${beside}`;
}
/** What was chosen, a part each; empty: all. Instants stay as the API writes them. */
export function chosenInWords(filter) {
    const named = [
        ['name contains', filter.name],
        ['type', filter.type],
        ['tag', filter.tag.join(' and ') || null],
        ['status', filter.status.map((each) => (each === 'inactive' ? 'paused' : each)).join(' or ') || null],
        ['task', filter.task],
        [wordOf('lane'), filter.lane],
        ['error', filter.fingerprint],
        ['from', filter.from],
        ['before', filter.to],
    ];
    return named.flatMap(([name, value]) => (value === null ? [] : [`${name} ${value}`]));
}
const OPEN = ['scheduled', 'queued', 'running'];
/**
 * Which jobs the list of jobs shows that can be cancelled, for the API; null: none of those statuses.
 * The API does not know the list's two views, so each becomes a bound: what was due ends at `now`, what is ahead begins there.
 */
export function toCancel(chosen, ahead, now) {
    const status = chosen.status.filter((each) => OPEN.includes(each));
    if (chosen.status.length > 0 && status.length === 0)
        return null;
    const at = new Date(now).toISOString();
    const [from, to] = ahead ? [latest(chosen.from, at), chosen.to] : [chosen.from, earliest(chosen.to, at)];
    return {
        ...(status.length > 0 && { status }),
        ...(chosen.type !== '' && { type: chosen.type }),
        ...(chosen.task !== '' && { task: chosen.task }),
        ...(chosen.tag !== '' && { tag: [chosen.tag] }),
        ...(from !== undefined && { from }),
        ...(to !== undefined && { to }),
    };
}
function latest(one, other) {
    return one !== undefined && Date.parse(one) > Date.parse(other) ? one : other;
}
function earliest(one, other) {
    return one !== undefined && Date.parse(one) < Date.parse(other) ? one : other;
}
/** Which tasks the list shows that the action changes, for the API; null: it changes none of that status. */
export function toChange(action, chosen) {
    const changes = { pause_tasks: ['', 'active'], resume_tasks: ['', 'inactive'], delete_tasks: ['', 'active', 'inactive', 'ended'] }[action];
    if (!changes.includes(chosen.status))
        return null;
    const filter = {
        ...(action === 'delete_tasks' && chosen.status !== '' && { status: [chosen.status] }),
        ...(chosen.type !== '' && { type: chosen.type }),
        ...(chosen.name !== '' && { name: chosen.name }),
        ...(chosen.tag !== '' && { tag: [chosen.tag] }),
    };
    return Object.keys(filter).length === 0 ? { all: true } : filter;
}
