import { jsx as _jsx, jsxs as _jsxs, Fragment as _Fragment } from "react/jsx-runtime";
import Alert, {} from '@cloudscape-design/components/alert';
import Box from '@cloudscape-design/components/box';
import Button from '@cloudscape-design/components/button';
import Container from '@cloudscape-design/components/container';
import CopyToClipboard from '@cloudscape-design/components/copy-to-clipboard';
import Header from '@cloudscape-design/components/header';
import KeyValuePairs from '@cloudscape-design/components/key-value-pairs';
import SpaceBetween from '@cloudscape-design/components/space-between';
import StatusIndicator from '@cloudscape-design/components/status-indicator';
import Table, {} from '@cloudscape-design/components/table';
import { useState } from 'react';
import { mend, readStatus } from '../api/status';
import { idOf, useRole, useSession } from '../api/session';
import { useLive } from '../live';
import { useLanes } from '../parts/lanes';
import { ofOwner, pageOfTask } from '../parts/links';
import { useNotices } from '../parts/notices';
import { Empty, Loaded, Reason, To, useConfirm, useTitle, Words } from '../parts/parts';
import { ScopeChoice, useScope } from '../parts/scope';
import { Ago } from '../parts/time';
import { bySeverity, jobs, mayMend, pageOfProblem, questionOf, timesOf } from '../problems';
import { plain, span } from '../words';
const OFTEN = 5_000;
const LOOKS = { critical: 'error', warning: 'warning', info: 'info' };
/** What is wrong now, each with what mends it; and how the lanes, the owners and the targets are. */
export default function StatusPage() {
    useTitle('What is wrong now');
    const [scope, setScope] = useScope();
    const live = useLive(`status ${scope}`, () => readStatus(scope), OFTEN);
    const lanes = useLanes();
    const after = () => {
        live.reload();
        lanes.reload();
    };
    return (_jsxs(SpaceBetween, { size: "l", children: [_jsx(Header, { variant: "h1", description: scope === 'all' ? 'The whole stage.' : 'Your jobs and tasks.', actions: _jsxs(SpaceBetween, { direction: "horizontal", size: "xs", children: [_jsx(ScopeChoice, { scope: scope, onChange: setScope }), _jsx(Button, { iconName: "refresh", ariaLabel: "Refresh", onClick: live.reload })] }), children: "What is wrong now" }), _jsx(Loaded, { live: live, what: "status", children: (status) => _jsx(Shown, { status: status, after: after }) })] }));
}
function Shown({ status, after }) {
    return (_jsxs(SpaceBetween, { size: "l", children: [status.problems.length === 0 ? (_jsx(Alert, { type: "success", header: "Nothing is wrong" })) : (_jsxs(SpaceBetween, { size: "s", children: [bySeverity(status.problems).map((problem) => (_jsx(One, { problem: problem, after: after }, [problem.kind, problem.lane, problem.circuit, problem.owner, problem.task, problem.fingerprint].join(' ')))), status.more_problems && _jsx(Box, { color: "text-body-secondary", children: "There are more problems: these are the most severe." })] })), _jsx(Overview, { status: status }), _jsx(Lanes, { lanes: status.lanes }), status.failures.length > 0 && _jsx(Failed, { failures: status.failures }), status.waiting.length > 0 && _jsx(Owners, { waiting: status.waiting }), status.skipping.length > 0 && _jsx(Skips, { skipping: status.skipping })] }));
}
function One({ problem, after }) {
    const role = useRole();
    const me = useMe();
    const [dialog, confirm] = useConfirm();
    const [busy, setBusy] = useState(false);
    const { done, failed } = useNotices();
    const { remedy } = problem;
    const page = pageOfProblem(problem, me);
    const act = async () => {
        if (remedy === null)
            return;
        setBusy(true);
        try {
            await mend(remedy);
            done(`${remedy.label}: done.`);
            after();
        }
        catch (error) {
            failed('Nothing was changed', error);
        }
        finally {
            setBusy(false);
        }
    };
    const press = () => {
        const question = questionOf(problem);
        if (question === null)
            void act();
        else
            confirm({ title: `${remedy?.label ?? ''}?`, text: question, yes: remedy?.label ?? '', act });
    };
    return (_jsxs(_Fragment, { children: [dialog, _jsx(Alert, { type: LOOKS[problem.severity], header: _jsx(Reason, { text: plain(problem.title) }), action: remedy !== null && mayMend(problem, role, me) ? _jsx(Button, { loading: busy, ariaLabel: `${remedy.label}: ${plain(problem.title)}`, onClick: press, children: remedy.label }) : undefined, children: _jsxs(SpaceBetween, { size: "xxs", children: [_jsx(Background, { problem: problem }), (page !== null || remedy !== null) && (_jsxs(SpaceBetween, { direction: "horizontal", size: "s", children: [page !== null && _jsx(To, { href: page.href, children: page.text }), remedy !== null && _jsx(Words, { children: _jsx(CopyToClipboard, { variant: "inline", textToCopy: remedy.command, copyButtonAriaLabel: "Copy the command", copySuccessText: "Copied", copyErrorText: "Not copied" }) })] }))] }) })] }));
}
/** Since when, by whom and why. */
function Background({ problem }) {
    const { kind, by, by_name, owner, owner_name, reason } = problem;
    const paused = kind === 'lane_paused' || kind === 'task_paused';
    const parts = [
        ...timesOf(problem).map(({ label, at }) => _jsxs(_Fragment, { children: [label, " ", _jsx(Ago, { at: at })] })),
        ...(by === null ? [] : [_jsxs(_Fragment, { children: ["by ", by_name ?? by] })]),
        ...(owner === null ? [] : [_jsxs(_Fragment, { children: ["owner ", owner_name ?? owner] })]),
        ...(reason !== null && kind !== 'failures' ? [_jsxs(_Fragment, { children: ["reason: ", _jsx(Reason, { text: reason })] })] : paused ? [_jsx(_Fragment, { children: "no reason was given" })] : []),
    ];
    return parts.length === 0 ? null : _jsx("div", { children: parts.map((part, at) => _jsxs("span", { children: [at > 0 && ' · ', part] }, at)) });
}
function Overview({ status: { scheduler, late } }) {
    return (_jsx(Container, { header: _jsx(Header, { variant: "h2", children: "Now" }), children: _jsx(KeyValuePairs, { columns: 4, items: [
                { label: 'Late now', value: late.count === 0 ? 'No jobs' : jobs(late.count, late.at_least) },
                { label: 'Longest delay', value: late.count === 0 ? '–' : span(late.longest_seconds * 1_000) },
                ...(scheduler === null
                    ? []
                    : [
                        { label: 'Scheduler behind by', value: span(scheduler.lag_seconds * 1_000) },
                        { label: 'Oldest open minute', value: scheduler.oldest_open_minute === null ? '–' : _jsx(Ago, { at: scheduler.oldest_open_minute }) },
                    ]),
            ] }) }));
}
function Lanes({ lanes }) {
    return (_jsx(Rows, { title: "Queues", description: "Waiting: jobs that are due, whether the queue is paused or not.", items: lanes, id: "lane", columns: [
            { id: 'lane', header: 'Queue', cell: (lane) => lane.lane, isRowHeader: true },
            { id: 'state', header: 'State', cell: (lane) => _jsx(StatusIndicator, { type: lane.paused_at === null ? 'success' : 'stopped', children: lane.paused_at === null ? 'Running' : 'Paused' }) },
            { id: 'waiting', header: 'Waiting', cell: (lane) => jobs(lane.waiting, lane.at_least) },
            { id: 'since', header: 'Paused', cell: (lane) => _jsx(Ago, { at: lane.paused_at }) },
            { id: 'by', header: 'By', cell: (lane) => (lane.paused_at === null ? '–' : (lane.paused_by_name ?? lane.paused_by ?? '–')) },
            { id: 'reason', header: 'Reason', cell: (lane) => _jsx(Words, { children: (lane.paused_at === null ? null : lane.reason) ?? '–' }) },
        ] }));
}
function Failed({ failures }) {
    const me = useMe();
    return (_jsx(Rows, { title: "Failures of the last hour", items: failures, id: (each) => `${each.owner} ${each.fingerprint} ${each.what}`, columns: [
            { id: 'what', header: 'What', cell: (each) => _jsx(To, { href: `/dead-letters${each.fingerprint === null ? '' : `/${each.fingerprint}`}${ofOwner(each.owner === me ? undefined : each.owner)}`, children: _jsx(Words, { children: each.what }) }), isRowHeader: true },
            { id: 'count', header: 'Jobs', cell: (each) => each.count.toLocaleString('en') },
            { id: 'error', header: 'Error', cell: (each) => _jsx(Reason, { text: each.error }) },
            { id: 'owner', header: 'Owner', cell: (each) => each.owner_name ?? each.owner },
            { id: 'last', header: 'Last', cell: (each) => _jsx(Ago, { at: each.last_at }) },
        ] }));
}
function Owners({ waiting }) {
    const me = useMe();
    return (_jsx(Rows, { title: "Waiting, by owner", description: "Jobs that are due and wait, most first.", items: waiting, id: "owner", columns: [
            { id: 'owner', header: 'Owner', cell: (each) => _jsx(To, { href: `/jobs${ofOwner(each.owner === me ? undefined : each.owner)}`, children: _jsx(Words, { children: each.owner_name ?? each.owner }) }), isRowHeader: true },
            { id: 'count', header: 'Jobs', cell: (each) => each.count.toLocaleString('en') },
        ] }));
}
function Skips({ skipping }) {
    const me = useMe();
    return (_jsx(Rows, { title: "Tasks that skip runs", items: skipping, id: "task", columns: [
            { id: 'task', header: 'Task', cell: (each) => _jsx(To, { href: pageOfTask(each.task, each.owner === me ? undefined : each.owner), children: _jsx(Words, { children: each.task_name }) }), isRowHeader: true },
            { id: 'skipped', header: 'Skipped', cell: (each) => `${each.skipped} of ${each.of}` },
            { id: 'reason', header: 'Reason', cell: (each) => _jsx(Reason, { text: each.reason }) },
            { id: 'owner', header: 'Owner', cell: (each) => each.owner_name ?? each.owner },
        ] }));
}
/** The viewer's id. */
function useMe() {
    const session = useSession();
    return session === null ? '' : idOf(session.token);
}
function Rows({ title, description, items, id, columns }) {
    return (_jsx(Table, { contentDensity: "compact", wrapLines: true, items: items, trackBy: id, ariaLabels: { tableLabel: title, selectionGroupLabel: '' }, header: _jsx(Header, { variant: "h2", description: description, children: title }), empty: _jsx(Empty, { title: "None" }), columnDefinitions: columns }));
}
