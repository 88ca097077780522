import { jsx as _jsx, jsxs as _jsxs, Fragment as _Fragment } from "react/jsx-runtime";
import Box from '@cloudscape-design/components/box';
import Button from '@cloudscape-design/components/button';
import Header from '@cloudscape-design/components/header';
import Input from '@cloudscape-design/components/input';
import Multiselect from '@cloudscape-design/components/multiselect';
import Pagination from '@cloudscape-design/components/pagination';
import SegmentedControl from '@cloudscape-design/components/segmented-control';
import Select from '@cloudscape-design/components/select';
import SpaceBetween from '@cloudscape-design/components/space-between';
import { useState } from 'react';
import { useNavigate } from 'react-router';
import { api, take } from '../api/client';
import { JOB_LOOKS } from '../colours';
import { InstantField } from '../form/instant';
import { useLive, useSettled } from '../live';
import { pageOfDocs } from '../docs';
import { toCancel } from '../operations';
import { DocsLink } from '../parts/docs-link';
import { JobTable } from '../parts/job-table';
import { ManyDialog } from '../parts/many-dialog';
import { usePages } from '../parts/pages';
import { Empty, Failed, NotForRole, Stale, useTitle } from '../parts/parts';
import { Progress } from '../parts/progress';
import { useQuery } from '../parts/query';
import { TaskChoice } from '../parts/task-choice';
import { MOST_USERS, ofEverybody, useWhose, WhoseChoice } from '../parts/whose';
import { BETWEEN, bounds, spanOptions } from '../times';
const LIMIT = 50;
const OFTEN = 2_000;
const SELDOM = 15_000; // everybody's: one call for each user
const STATUSES = Object.keys(JOB_LOOKS).map((value) => ({ value, label: value.charAt(0).toUpperCase() + value.slice(1) }));
const FILTERS = { status: '', type: '', task: '', tag: '', time: '', from: '', to: '' };
export default function Jobs() {
    useTitle('Jobs');
    const navigate = useNavigate();
    const [query, set] = useQuery();
    const { owner, everybody, mayChange } = useWhose();
    const [cancelling, setCancelling] = useState(null);
    const upcoming = query.get('view') === 'ahead';
    const { status, type, task, tag, time, from, to } = Object.fromEntries(Object.keys(FILTERS).map((name) => [name, query.get(name) ?? '']));
    const statuses = status.split(',').filter((each) => Object.hasOwn(JOB_LOOKS, each));
    const chosen = STATUSES.filter(({ value }) => statuses.includes(value));
    const settled = useSettled(tag.trim(), 300);
    const types = useLive('types', () => take(api.GET('/api/v1/types')), 0);
    const filter = JSON.stringify([owner, everybody, upcoming, status, type, task, settled, time, from, to]);
    const pages = usePages(filter);
    const ask = (owner, cursor) => take(api.GET('/api/v1/jobs', {
        params: {
            query: {
                upcoming: upcoming || undefined,
                status: statuses.length === 0 ? undefined : statuses,
                type: type || undefined,
                task: task || undefined,
                tag: settled || undefined,
                ...bounds(query, upcoming, Date.now()),
                limit: LIMIT,
                cursor,
                owner,
            },
        },
    }));
    const live = useLive(`${filter}${pages.cursor ?? ''}`, () => (everybody ? all(upcoming, (owner) => ask(owner, undefined)) : ask(owner, pages.cursor)), everybody ? SELDOM : OFTEN);
    const narrowed = [status, type, task, settled, time].some((each) => each !== '');
    const typeOptions = [{ value: '', label: 'Any type' }, ...(types.data?.items ?? []).map((each) => ({ value: each.type, label: each.type }))];
    const spans = spanOptions(upcoming);
    const order = upcoming ? 'Upcoming jobs, soonest first.' : 'Past jobs, latest first.';
    const cancellable = () => toCancel({ status: statuses, type, task, tag: settled, ...bounds(query, upcoming, Date.now()) }, upcoming, Date.now());
    if (live.error?.status === 403)
        return _jsx(NotForRole, { text: live.error.message });
    return (_jsxs(_Fragment, { children: [_jsx(Progress, { onEnd: live.reload }), cancelling !== null && _jsx(ManyDialog, { many: { action: 'cancel_jobs', body: cancelling }, owner: owner, onClose: () => setCancelling(null) }), _jsx(JobTable, { variant: "full-page", jobs: live.data?.items ?? [], loading: live.loading, loadingText: "Loading jobs", ariaLabels: { tableLabel: 'Jobs', selectionGroupLabel: '' }, columns: [
                    'status', // first, so that a phone shows it
                    'calls',
                    'scheduled',
                    ...(everybody ? ['owner'] : []),
                    'task',
                    ...(upcoming ? [] : ['delay', 'duration', 'attempts']),
                    'reason',
                    'job',
                ], header: _jsxs(SpaceBetween, { size: "xs", children: [_jsx(Header, { variant: "awsui-h1-sticky", description: everybody ? `${order} The first ${LIMIT}${live.data?.complete === false ? ` of the first ${MOST_USERS} users` : ''}: choose a user to see more.` : order, actions: _jsxs(SpaceBetween, { direction: "horizontal", size: "xs", children: [_jsx(Button, { iconName: "refresh", ariaLabel: "Refresh", onClick: live.reload }), mayChange && !everybody && (_jsx(Button, { disabled: cancellable() === null, onClick: () => setCancelling(cancellable()), children: "Cancel all that match" })), _jsx(Button, { variant: "primary", onClick: () => void navigate('/jobs/new'), children: "Post job" })] }), children: "Jobs" }), _jsx(Stale, { live: live })] }), filter: _jsxs(SpaceBetween, { size: "xs", children: [_jsxs("div", { className: "filters", children: [_jsx(SegmentedControl, { label: "Which jobs", selectedId: upcoming ? 'ahead' : 'past', options: [{ id: 'past', text: 'History' }, { id: 'ahead', text: 'Upcoming' }], onChange: ({ detail }) => set({ view: detail.selectedId === 'ahead' ? 'ahead' : '' }) }), _jsx(WhoseChoice, {}), _jsx(Multiselect, { ariaLabel: "Status", options: STATUSES, selectedOptions: chosen, hideTokens: true, placeholder: chosen.map(({ label }) => label).join(', ') || 'Any status', onChange: ({ detail }) => set({ status: detail.selectedOptions.map(({ value }) => value).join(',') }) }), _jsx(Select, { ariaLabel: "Type", options: typeOptions, selectedOption: typeOptions.find((each) => each.value === type) ?? { value: type, label: type }, onChange: ({ detail }) => set({ type: detail.selectedOption.value ?? '' }) }), !everybody && _jsx(TaskChoice, { task: task, owner: owner, onChange: (chosen) => set({ task: chosen }) }), _jsx(Select, { ariaLabel: "Time", options: spans, selectedOption: spans.find((each) => each.value === time) ?? spans[0] ?? null, onChange: ({ detail }) => set({ time: detail.selectedOption.value ?? '', from: '', to: '' }) }), _jsx(Input, { type: "search", value: tag, placeholder: "Tag", ariaLabel: "Tag", onChange: ({ detail }) => set({ tag: detail.value }) })] }), time === BETWEEN && (_jsxs("div", { className: "filters", children: [_jsx(InstantField, { label: "From", value: from, error: undefined, onChange: (value) => set({ from: value }) }), _jsx(InstantField, { label: "Until", value: to, error: undefined, onChange: (value) => set({ to: value }) })] }))] }), pagination: everybody ? undefined : _jsx(Pagination, { ...pages.bar(live.data?.cursor), ariaLabels: { nextPageLabel: 'Next page', previousPageLabel: 'Previous page', pageLabel: (n) => `Page ${n}` } }), empty: live.error !== null && live.data === null ? (_jsx(Failed, { error: live.error, what: "jobs", retry: live.reload })) : narrowed ? (_jsx(Empty, { title: "No matching jobs", children: _jsx(Button, { onClick: () => set(FILTERS), children: "Clear filters" }) })) : (_jsxs(Empty, { title: upcoming ? 'No upcoming jobs' : 'No jobs yet', children: [_jsx(Box, { variant: "p", color: "inherit", children: "A job calls a target once: now, after a delay, or at a time. The form copies its request as curl or Python, too." }), _jsxs(Button, { onClick: () => void navigate('/jobs/new'), children: ["Post ", upcoming ? 'a job' : 'your first job'] }), _jsx(DocsLink, { href: pageOfDocs('get-started/first-job'), children: "Your first job" })] })) })] }));
}
/** The first of everybody's jobs, in the order of the view. */
async function all(upcoming, ask) {
    const { found, complete } = await ofEverybody(async (owner) => (await ask(owner)).items);
    found.sort((one, other) => (upcoming ? 1 : -1) * one.scheduled_at.localeCompare(other.scheduled_at));
    return { items: found.slice(0, LIMIT), cursor: null, complete };
}
