import { jsx as _jsx } from "react/jsx-runtime";
/** What a job or a task is doing, as a coloured word. */
import StatusIndicator, {} from '@cloudscape-design/components/status-indicator';
import { lookOfJob } from '../colours';
const TASK_LOOKS = { active: 'success', inactive: 'stopped', ended: 'info' };
const TASK_WORDS = { active: 'Active', inactive: 'Paused', ended: 'Ended' };
export const FINAL = ['succeeded', 'failed', 'killed', 'cancelled', 'skipped'];
export function isFinal(job) {
    return FINAL.includes(job.status);
}
/** A job that waits for its worker's call-back is running, without an executor. */
export function JobStatus({ job }) {
    const word = job.status.charAt(0).toUpperCase() + job.status.slice(1);
    return _jsx(StatusIndicator, { ...lookOfJob(job), children: job.late ? `${word}, late` : word });
}
export function TaskStatus({ status }) {
    return _jsx(StatusIndicator, { type: TASK_LOOKS[status], children: TASK_WORDS[status] });
}
