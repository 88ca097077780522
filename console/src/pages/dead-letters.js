import { jsxs as _jsxs, jsx as _jsx } from "react/jsx-runtime";
import Alert from '@cloudscape-design/components/alert';
import Box from '@cloudscape-design/components/box';
import Button from '@cloudscape-design/components/button';
import Header from '@cloudscape-design/components/header';
import SpaceBetween from '@cloudscape-design/components/space-between';
import Table from '@cloudscape-design/components/table';
import { useState } from 'react';
import { api, take } from '../api/client';
import { useLive } from '../live';
import { pageOfDocs } from '../docs';
import { DocsLink } from '../parts/docs-link';
import { useCalls } from '../parts/job-calls';
import { ofOwner, pageOfJob } from '../parts/links';
import { Empty, Failed, NotForRole, Stale, To, useTitle, Words } from '../parts/parts';
import { Progress } from '../parts/progress';
import { useTaskNames } from '../parts/task-names';
import { Ago } from '../parts/time';
import { ofEverybody, useWhose, WhoseChoice } from '../parts/whose';
import { errorInWords, termOf } from '../words';
import { RedriveDialog } from './redrive';
const OFTEN = 5_000;
const SELDOM = 15_000; // everybody's: one call for each user
const of = (owner) => take(api.GET('/api/v1/dead-letters', { params: { query: { owner } } }));
/** Everybody's, the most frequent first. */
async function all() {
    let [scanned, complete] = [0, true];
    const { found, complete: everyone } = await ofEverybody(async (owner) => {
        const one = await of(owner);
        scanned += one.scanned;
        complete &&= one.complete;
        return one.items;
    });
    return { items: found.sort((one, other) => other.count - one.count), scanned, complete: complete && everyone };
}
/** The first task by its name, and how many others there are. */
function namesOf(ids, nameOf) {
    const first = ids[0];
    if (first === undefined)
        return '–';
    return `${nameOf(first) ?? first}${ids.length > 1 ? ` and ${ids.length - 1} more` : ''}`;
}
/** A way to the refused messages, in a stage that has intake queues. */
function IntakeLink({ owner }) {
    const live = useLive(`intake of ${owner ?? ''}`, () => take(api.GET('/api/v1/intake/dead-letters', { params: { query: { owner, limit: 1 } } })), 0);
    if (live.data === null)
        return null; // 404: the stage has none
    return _jsxs(To, { href: `/dead-letters/intake${ofOwner(owner)}`, children: ["Intake", live.data.items.length > 0 ? ': there are refused messages' : ''] });
}
export default function DeadLetters() {
    useTitle('Failed jobs');
    const { owner, everybody, mayChange } = useWhose();
    const live = useLive(`groups ${everybody ? 'all' : (owner ?? '')}`, () => (everybody ? all() : of(owner)), everybody ? SELDOM : OFTEN);
    const [chosen, setChosen] = useState(null);
    const ownerOf = (group) => group.owner?.id ?? owner;
    const groups = live.data?.items ?? [];
    const callsOf = useCalls(groups.filter((group) => !group.calls).map((group) => ({ id: group.job_id, owner: ownerOf(group) })));
    const nameOf = useTaskNames(groups.flatMap((group) => group.task_ids.slice(0, 1).map((id) => ({ id, owner: ownerOf(group) }))));
    const count = groups.reduce((sum, group) => sum + group.count, 0);
    if (live.error?.status === 403)
        return _jsx(NotForRole, { text: live.error.message });
    return (_jsxs(SpaceBetween, { size: "m", children: [_jsx(Progress, { onEnd: live.reload }), _jsx(RedriveDialog, { filter: chosen === null ? null : { fingerprint: chosen.fingerprint }, expected: chosen?.count ?? 0, owner: chosen?.owner, onClose: () => setChosen(null) }), live.data?.complete === false && _jsxs(Alert, { type: "info", children: ["There are more failed jobs. This page counts the latest ", live.data.scanned, "."] }), _jsx(Table, { variant: "full-page", stickyHeader: true, contentDensity: "compact", wrapLines: true, items: groups, loading: live.loading, loadingText: "Loading failed jobs", ariaLabels: { tableLabel: 'Failed jobs', selectionGroupLabel: '' }, header: _jsxs(SpaceBetween, { size: "xs", children: [_jsx(Header, { variant: "awsui-h1-sticky", counter: live.data === null ? undefined : `(${count})`, description: `Jobs that failed or were killed, by error. Errors that differ only in ids, numbers or times are grouped. The API calls them ${termOf('failed job')}s.`, actions: _jsxs(SpaceBetween, { direction: "horizontal", size: "xs", children: [_jsx(Button, { iconName: "refresh", ariaLabel: "Refresh", onClick: live.reload }), mayChange && !everybody && (_jsx(Button, { disabled: count === 0, onClick: () => setChosen({ count, owner }), children: "Run all again" }))] }), children: "Failed jobs" }), _jsx(Stale, { live: live })] }), filter: _jsx("div", { className: "filters", children: _jsxs(SpaceBetween, { direction: "horizontal", size: "m", alignItems: "center", children: [_jsx(WhoseChoice, {}), _jsx(IntakeLink, { owner: owner })] }) }), empty: live.error !== null && live.data === null ? _jsx(Failed, { error: live.error, what: "failed jobs", retry: live.reload }) : (_jsxs(Empty, { title: "No failed jobs", children: [_jsx(Box, { variant: "p", color: "inherit", children: "A job is listed here when its last attempt has failed or was killed. You correct the cause, and run the job again." }), _jsx(DocsLink, { href: pageOfDocs('guides/redrive'), children: "Run failed jobs again" })] })), columnDefinitions: [
                    ...(everybody ? [{ id: 'owner', header: 'Owner', cell: (group) => group.owner?.username ?? '–' }] : []),
                    {
                        id: 'error',
                        header: 'Error',
                        isRowHeader: true,
                        cell: (group) => {
                            const text = group.error === null ? '(running again)' : errorInWords(group.error);
                            return group.fingerprint === null ? _jsx(Words, { children: text }) : _jsx(To, { href: `/dead-letters/${group.fingerprint}${ofOwner(ownerOf(group))}`, children: _jsx(Words, { children: text }) });
                        },
                        minWidth: 200,
                    },
                    { id: 'count', header: 'Jobs', cell: (group) => group.count },
                    { id: 'calls', header: 'Calls', cell: (group) => _jsx(Words, { children: group.calls ?? callsOf(group.job_id, ownerOf(group)) ?? group.types.join(', ') }), minWidth: 150 },
                    { id: 'tasks', header: 'Tasks', cell: (group) => _jsx(Words, { children: namesOf(group.task_ids, (id) => nameOf(id, ownerOf(group))) }), minWidth: 120 },
                    { id: 'last', header: 'Last', cell: (group) => _jsx(Ago, { at: group.last_at }) },
                    { id: 'first', header: 'First', cell: (group) => _jsx(Ago, { at: group.first_at }) },
                    { id: 'sample', header: 'Latest job', cell: (group) => _jsx(To, { href: pageOfJob(group.job_id, ownerOf(group)), children: _jsx(Words, { children: group.job_id }) }), minWidth: 150 },
                    {
                        id: 'redrive',
                        header: 'Action',
                        minWidth: 110,
                        cell: (group) => group.fingerprint === null || !mayChange ? null : (_jsx(Button, { variant: "inline-link", ariaLabel: `Run again: ${group.count} jobs`, onClick: () => setChosen({ fingerprint: group.fingerprint ?? undefined, count: group.count, owner: ownerOf(group) }), children: "Run again" })),
                    },
                ] })] }));
}
