import { jsx as _jsx, jsxs as _jsxs, Fragment as _Fragment } from "react/jsx-runtime";
import Alert from '@cloudscape-design/components/alert';
import Box from '@cloudscape-design/components/box';
import BreadcrumbGroup from '@cloudscape-design/components/breadcrumb-group';
import Button from '@cloudscape-design/components/button';
import ColumnLayout from '@cloudscape-design/components/column-layout';
import Container from '@cloudscape-design/components/container';
import CopyToClipboard from '@cloudscape-design/components/copy-to-clipboard';
import ExpandableSection from '@cloudscape-design/components/expandable-section';
import Header from '@cloudscape-design/components/header';
import KeyValuePairs from '@cloudscape-design/components/key-value-pairs';
import ProgressBar from '@cloudscape-design/components/progress-bar';
import SpaceBetween from '@cloudscape-design/components/space-between';
import Steps from '@cloudscape-design/components/steps';
import { useState } from 'react';
import { useNavigate, useParams } from 'react-router';
import { api, apiError, take } from '../api/client';
import { callsOf } from '../calls';
import { jobCall } from '../code';
import { details } from '../form/fields';
import { asPosted } from '../form/job-draft';
import { pageOfFailures } from '../docs';
import { write } from '../exact';
import { pageOfTarget } from '../form/target';
import { useLive } from '../live';
import { CopyAs } from '../parts/copy-as';
import { useNotices } from '../parts/notices';
import { DocsLink } from '../parts/docs-link';
import { LaneAlert, useLanes } from '../parts/lanes';
import { ofOwner, pageOfAnotherJob, pageOfTask } from '../parts/links';
import { Code, Loaded, pretty, Reason, To, useConfirm, useTitle, Words } from '../parts/parts';
import { isFinal, JobStatus } from '../parts/status';
import { useTaskNames } from '../parts/task-names';
import { Told } from '../parts/told';
import { Ago, between, When } from '../parts/time';
import { OfWhom, useWhose } from '../parts/whose';
import { pausedOf } from '../problems';
import { timeline } from '../timeline';
import { whyOf } from '../why';
import { delayInWords } from '../words';
const QUICK = 1_000;
const LIVELY = 2_000;
const SLOW = 10_000;
const SOON = 60_000;
/** Often, while something is about to happen. What its target took over is due when its lease ends, but is heard of before. */
function pace(job) {
    if (job === null)
        return QUICK;
    if (job.status === 'running' && job.callback !== null)
        return LIVELY;
    return !isFinal(job) && new Date(job.due_at).getTime() - Date.now() < SOON ? QUICK : SLOW;
}
export default function JobPage() {
    const { id = '' } = useParams();
    const { owner } = useWhose();
    const live = useLive(`${id} ${owner ?? ''}`, () => take(api.GET('/api/v1/jobs/{job_id}', { params: { path: { job_id: id }, query: { owner } } })), pace);
    useTitle(`Job ${id}`);
    return (_jsx(Loaded, { live: live, what: "job", children: (job) => _jsx(Shown, { job: job, reload: live.reload }) }));
}
function Shown({ job, reload }) {
    const navigate = useNavigate();
    const { owner, mayChange } = useWhose();
    const { done, failed } = useNotices();
    const [dialog, confirm] = useConfirm();
    const task = useTaskName(job);
    const [busy, setBusy] = useState(false);
    const act = async (what) => {
        setBusy(true);
        try {
            const params = { path: { job_id: job.id }, query: { owner } };
            if (what === 'cancel')
                await take(api.POST('/api/v1/jobs/{job_id}/cancel', { params }));
            else
                await take(api.POST('/api/v1/jobs/{job_id}/retry', { params }));
            done(what === 'retry' ? 'The job runs again.' : job.status === 'running' ? 'The job was asked to stop.' : 'Cancelled the job.');
            reload();
        }
        catch (error) {
            failed(what === 'retry' ? 'Not run again' : 'Not cancelled', error);
        }
        finally {
            setBusy(false);
        }
    };
    const waits = job.status === 'scheduled' || job.status === 'queued';
    const paused = pausedOf(useLanes().lanes).some(({ lane }) => lane === job.lane); // then the reason is the same
    const dead = job.status === 'failed' || job.status === 'killed';
    const another = (how) => pageOfAnotherJob(how, job.id, owner);
    return (_jsxs(SpaceBetween, { size: "l", children: [dialog, _jsx(BreadcrumbGroup, { items: [job.task_id === null ? { text: 'Jobs', href: `/jobs${ofOwner(owner)}` } : { text: task ?? 'Task', href: pageOfTask(job.task_id, owner) }, { text: job.id, href: '#' }], onFollow: (event) => {
                    event.preventDefault();
                    if (event.detail.href !== '#')
                        void navigate(event.detail.href);
                } }), _jsxs(Header, { variant: "h1", description: _jsx(OfWhom, {}), actions: _jsxs(SpaceBetween, { direction: "horizontal", size: "xs", children: [_jsx(CopyAs, { call: () => jobCall(asPosted(job, Date.now())) }), _jsx(Button, { onClick: () => void navigate(another('from')), children: "Duplicate" }), mayChange && !isFinal(job) && (_jsx(Button, { loading: busy, disabled: job.cancel_requested_at !== null, onClick: () => confirm({
                                title: 'Cancel this job?',
                                text: job.status === 'running' ? 'The job is running. It is asked to stop.' : 'The job does not start.',
                                yes: 'Cancel the job',
                                act: () => act('cancel'),
                            }), children: "Cancel job" })), dead && _jsx(Button, { onClick: () => void navigate(another('retry')), children: "Run again with changes" }), mayChange && dead && (_jsx(Button, { variant: "primary", loading: busy, onClick: () => void act('retry'), children: "Run again" }))] }), children: ["Job ", _jsx(CopyToClipboard, { variant: "inline", textToCopy: job.id, copyButtonAriaLabel: "Copy the id", copySuccessText: "Copied", copyErrorText: "Not copied" })] }), waits && _jsx(LaneAlert, { lane: job.lane }), !(waits && paused) && _jsx(Why, { job: job }), _jsx(Overview, { job: job }), _jsxs(ColumnLayout, { columns: 2, children: [_jsx(Container, { header: _jsx(Header, { variant: "h2", children: "Timeline" }), children: _jsx(Steps, { ariaLabel: "Timeline", steps: timeline(job).map((step) => ({
                                status: step.look,
                                header: step.what,
                                details: _jsxs(_Fragment, { children: [step.at !== null && _jsx(When, { at: step.at, exact: true }), step.note !== null && _jsx(Box, { color: "text-body-secondary", children: step.note })] }),
                            })) }) }), _jsxs(SpaceBetween, { size: "l", children: [_jsx(Container, { header: _jsx(Header, { variant: "h2", children: "Request" }), children: _jsx(Code, { label: "Request", text: write(job.payload, 2) }) }), _jsx(Answer, { job: job })] })] }), _jsx(Attempts, { job: job }), (job.task_id === null || job.notifications !== null) && (_jsx(Container, { header: _jsx(Header, { variant: "h2", children: "Notifications" }), children: job.notifications === null ? _jsx(Box, { color: "text-body-secondary", children: "No notifications." }) : _jsx(Told, { notifications: job.notifications }) }))] }));
}
/** The name of the task that it is a run of. */
function useTaskName(job) {
    const { owner } = useWhose();
    const nameOf = useTaskNames(job.task_id === null ? [] : [{ id: job.task_id, owner }]);
    return job.task_id === null ? undefined : nameOf(job.task_id, owner);
}
/** Why it did not run, or not well. */
function Why({ job }) {
    const { owner } = useWhose();
    const why = whyOf(job);
    if (why === null)
        return null;
    const type = job.status === 'failed' || job.status === 'killed' ? 'error' : 'info';
    const header = { skipped: 'Why it did not run', cancelled: 'Why it was cancelled', failed: 'Why it failed', killed: 'Why it was killed' }[job.status] ?? 'Note';
    return (_jsxs(Alert, { type: type, header: header, action: job.fingerprint === null ? undefined : _jsx(To, { href: `/dead-letters/${job.fingerprint}${ofOwner(owner)}`, children: "Similar failures" }), children: [_jsx(Reason, { text: why.error }), why.reason !== null && _jsx(Box, { color: "text-body-secondary", fontSize: "body-s", children: _jsx(Reason, { text: why.reason }) })] }));
}
function Overview({ job }) {
    const { owner } = useWhose();
    const task = useTaskName(job);
    const progress = job.progress;
    const begun = isFinal(job) || job.status === 'running';
    return (_jsx(Container, { header: _jsx(Header, { variant: "h2", children: "Overview" }), children: _jsxs(SpaceBetween, { size: "m", children: [_jsx(KeyValuePairs, { columns: 4, items: [
                        { label: 'Status', value: _jsx(JobStatus, { job: job }) },
                        { label: 'Scheduled', value: _jsx(When, { at: job.scheduled_at, exact: true }) },
                        begun ? { label: 'Started', value: _jsx(When, { at: job.started_at, exact: true }) } : { label: 'Due', value: _jsx(Ago, { at: job.due_at }) },
                        { label: 'Delay', value: delayInWords(begun ? job : { ...job, started_at: null }) },
                        { label: 'Duration', value: between(job.started_at, job.completed_at ?? job.failed_at ?? job.killed_at ?? job.cancelled_at) },
                        { label: 'Attempts', value: `${job.attempts.length} of ${job.max_attempts}` },
                        { label: 'Calls', value: _jsx(Words, { children: callsOf(job) }) },
                        { label: 'Type', value: job.target === null ? job.type : _jsxs(_Fragment, { children: [_jsx(To, { href: pageOfTarget(job.target), children: job.target }), " (", job.type, ")"] }) },
                        { label: 'Queue', value: job.lane },
                        { label: 'Task', value: job.task_id === null ? '–' : _jsx(To, { href: pageOfTask(job.task_id, owner), children: _jsx(Words, { children: task ?? job.task_id }) }) },
                        ...details(job),
                        ...(job.expires_at === null ? [] : [{ label: 'Expires', value: _jsx(When, { at: job.expires_at }) }]),
                        ...(job.lease_until === null ? [] : [{ label: 'Lease expires', value: _jsx(Ago, { at: job.lease_until }) }]),
                        ...(job.heartbeat_at === null ? [] : [{ label: 'Last heartbeat', value: _jsx(Ago, { at: job.heartbeat_at }) }]),
                        ...(job.redrives === 0 ? [] : [{ label: 'Run again', value: _jsxs(_Fragment, { children: [job.redrives, " \u00D7 ", _jsx(Ago, { at: job.redriven_at })] }) }]),
                    ] }), progress !== null && (_jsx(ProgressBar, { label: "Progress reported by the worker", value: (progress.fraction ?? 0) * 100, additionalInfo: progress.message ?? undefined, resultText: `${Math.round((progress.fraction ?? 0) * 100)} %`, status: isFinal(job) ? (job.status === 'succeeded' ? 'success' : 'error') : 'in-progress' }))] }) }));
}
function Answer({ job }) {
    const last = job.attempts.at(-1);
    const reported = job.callback !== null && job.response !== null; // then the output is its worker's, and not what the target answered
    const body = reported ? job.response?.body : (job.response?.body ?? job.output);
    return (_jsx(Container, { header: _jsx(Header, { variant: "h2", children: job.response === null ? 'Output' : `Response: ${job.response.status}` }), children: _jsxs(SpaceBetween, { size: "s", children: [job.response !== null && (_jsx(ExpandableSection, { headerText: `Headers (${Object.keys(job.response.headers).length})`, children: _jsx(Code, { label: "Response headers", text: Object.entries(job.response.headers).map(([name, value]) => `${name}: ${value}`).join('\n') }) })), body === null || body === undefined || body === '' ? _jsxs(Box, { color: "text-body-secondary", children: ["None", isFinal(job) ? '.' : ' yet.'] }) : _jsx(Code, { label: reported ? 'Answer' : 'Output', text: pretty(body) }), reported && job.output !== null && (_jsxs(_Fragment, { children: [_jsx(Box, { variant: "h3", children: "Output reported by the worker" }), _jsx(Code, { label: "Output", text: pretty(job.output) })] })), last !== undefined && body !== null && body !== '' && last.output_kept === 'whole' && _jsx(Whole, { job: job, number: last.number, what: "output" })] }) }));
}
function Attempts({ job }) {
    if (job.attempts.length === 0)
        return null;
    return (_jsx(Container, { header: _jsx(Header, { variant: "h2", description: "The last five attempts, latest first.", children: "Attempts and logs" }), children: _jsx(SpaceBetween, { size: "s", children: [...job.attempts].reverse().map((attempt, index) => (_jsx(ExpandableSection, { defaultExpanded: index === 0, headerText: `Attempt ${attempt.number}: ${attempt.outcome}${attempt.failure === null ? '' : ` (${attempt.failure.kind})`}`, children: _jsxs(SpaceBetween, { size: "s", children: [_jsx(KeyValuePairs, { columns: 4, items: [
                                { label: 'Claimed', value: _jsx(When, { at: attempt.picked_at, exact: true }) },
                                { label: 'Started', value: _jsx(When, { at: attempt.started_at, exact: true }) },
                                { label: 'Ended', value: _jsx(When, { at: attempt.ended_at, exact: true }) },
                                { label: 'Duration', value: between(attempt.started_at, attempt.ended_at) },
                            ] }), attempt.failure !== null && _jsxs(Alert, { type: "error", header: attempt.failure.kind, children: [_jsx(Words, { children: attempt.failure.message }), _jsx("div", { children: _jsx(DocsLink, { href: pageOfFailures(), children: "About failures of attempts" }) })] }), _jsx(Box, { variant: "h4", children: "Log" }), attempt.log ? _jsx(Code, { label: `Log of attempt ${attempt.number}`, text: attempt.log }) : _jsx(Box, { color: "text-body-secondary", children: "The attempt logged nothing." }), attempt.log && attempt.output_kept === 'whole' && _jsx(Whole, { job: job, number: attempt.number, what: "log" }), index > 0 && attempt.output !== null && _jsxs(_Fragment, { children: [_jsx(Box, { variant: "h4", children: "Output" }), _jsx(Code, { label: `Output of attempt ${attempt.number}`, text: pretty(attempt.output) })] })] }) }, attempt.number))) }) }));
}
/** All of it, fetched only when asked for: it may be a megabyte. */
function Whole({ job, number, what }) {
    const { owner } = useWhose();
    const [text, setText] = useState(null);
    const [busy, setBusy] = useState(false);
    const { failed } = useNotices();
    const load = async () => {
        setBusy(true);
        try {
            const params = { path: { job_id: job.id, number }, query: { owner } };
            const found = await take(what === 'output'
                ? api.GET('/api/v1/jobs/{job_id}/attempts/{number}/output', { params })
                : api.GET('/api/v1/jobs/{job_id}/attempts/{number}/log', { params }));
            setText(found.complete ? found.text : `${found.text}\n… (the rest was not stored)`);
        }
        catch (error) {
            failed(`The full ${what} is not available`, apiError(error));
        }
        finally {
            setBusy(false);
        }
    };
    if (text !== null)
        return _jsx(Code, { label: `Full ${what}`, text: text });
    return _jsxs(Button, { variant: "inline-link", loading: busy, onClick: () => void load(), children: ["Show the full ", what] });
}
