import { isFirstStart, span } from './words';
const ENDS = [
    ['completed_at', 'Succeeded', 'success'],
    ['failed_at', 'Failed', 'error'],
    ['killed_at', 'Killed', 'error'],
    ['cancelled_at', 'Cancelled', 'stopped'],
    ['skipped_at', 'Skipped', 'warning'],
];
export function timeline(job) {
    const past = [step('Created', job.created_at)];
    const attempts = job.attempts;
    for (const attempt of attempts) {
        past.push(step(`Claimed, attempt ${attempt.number}`, attempt.picked_at));
        if (attempt.started_at !== null)
            past.push(step(`Started, attempt ${attempt.number}`, attempt.started_at));
        const good = attempt.outcome === 'succeeded';
        past.push(step(`Attempt ${attempt.number} ${attempt.outcome}`, attempt.ended_at, attempt.failure?.message ?? null, good ? 'success' : attempt.outcome === 'cancelled' ? 'stopped' : 'error'));
    }
    const last = attempts.at(-1)?.picked_at ?? '';
    if (job.status === 'running') {
        if (job.picked_at !== null && job.picked_at > last)
            past.push(step('Claimed', job.picked_at));
        if (job.started_at !== null && attempts.length === 0)
            past.push(step('Started', job.started_at));
    }
    if (job.redriven_at !== null)
        past.push(step('Run again requested', job.redriven_at, null, 'info'));
    if (job.cancel_requested_at !== null)
        past.push(step('Cancellation requested', job.cancel_requested_at, null, 'info'));
    past.sort((one, other) => (one.at ?? '').localeCompare(other.at ?? ''));
    const first = past.find((each) => each.what.startsWith('Started'));
    if (first !== undefined && isFirstStart(first.at, job))
        first.note = delay(job.start_delay_ms);
    for (const [field, what, look] of ENDS) {
        const at = job[field];
        if (at !== null)
            return [...past, step(what, at, null, look)];
    }
    if (job.status === 'running')
        return [...past, step('Running', null, null, 'info')];
    return [...past, step(attempts.length > 0 ? 'Next attempt' : 'Due', job.due_at, null, 'pending')];
}
function step(what, at, note = null, look = 'success') {
    return { what, at, note, look };
}
function delay(ms) {
    return ms === null ? null : `${span(ms)} after its time`;
}
