import { jsx as _jsx, Fragment as _Fragment, jsxs as _jsxs } from "react/jsx-runtime";
/** A table of jobs, wherever jobs are listed. */
import Box from '@cloudscape-design/components/box';
import Table, {} from '@cloudscape-design/components/table';
import { callsOf } from '../calls';
import { whyOf } from '../why';
import { delayInWords } from '../words';
import { pageOfJob, pageOfTask } from './links';
import { Reason, To, Words } from './parts';
import { JobStatus } from './status';
import { useTaskNames } from './task-names';
import { between, When } from './time';
import { useWhose } from './whose';
/** When a job ended, whichever way. */
export function endedAt(job) {
    return job.completed_at ?? job.failed_at ?? job.killed_at ?? job.cancelled_at ?? job.skipped_at;
}
/** The columns of the jobs of `owner`, or of each job's own owner. */
function definitions(owner, nameOf, columns) {
    const ownerOf = (job) => job.owner?.id ?? owner;
    return {
        scheduled: { id: 'scheduled', header: 'Scheduled', cell: (job) => _jsx(When, { at: job.scheduled_at, exact: true }) },
        owner: { id: 'owner', header: 'Owner', cell: (job) => job.owner?.username ?? '–' },
        job: { id: 'job', header: 'Job', cell: (job) => _jsx(To, { href: pageOfJob(job.id, ownerOf(job)), children: job.id }), isRowHeader: !columns.includes('calls') },
        status: { id: 'status', header: 'Status', cell: (job) => _jsx(JobStatus, { job: job }), minWidth: 120 },
        calls: {
            id: 'calls',
            header: 'Calls',
            cell: (job) => _jsxs(_Fragment, { children: [_jsx(To, { href: pageOfJob(job.id, ownerOf(job)), children: _jsx(Words, { children: callsOf(job) }) }), job.key !== null && _jsx(Box, { color: "text-body-secondary", fontSize: "body-s", children: _jsx(Words, { children: job.key }) })] }),
            isRowHeader: true,
            minWidth: 170,
            maxWidth: 320,
        },
        task: {
            id: 'task',
            header: 'Task',
            cell: (job) => (job.task_id === null ? '–' : _jsx(To, { href: pageOfTask(job.task_id, ownerOf(job)), children: _jsx(Words, { children: job.task_name ?? nameOf(job.task_id, ownerOf(job)) ?? job.task_id }) })),
            maxWidth: 260,
        },
        started: { id: 'started', header: 'Started', cell: (job) => _jsx(When, { at: job.started_at, exact: true }) },
        delay: { id: 'delay', header: 'Delay', cell: (job) => inLines(delayInWords(job)) },
        duration: { id: 'duration', header: 'Duration', cell: (job) => between(job.started_at, endedAt(job)) },
        attempts: { id: 'attempts', header: 'Attempts', cell: (job) => job.attempts.length || '–' },
        reason: {
            id: 'reason',
            header: 'Reason',
            cell: (job) => {
                const why = whyOf(job);
                return why === null ? '–' : _jsx("span", { title: why.reason ?? undefined, children: _jsx(Reason, { text: why.error }) });
            },
            maxWidth: 360,
        },
    };
}
/** In two lines if it names the first start: a cell does not wrap by itself. */
function inLines(delay) {
    const [, first, rest] = /^(first start) (.*)$/.exec(delay) ?? [];
    return first === undefined ? delay : _jsxs(_Fragment, { children: [first, _jsx("br", {}), rest] });
}
export function JobTable({ jobs, columns, ...rest }) {
    const { owner } = useWhose();
    const named = columns.includes('task') ? jobs.flatMap((job) => (job.task_id === null || job.task_name ? [] : [{ id: job.task_id, owner: job.owner?.id ?? owner }])) : [];
    const known = definitions(owner, useTaskNames(named), columns);
    return (_jsx(Table, { ...rest, items: jobs, trackBy: "id", contentDensity: "compact", stickyHeader: true, columnDefinitions: columns.map((name) => known[name]) }));
}
