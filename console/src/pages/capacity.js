import { jsx as _jsx, jsxs as _jsxs, Fragment as _Fragment } from "react/jsx-runtime";
import Alert from '@cloudscape-design/components/alert';
import Container from '@cloudscape-design/components/container';
import Header from '@cloudscape-design/components/header';
import KeyValuePairs from '@cloudscape-design/components/key-value-pairs';
import LineChart, {} from '@cloudscape-design/components/line-chart';
import Pagination from '@cloudscape-design/components/pagination';
import SegmentedControl from '@cloudscape-design/components/segmented-control';
import SpaceBetween from '@cloudscape-design/components/space-between';
import StatusIndicator from '@cloudscape-design/components/status-indicator';
import Table from '@cloudscape-design/components/table';
import { useState } from 'react';
import { api, take } from '../api/client';
import { isShort, marked, points, shortages, totals } from '../capacity';
import { useLive } from '../live';
import { Empty, Loaded, useTitle } from '../parts/parts';
import { ScopeChoice, useScope } from '../parts/scope';
import { Ago, clock, When } from '../parts/time';
import { span } from '../words';
const PER_PAGE = 20;
const LISTED = 5; // shortages told one by one; the table has all of them
/** The next three hours: what is to start, what that requires, and what there may be. */
export default function Capacity() {
    useTitle('Capacity');
    const [scope, setScope] = useScope();
    const live = useLive(`capacity ${scope}`, () => take(api.GET('/api/v1/forecast', { params: { query: { scope } } })));
    return (_jsxs(SpaceBetween, { size: "l", children: [_jsx(Header, { variant: "h1", description: "The next three hours, minute by minute. New jobs appear within seconds.", actions: _jsx(ScopeChoice, { scope: scope, onChange: setScope }), children: "Capacity" }), _jsx(Loaded, { live: live, what: "capacity", children: (summary) => _jsx(Shown, { summary: summary }) })] }));
}
function Shown({ summary }) {
    const { minutes, available_instances: available } = summary;
    const short = shortages(minutes, available);
    const { jobs, busiest, required } = totals(minutes);
    return (_jsxs(SpaceBetween, { size: "l", children: [_jsx(Needed, { short: short, available: available }), _jsx(Container, { header: _jsx(Header, { variant: "h2", children: "Overview" }), children: _jsx(KeyValuePairs, { columns: 4, items: [
                        { label: 'Jobs to start', value: jobs.toLocaleString() },
                        { label: 'Busiest minute', value: busiest === null ? '–' : _jsxs(_Fragment, { children: [busiest.jobs.toLocaleString(), " jobs at ", _jsx(When, { at: busiest.scheduled_at })] }) },
                        { label: 'Peak of executors required', value: required.toLocaleString() },
                        { label: 'Executors available', value: available.toLocaleString() },
                    ] }) }), _jsx(Container, { header: _jsx(Header, { variant: "h2", description: "Jobs and executors, by the minute in which the jobs start", children: "Next three hours" }), children: _jsxs(SpaceBetween, { size: "l", children: [_jsx(Graph, { label: "Executors required against available", title: "Executors", minutes: minutes, most: Math.max(required, available), series: [
                                { title: 'Required', type: 'line', data: points(minutes, (minute) => minute.required_instances) },
                                { title: 'Available', type: 'threshold', y: available },
                                ...short.slice(0, LISTED).map((each) => ({
                                    title: `Scaling needed, ${clock(new Date(each.from))}`,
                                    type: 'line',
                                    color: 'var(--short)',
                                    data: marked(minutes, each),
                                })),
                            ] }), _jsx(Graph, { label: "Jobs per minute", title: "Jobs per minute", minutes: minutes, most: busiest?.jobs ?? 0, series: [{ title: 'Jobs per minute', type: 'line', data: points(minutes, (minute) => minute.jobs) }] })] }) }), _jsx(Minutes, { minutes: minutes, available: available })] }));
}
/** The moments where there is less than it takes. */
function Needed({ short, available }) {
    if (short.length === 0)
        return null;
    return (_jsxs(Alert, { type: "warning", header: "Scaling is needed", children: [short.slice(0, LISTED).map((each) => (_jsxs("div", { children: [_jsx(When, { at: each.from }), " to ", _jsx(When, { at: each.to }), ": ", each.required.toLocaleString(), " executors required, ", available.toLocaleString(), " available"] }, each.from))), short.length > LISTED && _jsxs("div", { children: ["\u2026 and ", short.length - LISTED, " more periods; see the table."] })] }));
}
function Graph({ label, title, minutes, most, series }) {
    const first = minutes[0];
    const last = minutes.at(-1);
    return (_jsx(LineChart, { height: 180, hideFilter: true, xScaleType: "time", xDomain: first === undefined || last === undefined ? undefined : [new Date(first.scheduled_at), new Date(last.scheduled_at)], yDomain: [0, Math.max(1, most) * 1.05], yTitle: title, ariaLabel: label, series: series, i18nStrings: { xTickFormatter: clock, yTickFormatter: (y) => (Number.isInteger(y) ? y.toLocaleString() : '') }, empty: _jsx(Empty, { title: "No jobs to start" }), noMatch: _jsx(Empty, { title: "No jobs to start" }) }));
}
function Minutes({ minutes, available }) {
    const [which, setWhich] = useState('some');
    const [page, setPage] = useState(1);
    const rows = minutes.filter((minute) => which === 'all' || (which === 'short' ? isShort(minute, available) : minute.jobs > 0));
    const pages = Math.max(1, Math.ceil(rows.length / PER_PAGE));
    const shown = Math.min(page, pages);
    return (_jsx(Table, { contentDensity: "compact", trackBy: "scheduled_at", items: rows.slice((shown - 1) * PER_PAGE, shown * PER_PAGE), ariaLabels: { tableLabel: 'Minutes', selectionGroupLabel: '' }, header: _jsx(Header, { variant: "h2", counter: `(${rows.length})`, actions: _jsx(SegmentedControl, { label: "Which minutes", selectedId: which, options: [{ id: 'some', text: 'With jobs' }, { id: 'short', text: 'Scaling needed' }, { id: 'all', text: 'All' }], onChange: ({ detail }) => {
                    setWhich(detail.selectedId);
                    setPage(1);
                } }), children: "Minutes" }), pagination: _jsx(Pagination, { currentPageIndex: shown, pagesCount: pages, onChange: ({ detail }) => setPage(detail.currentPageIndex), ariaLabels: { nextPageLabel: 'Next page', previousPageLabel: 'Previous page', pageLabel: (n) => `Page ${n}` } }), empty: _jsx(Empty, { title: which === 'short' ? 'Every minute has enough executors' : 'No jobs to start' }), columnDefinitions: [
            { id: 'minute', header: 'Minute', cell: (minute) => _jsx(When, { at: minute.scheduled_at }), isRowHeader: true },
            { id: 'away', header: 'In', cell: (minute) => _jsx(Ago, { at: minute.scheduled_at }) },
            { id: 'jobs', header: 'Jobs', cell: (minute) => minute.jobs.toLocaleString() },
            { id: 'work', header: 'Work', cell: (minute) => span(minute.compute_ms) },
            { id: 'required', header: 'Required', cell: (minute) => minute.required_instances.toLocaleString() },
            { id: 'available', header: 'Available', cell: () => available.toLocaleString() },
            {
                id: 'state',
                header: 'State',
                cell: (minute) => isShort(minute, available) ? _jsx(StatusIndicator, { type: "warning", children: "Scaling needed" }) : _jsx(StatusIndicator, { type: "success", children: "Enough" }),
            },
        ] }));
}
