import { jsx as _jsx, jsxs as _jsxs, Fragment as _Fragment } from "react/jsx-runtime";
import Button from '@cloudscape-design/components/button';
import Container from '@cloudscape-design/components/container';
import Header from '@cloudscape-design/components/header';
import KeyValuePairs from '@cloudscape-design/components/key-value-pairs';
import SpaceBetween from '@cloudscape-design/components/space-between';
import StatusIndicator from '@cloudscape-design/components/status-indicator';
import Table from '@cloudscape-design/components/table';
import { useState } from 'react';
import { api, take } from '../api/client';
import { useRole } from '../api/session';
import { GOES_ON } from '../colours';
import { useLive } from '../live';
import { useNotices } from '../parts/notices';
import { useLanes } from '../parts/lanes';
import { Empty, Loaded, To, useTitle, Words } from '../parts/parts';
import { ReasonDialog } from '../parts/reason-dialog';
import { Ago, When } from '../parts/time';
import { useUsers } from '../parts/whose';
import { healthOf, jobs } from '../problems';
import { span } from '../words';
/** For operators: how far behind the scheduler is, its lanes, and the breakers that are not closed. */
export default function System() {
    useTitle('System');
    const live = useLive('system', async () => {
        const [health, system, breakers] = await Promise.all([take(api.GET('/api/v1/health')), take(api.GET('/api/v1/system')), take(api.GET('/api/v1/system/breakers'))]);
        return { health, lanes: system.lanes, breakers: breakers.items };
    });
    const { done, failed } = useNotices();
    const administers = useRole() === 'administrator';
    const users = useUsers();
    const now = useLanes();
    const here = ({ lane }) => now.lanes.find((each) => each.lane === lane);
    const [asking, ask] = useState(null);
    const changed = (text) => {
        done(text);
        live.reload();
        now.reload();
    };
    const resume = async (lane) => {
        try {
            await take(api.POST('/api/v1/system/resume', { body: lane === undefined ? { all: true } : { all: false, lane } }));
            changed(`Resumed ${lane ?? 'all queues'}.`);
        }
        catch (error) {
            failed('Nothing was changed', error);
        }
    };
    const pause = (lane) => ask({
        title: lane === undefined ? 'Pause all queues?' : `Pause the queue ${lane}?`,
        text: 'New jobs are accepted and wait. Running jobs continue. After a resume the waiting jobs start, the oldest first.',
        yes: 'Pause',
        shown: 'Shown on every page that the pause concerns',
        act: async (reason) => {
            await take(api.POST('/api/v1/system/pause', { body: { ...(lane === undefined ? { all: true } : { all: false, lane }), reason } }));
            changed(`Paused ${lane ?? 'all queues'}.`);
        },
    });
    const close = (breaker) => ask({
        title: `Close the breaker of ${breaker.circuit}?`,
        text: 'Its waiting jobs start within a second. If the target still fails, five more failures open the breaker again.',
        yes: 'Close the breaker',
        shown: 'Stored in the audit trail',
        act: async (reason) => {
            const body = { circuit: breaker.circuit, owner: breaker.owner ?? undefined, reason };
            await take(api.POST('/api/v1/system/breakers/close', { body }));
            changed(`Closed the breaker of ${breaker.circuit}.`);
        },
    });
    return (_jsx(Loaded, { live: live, what: "system state", children: ({ health, lanes, breakers }) => (_jsxs(SpaceBetween, { size: "l", children: [asking !== null && _jsx(ReasonDialog, { ...asking, onClose: () => ask(null) }), _jsx(Header, { variant: "h1", children: "System" }), _jsx(Health, { lag: health.lag_seconds ?? 0, oldest: health.oldest_open_minute ?? null, now: now }), _jsx(Table, { items: lanes, trackBy: "lane", wrapLines: true, ariaLabels: { tableLabel: 'Queues', selectionGroupLabel: '' }, header: _jsx(Header, { variant: "h2", actions: administers &&
                            _jsxs(SpaceBetween, { direction: "horizontal", size: "xs", children: [_jsx(Button, { onClick: () => void resume(), children: "Resume all" }), _jsx(Button, { onClick: () => pause(), children: "Pause all" })] }), children: "Queues" }), columnDefinitions: [
                        { id: 'lane', header: 'Queue', cell: (lane) => lane.lane, isRowHeader: true },
                        { id: 'state', header: 'State', cell: (lane) => _jsx(StatusIndicator, { type: lane.paused ? 'stopped' : 'success', children: lane.paused ? 'Paused' : 'Running' }) },
                        { id: 'since', header: 'Since', cell: (lane) => _jsx(Ago, { at: lane.paused ? lane.paused_at : lane.resumed_at }) },
                        { id: 'by', header: 'By', cell: (lane) => { const found = here(lane); return found?.paused_by_name ?? found?.paused_by ?? '–'; } },
                        { id: 'waiting', header: 'Waiting', cell: (lane) => { const found = here(lane); return found === undefined ? '–' : jobs(found.waiting, found.at_least); } },
                        { id: 'reason', header: 'Reason', cell: (lane) => _jsx(Words, { children: lane.reason ?? '–' }) },
                        ...(administers
                            ? [
                                {
                                    id: 'action',
                                    header: 'Action',
                                    cell: (lane) => lane.paused ? (_jsx(Button, { variant: "inline-link", ariaLabel: `Resume ${lane.lane}`, onClick: () => void resume(lane.lane), children: "Resume" })) : (_jsx(Button, { variant: "inline-link", ariaLabel: `Pause ${lane.lane}`, onClick: () => pause(lane.lane), children: "Pause" })),
                                },
                            ]
                            : []),
                    ] }), _jsx(Table, { items: breakers, trackBy: (breaker) => `${breaker.circuit} ${breaker.owner ?? ''}`, wrapLines: true, ariaLabels: { tableLabel: 'Breakers', selectionGroupLabel: '' }, header: _jsx(Header, { variant: "h2", counter: `(${breakers.length})`, description: "A target that keeps failing is not called for a while; its jobs wait.", children: "Open breakers" }), empty: _jsx(Empty, { title: "No open breakers", children: "All targets receive their jobs." }), columnDefinitions: [
                        { id: 'circuit', header: 'Target', cell: (breaker) => _jsx(Words, { children: breaker.circuit }), isRowHeader: true },
                        { id: 'owner', header: 'Jobs of', cell: (breaker) => (breaker.owner === null ? 'Everyone' : _jsx(To, { href: `/jobs?owner=${breaker.owner}&view=ahead`, children: nameOf(breaker.owner, users.data?.users ?? []) })) },
                        { id: 'state', header: 'State', cell: (breaker) => _jsx(StatusIndicator, { ...(breaker.state === 'open' ? { type: 'error' } : GOES_ON), children: breaker.state === 'open' ? 'Open' : 'Testing' }) },
                        { id: 'opened', header: 'Opened', cell: (breaker) => _jsx(Ago, { at: breaker.opened_at }) },
                        { id: 'until', header: 'Next test', cell: (breaker) => (breaker.state === 'open' ? _jsx(Ago, { at: breaker.until }) : _jsxs(_Fragment, { children: ["until ", _jsx(When, { at: breaker.probe_until })] })) },
                        ...(administers
                            ? [{ id: 'action', header: 'Action', cell: (breaker) => _jsx(Button, { variant: "inline-link", ariaLabel: `Close the breaker of ${breaker.circuit}`, onClick: () => close(breaker), children: "Close" }) }]
                            : []),
                    ] })] })) }));
}
/** Whether jobs start on time, and what keeps them from it. `lag` in seconds. */
export function Health({ lag, oldest, now }) {
    return (_jsx(Container, { header: _jsx(Header, { variant: "h2", description: _jsxs(_Fragment, { children: ["More on ", _jsx(To, { href: "/status", children: "What is wrong now" }), "."] }), children: "Health" }), children: _jsx(KeyValuePairs, { columns: 3, items: [
                { label: 'Scheduler', value: healthOf(lag, now).map(({ look, word }) => _jsx("div", { children: _jsx(StatusIndicator, { type: look, children: word }) }, word)) },
                { label: 'Behind by', value: span(lag * 1_000) },
                { label: 'Oldest open minute', value: _jsx(When, { at: oldest }) },
            ] }) }));
}
function nameOf(id, users) {
    return users.find((user) => user.id === id)?.username ?? id;
}
