import { jsx as _jsx, jsxs as _jsxs } from "react/jsx-runtime";
import Box from '@cloudscape-design/components/box';
import ColumnLayout from '@cloudscape-design/components/column-layout';
import Container from '@cloudscape-design/components/container';
import Header from '@cloudscape-design/components/header';
import KeyValuePairs from '@cloudscape-design/components/key-value-pairs';
import MixedLineBarChart, {} from '@cloudscape-design/components/mixed-line-bar-chart';
import Select from '@cloudscape-design/components/select';
import SpaceBetween from '@cloudscape-design/components/space-between';
import Table from '@cloudscape-design/components/table';
import { useState } from 'react';
import { useSearchParams } from 'react-router';
import { api, take } from '../api/client';
import { byDay, daysOf, endedOf, onTimeOf, since, slowest, slowTasks, successOf, sum } from '../figures';
import { COLOURS } from '../colours';
import { useLive } from '../live';
import { Empty, Failed, Loaded, To, useTitle } from '../parts/parts';
import { ScopeChoice, useScope } from '../parts/scope';
import { percent, span } from '../words';
const SPANS = [
    { value: '7', label: '7 days' },
    { value: '30', label: '30 days' },
    { value: '90', label: '90 days' },
    { value: 'year', label: 'A year' },
];
const USUAL = SPANS[1];
const EVERY = 15_000;
const NARROWEST = 7; // days of a chart
const LINE = 4; // days from which on a line is one
const LATEST = 100; // runs by which slow tasks are told
/** How jobs ended and how long they took: all in all, day by day, and by task. */
export default function Metrics() {
    useTitle('Metrics');
    const [scope, setScope] = useScope();
    const [query, setQuery] = useSearchParams();
    const chosen = SPANS.find(({ value }) => value === query.get('span')) ?? USUAL;
    const days = chosen?.value === 'year' ? undefined : Number(chosen?.value);
    const live = useLive(`metrics ${scope} ${days ?? ''}`, () => take(api.GET('/api/v1/statistics', { params: { query: { scope, days } } })), EVERY);
    const choose = (value) => setQuery((before) => {
        const next = new URLSearchParams(before);
        next.set('span', value);
        return next;
    }, { replace: true });
    return (_jsxs(SpaceBetween, { size: "l", children: [_jsx(Header, { variant: "h1", description: "Results and durations of jobs. Days are in UTC.", actions: _jsxs(SpaceBetween, { direction: "horizontal", size: "xs", children: [_jsx(ScopeChoice, { scope: scope, onChange: setScope }), _jsx(Select, { ariaLabel: "Span", options: SPANS, selectedOption: chosen ?? null, onChange: ({ detail }) => choose(detail.selectedOption.value ?? 'year') })] }), children: "Metrics" }), _jsx(Loaded, { live: live, what: "metrics", children: (summary) => _jsx(Shown, { summary: summary }) }), _jsx(SlowTasks, {})] }));
}
function Shown({ summary }) {
    const total = sum(summary.types);
    const days = daysOf(summary.since, summary.until);
    const share = onTimeOf(total);
    const success = successOf(total);
    return (_jsxs(SpaceBetween, { size: "l", children: [_jsx(Container, { header: _jsx(Header, { variant: "h2", children: "Overview" }), children: _jsx(KeyValuePairs, { columns: 4, items: [
                        { label: 'Jobs ended', value: endedOf(total).toLocaleString() },
                        { label: 'Average per day', value: Number((endedOf(total) / days.length).toFixed(1)).toLocaleString() },
                        { label: 'On time', value: share === null ? '–' : percent(share) },
                        { label: 'Success rate', value: success === null ? '–' : percent(success) },
                    ] }) }), summary.daily !== null && _jsx(Daily, { days: days, daily: summary.daily, types: summary.types.map(({ type }) => type) }), _jsx(Types, { types: summary.types })] }));
}
function Daily({ days: all, daily, types }) {
    const days = since(all, daily, NARROWEST);
    const [wanted, setType] = useState(null);
    const type = wanted !== null && types.includes(wanted) ? wanted : (types[0] ?? '');
    const average = byDay(days, daily, type, ([found]) => found?.average_ms ?? null);
    const look = average.length < LINE ? 'bar' : 'line';
    const count = (name) => byDay(days, daily, null, (found) => sum(found)[name]);
    const options = types.map((value) => ({ value, label: value }));
    return (_jsxs(ColumnLayout, { columns: 2, children: [_jsx(Container, { fitHeight: true, header: _jsx(Header, { variant: "h2", actions: _jsx(Select, { ariaLabel: "Type charted", options: options, selectedOption: options.find(({ value }) => value === type) ?? null, onChange: ({ detail }) => setType(detail.selectedOption.value ?? null), disabled: options.length === 0 }), children: "Duration" }), children: _jsx(Chart, { label: "Average and p95 per day", title: "Time", days: days, format: span, series: [
                        { title: 'Average', type: look, data: average, valueFormatter: span, color: COLOURS.measure },
                        { title: 'p95', type: look, data: byDay(days, daily, type, ([found]) => found?.p95_ms ?? null), valueFormatter: span, color: COLOURS.high },
                    ] }) }), _jsx(Container, { fitHeight: true, header: _jsx(Header, { variant: "h2", description: "Ended jobs by result", children: "Throughput" }), children: _jsx(Chart, { label: "Jobs ended per day", title: "Jobs", days: days, format: (y) => y.toLocaleString(), stacked: true, series: [
                        { title: 'Succeeded', type: 'bar', data: count('succeeded'), color: COLOURS.succeeded },
                        { title: 'Failed', type: 'bar', data: count('failed'), color: COLOURS.failed },
                        { title: 'Killed', type: 'bar', data: count('killed'), color: COLOURS.killed },
                        { title: 'Skipped', type: 'bar', data: count('skipped'), color: COLOURS.skipped },
                        { title: 'Cancelled', type: 'bar', data: count('cancelled'), color: COLOURS.cancelled },
                    ] }) })] }));
}
function Chart({ label, title, days, format, stacked = false, series }) {
    return (_jsx(MixedLineBarChart, { height: 220, hideFilter: true, stackedBars: stacked, xScaleType: "categorical", xDomain: days, yTitle: title, ariaLabel: label, series: series, i18nStrings: { yTickFormatter: format, xTickFormatter: (day) => day.slice(5) }, empty: _jsx(Empty, { title: "No job has ended yet" }), noMatch: _jsx(Empty, { title: "No job has ended yet" }) }));
}
function Types({ types }) {
    const ran = slowest(types);
    const rows = [...ran, ...types.filter((each) => !ran.includes(each))];
    const time = (ms) => (ms === null ? '–' : span(ms));
    return (_jsx(Table, { contentDensity: "compact", trackBy: "type", items: rows, ariaLabels: { tableLabel: 'Types', selectionGroupLabel: '' }, header: _jsx(Header, { variant: "h2", description: "Slowest first", children: "By type" }), empty: _jsx(Empty, { title: "No job has ended yet" }), columnDefinitions: [
            { id: 'type', header: 'Type', cell: (each) => each.type, isRowHeader: true },
            { id: 'runs', header: 'Jobs ended', cell: (each) => endedOf(each).toLocaleString() },
            { id: 'average', header: 'Average', cell: (each) => time(each.average_ms) },
            { id: 'p50', header: 'p50', cell: (each) => time(each.p50_ms) },
            { id: 'p95', header: 'p95', cell: (each) => time(each.p95_ms) },
            { id: 'on-time', header: 'On time', cell: (each) => shareOf(onTimeOf(each)) },
            { id: 'success', header: 'Succeeded', cell: (each) => shareOf(successOf(each)) },
            { id: 'failed', header: 'Failed', cell: (each) => (each.failed + each.killed).toLocaleString() },
        ] }));
}
function shareOf(share) {
    return share === null ? '–' : percent(share);
}
/** Of one's own tasks: the API tells times by type, so these come of the latest runs. */
function SlowTasks() {
    const live = useLive('slow tasks', async () => {
        const [jobs, tasks] = await Promise.all([
            take(api.GET('/api/v1/jobs', { params: { query: { status: 'succeeded', limit: LATEST } } })),
            take(api.GET('/api/v1/tasks', { params: { query: { limit: LATEST } } })),
        ]);
        return { slow: slowTasks(jobs.items), names: new Map(tasks.items.map(({ id, name }) => [id, name])) };
    }, EVERY);
    const names = live.data?.names;
    return (_jsx(Table, { contentDensity: "compact", trackBy: "id", items: (live.data?.slow ?? []).slice(0, 10), loading: live.loading, loadingText: "Loading tasks", ariaLabels: { tableLabel: 'Slowest tasks', selectionGroupLabel: '' }, header: _jsx(Header, { variant: "h2", description: `Your tasks, by your latest ${LATEST} successful jobs`, children: "Slowest tasks" }), empty: live.error !== null && live.data === null ? _jsx(Failed, { error: live.error, what: "tasks", retry: live.reload }) : _jsx(Empty, { title: "No recent runs of tasks", children: _jsx(Box, { variant: "p", color: "inherit", children: "One-time jobs are not listed here." }) }), columnDefinitions: [
            { id: 'task', header: 'Task', cell: (each) => _jsx(To, { href: `/tasks/${each.id}`, children: names?.get(each.id) ?? each.id }), isRowHeader: true },
            { id: 'type', header: 'Type', cell: (each) => each.type },
            { id: 'runs', header: 'Runs', cell: (each) => each.runs },
            { id: 'average', header: 'Average', cell: (each) => span(each.average) },
            { id: 'longest', header: 'Longest', cell: (each) => span(each.longest) },
        ] }));
}
