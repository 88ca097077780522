export const COLOURS = {
    succeeded: 'var(--succeeded)',
    failed: 'var(--failed)',
    killed: 'var(--killed)',
    skipped: 'var(--skipped)',
    cancelled: 'var(--cancelled)',
    measure: 'var(--measure)',
    /** A second measure, such as a 95th percentile. */
    high: 'var(--measure-high)',
};
/** Blue: at work, or about to start. */
export const GOES_ON = { type: 'in-progress', colorOverride: 'blue' };
/** Green and red are ends. Yellow did not start at its time. Grey is not due, or somebody stopped it. */
export const JOB_LOOKS = {
    scheduled: { type: 'pending' },
    queued: { type: 'pending', colorOverride: 'blue' },
    running: GOES_ON,
    succeeded: { type: 'success' },
    failed: { type: 'error' },
    killed: { type: 'error' },
    cancelled: { type: 'stopped' },
    skipped: { type: 'stopped', colorOverride: 'yellow' },
};
/** Of a job that waits although its time has passed: a warning. */
export function lookOfJob({ status, late }) {
    return status === 'queued' && late ? { type: 'warning' } : JOB_LOOKS[status];
}
