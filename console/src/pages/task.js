import { jsx as _jsx, Fragment as _Fragment, jsxs as _jsxs } from "react/jsx-runtime";
import Box from '@cloudscape-design/components/box';
import BreadcrumbGroup from '@cloudscape-design/components/breadcrumb-group';
import Button from '@cloudscape-design/components/button';
import ButtonDropdown from '@cloudscape-design/components/button-dropdown';
import Container from '@cloudscape-design/components/container';
import CopyToClipboard from '@cloudscape-design/components/copy-to-clipboard';
import Header from '@cloudscape-design/components/header';
import KeyValuePairs from '@cloudscape-design/components/key-value-pairs';
import LineChart from '@cloudscape-design/components/line-chart';
import Pagination from '@cloudscape-design/components/pagination';
import SegmentedControl from '@cloudscape-design/components/segmented-control';
import SpaceBetween from '@cloudscape-design/components/space-between';
import StatusIndicator from '@cloudscape-design/components/status-indicator';
import { useState } from 'react';
import { useNavigate, useParams } from 'react-router';
import { api, take } from '../api/client';
import { callsOfTask } from '../calls';
import { taskCall } from '../code';
import { write } from '../exact';
import { empty, fromTask, toRequest } from '../form/draft';
import { details } from '../form/fields';
import { labelOf } from '../form/labels';
import { Runs } from '../form/preview';
import { skippedMonths } from '../form/repeats';
import { pageOfTarget } from '../form/target';
import { COLOURS } from '../colours';
import { useLive } from '../live';
import { endedAt, JobTable } from '../parts/job-table';
import { CopyAs } from '../parts/copy-as';
import { useNotices } from '../parts/notices';
import { usePages } from '../parts/pages';
import { ofOwner, pageOfJob } from '../parts/links';
import { PAUSE_TASKS, ReasonDialog } from '../parts/reason-dialog';
import { Code, Empty, Loaded, Stale, To, useConfirm, useTitle, Words } from '../parts/parts';
import { TaskStatus } from '../parts/status';
import { Ago, clock, When } from '../parts/time';
import { Told } from '../parts/told';
import { TrailTable } from '../parts/trail';
import { OfWhom, useWhose } from '../parts/whose';
import { misfireInWords, overlapInWords, runsInWords, scheduleInWords, span } from '../words';
import { change } from './tasks';
const LIMIT = 25;
const CHARTED = 100;
const SELDOM = 30_000;
export default function TaskPage() {
    const { id = '' } = useParams();
    const { owner } = useWhose();
    const live = useLive(`${id} ${owner ?? ''}`, () => take(api.GET('/api/v1/tasks/{task_id}', { params: { path: { task_id: id }, query: { owner } } })));
    useTitle(live.data?.name ?? 'Task');
    return (_jsx(Loaded, { live: live, what: "task", children: (task) => _jsx(Shown, { task: task, reload: live.reload }) }));
}
function Shown({ task, reload }) {
    const navigate = useNavigate();
    const { owner, mayChange } = useWhose();
    const { done, failed } = useNotices();
    const [dialog, confirm] = useConfirm();
    const [pausing, setPausing] = useState(false);
    const act = async (action, said) => {
        try {
            const result = await change(action, task.id, owner);
            if (action === 'run')
                void navigate(pageOfJob(result.id, owner));
            done(said);
            if (action === 'delete')
                void navigate(`/tasks${ofOwner(owner)}`);
            else
                reload();
        }
        catch (error) {
            failed(`“${task.name}” was not changed`, error);
        }
    };
    const pause = async (reason) => {
        await change('pause', task.id, owner, reason);
        done(`Paused “${task.name}”.`);
        reload();
    };
    const more = (action) => {
        if (action === 'clone')
            void navigate(`/tasks/new?clone=${task.id}${owner === undefined ? '' : `&owner=${owner}`}`);
        else
            confirm({
                title: `Delete “${task.name}”?`,
                text: 'Its future runs are deleted too. Past runs stay in the history.',
                yes: 'Delete',
                act: () => act('delete', `Deleted “${task.name}”.`),
            });
    };
    const paused = task.status === 'inactive';
    return (_jsxs(SpaceBetween, { size: "l", children: [dialog, pausing && _jsx(ReasonDialog, { ...PAUSE_TASKS, title: `Pause “${task.name}”?`, act: pause, onClose: () => setPausing(false) }), _jsx(BreadcrumbGroup, { items: [{ text: 'Tasks', href: `/tasks${ofOwner(owner)}` }, { text: task.name, href: '#' }], onFollow: (event) => {
                    event.preventDefault();
                    if (event.detail.href !== '#')
                        void navigate(event.detail.href);
                } }), _jsx(Header, { variant: "h1", description: _jsxs(_Fragment, { children: [_jsx(OfWhom, {}), task.description !== null && _jsx(Words, { children: task.description })] }), actions: _jsxs(SpaceBetween, { direction: "horizontal", size: "xs", children: [mayChange && _jsx(Button, { onClick: () => void act('run', `Started “${task.name}”.`), children: "Run now" }), mayChange &&
                            task.status !== 'ended' &&
                            (paused ? (_jsx(Button, { onClick: () => void act('resume', `Resumed “${task.name}”.`), children: "Resume" })) : (_jsx(Button, { onClick: () => setPausing(true), children: "Pause" }))), _jsx(CopyAs, { call: () => taskCall(toRequest(fromTask(task, empty('UTC')))) }), _jsx(ButtonDropdown, { items: [{ id: 'clone', text: 'Clone' }, ...(mayChange ? [{ id: 'delete', text: 'Delete' }] : [])], onItemClick: ({ detail }) => more(detail.id), children: "More" }), mayChange && (_jsx(Button, { variant: "primary", onClick: () => void navigate(`/tasks/${task.id}/edit${ofOwner(owner)}`), children: "Edit" }))] }), children: task.name }), _jsx(Overview, { task: task }), _jsx(Container, { header: _jsx(Header, { variant: "h2", children: "Next runs" }), children: _jsx(Runs, { runs: task.next_runs, empty: paused ? 'None: the task is paused.' : 'None.' }) }), _jsx(History, { task: task }), _jsx(Container, { header: _jsx(Header, { variant: "h2", children: "Payload" }), children: _jsx(Code, { label: "Payload", text: write(task.payload, 2) }) }), _jsx(Container, { header: _jsx(Header, { variant: "h2", children: "Notifications" }), children: task.notifications === null ? _jsx(Box, { color: "text-body-secondary", children: "No notifications." }) : _jsx(Told, { notifications: task.notifications }) }), _jsx(Changes, { task: task })] }));
}
/** A rule in words, with the field of the API and its value. */
function Rule({ words, term }) {
    return _jsxs(_Fragment, { children: [words, _jsx(Box, { variant: "p", color: "text-body-secondary", children: term })] });
}
export function Overview({ task }) {
    const schedule = task.schedule;
    return (_jsx(Container, { header: _jsx(Header, { variant: "h2", children: "Overview" }), children: _jsx(KeyValuePairs, { columns: 4, items: [
                {
                    label: 'Status',
                    value: (_jsxs(_Fragment, { children: [_jsx(TaskStatus, { status: task.status }), task.inactive_at !== null && _jsxs(Box, { color: "text-body-secondary", children: [_jsx(Ago, { at: task.inactive_at }), task.inactive_reason === null ? '' : _jsxs(Words, { children: [": ", task.inactive_reason] })] })] })),
                },
                { label: 'Calls', value: _jsx(Words, { children: callsOfTask(task) }) },
                { label: 'Schedule', value: _jsxs(_Fragment, { children: [scheduleInWords(schedule), schedule?.cron ? _jsx(Box, { variant: "p", color: "text-body-secondary", children: schedule.cron }) : null, schedule?.cron && skippedMonths(schedule.cron) !== null ? _jsx(StatusIndicator, { type: "warning", children: skippedMonths(schedule.cron) }) : null, schedule?.at ? _jsx(Box, { variant: "p", color: "text-body-secondary", children: _jsx(When, { at: schedule.at }) }) : null] }) },
                { label: 'Time zone', value: schedule === null ? '–' : (schedule.time_zone ?? 'UTC') },
                { label: 'Type', value: task.target === null ? task.type : _jsxs(_Fragment, { children: [_jsx(To, { href: pageOfTarget(task.target), children: task.target }), " (", task.type, ")"] }) },
                { label: 'Max attempts', value: String(task.max_attempts) },
                { label: labelOf('overlap'), value: _jsx(Rule, { words: overlapInWords(task.overlap), term: `overlap: ${task.overlap}` }) },
                { label: labelOf('misfire'), value: task.misfire === null ? '–' : _jsx(Rule, { words: misfireInWords(task.misfire), term: `misfire: ${task.misfire}` }) },
                ...details(task),
                { label: 'Changed', value: _jsxs(_Fragment, { children: [_jsx(When, { at: task.updated_at }), " ", _jsxs(Box, { variant: "small", children: ["version ", task.generation] })] }) },
                { label: 'Id', value: _jsx(CopyToClipboard, { variant: "inline", textToCopy: task.id, copyButtonAriaLabel: "Copy the id", copySuccessText: "Copied", copyErrorText: "Not copied" }) },
            ] }) }));
}
/** Who changed it, and when. */
function Changes({ task }) {
    const { owner } = useWhose();
    const pages = usePages(`changes ${task.id}`);
    const live = useLive(`changes ${task.id} ${task.generation} ${pages.cursor ?? ''}`, () => take(api.GET('/api/v1/me/audit', { params: { query: { object: task.id, limit: 10, cursor: pages.cursor, owner } } })), SELDOM);
    return (_jsx(TrailTable, { live: live, pages: pages, columns: ['at', 'who', 'action', 'changes', 'outcome'], header: _jsx(Header, { variant: "h2", description: "In the last 30 days", children: "Audit trail" }) }));
}
function History({ task }) {
    const { owner } = useWhose();
    const [view, setView] = useState('all');
    const pages = usePages(`${task.id}${view}`);
    const live = useLive(`${task.id}${view}${pages.cursor ?? ''}`, () => take(api.GET('/api/v1/tasks/{task_id}/jobs', {
        params: {
            path: { task_id: task.id },
            query: { limit: LIMIT, cursor: pages.cursor, upcoming: view === 'ahead' || undefined, status: view === 'failed' ? 'failed' : undefined, owner },
        },
    })), 2_000);
    return (_jsxs(SpaceBetween, { size: "l", children: [_jsx(Charts, { task: task }), _jsx(JobTable, { jobs: live.data?.items ?? [], loading: live.loading, loadingText: "Loading runs", columns: view === 'ahead' ? ['status', 'scheduled', 'job', 'reason'] : ['status', 'scheduled', 'job', 'started', 'delay', 'duration', 'attempts', 'reason'], header: _jsxs(SpaceBetween, { size: "xs", children: [_jsx(Header, { variant: "h2", actions: _jsx(SegmentedControl, { label: "Which runs", selectedId: view, options: [{ id: 'all', text: 'History' }, { id: 'failed', text: 'Failures' }, { id: 'ahead', text: 'Upcoming' }], onChange: ({ detail }) => setView(detail.selectedId) }), children: "Runs" }), _jsx(Stale, { live: live })] }), pagination: _jsx(Pagination, { ...pages.bar(live.data?.cursor) }), empty: _jsx(Empty, { title: live.error?.message ?? (view === 'failed' ? 'No failures' : 'No runs yet') }) })] }));
}
/** Delay and duration of the last runs. */
function Charts({ task }) {
    const { owner } = useWhose();
    const live = useLive(`chart ${task.id}`, () => take(api.GET('/api/v1/tasks/{task_id}/jobs', { params: { path: { task_id: task.id }, query: { limit: CHARTED, owner } } })), 10_000);
    return _jsx(LastRuns, { live: live });
}
/** The chart; of a single run the figures, since a point alone is not seen. */
export function LastRuns({ live }) {
    const started = (live.data?.items ?? []).filter((job) => job.started_at !== null).reverse();
    const delays = started.map((job) => ({ x: new Date(job.scheduled_at), y: job.start_delay_ms ?? 0 }));
    const durations = started.flatMap((job) => {
        const end = endedAt(job);
        return end === null || job.started_at === null ? [] : [{ x: new Date(job.scheduled_at), y: new Date(end).getTime() - new Date(job.started_at).getTime() }];
    });
    const domain = started.length < 2 ? undefined : [new Date(started[0]?.scheduled_at ?? 0), new Date(started.at(-1)?.scheduled_at ?? 0)];
    return (_jsx(Container, { header: _jsx(Header, { variant: "h2", description: runsInWords(started) ?? undefined, children: "Delay and duration" }), children: started.length === 1 ? _jsx(KeyValuePairs, { columns: 2, items: [{ label: 'Delay', value: span(delays[0]?.y ?? 0) }, { label: 'Duration', value: durations[0] === undefined ? '–' : span(durations[0].y) }] }) : _jsx(LineChart, { height: 200, hideFilter: true, xScaleType: "time", xDomain: domain, xTitle: "Scheduled", yTitle: "Time", ariaLabel: "Delay and duration of the last runs", series: started.length === 0 ? [] : [
                { title: 'Delay', type: 'line', data: delays, valueFormatter: span, color: COLOURS.high },
                { title: 'Duration', type: 'line', data: durations, valueFormatter: span, color: COLOURS.measure },
            ], i18nStrings: { yTickFormatter: span, xTickFormatter: clock }, statusType: live.loading ? 'loading' : live.error !== null && live.data === null ? 'error' : 'finished', loadingText: "Loading", errorText: live.error?.message, empty: _jsx(Empty, { title: "No runs yet" }), noMatch: _jsx(Empty, { title: "No runs yet" }) }) }));
}
