import { jsx as _jsx, Fragment as _Fragment, jsxs as _jsxs } from "react/jsx-runtime";
import Button from '@cloudscape-design/components/button';
import Header from '@cloudscape-design/components/header';
import Pagination from '@cloudscape-design/components/pagination';
import SpaceBetween from '@cloudscape-design/components/space-between';
import { useState } from 'react';
import { useNavigate, useParams } from 'react-router';
import { api, take } from '../api/client';
import { useLive } from '../live';
import { JobTable } from '../parts/job-table';
import { pageOfAnotherJob } from '../parts/links';
import { useNotices } from '../parts/notices';
import { usePages } from '../parts/pages';
import { Empty, Failed, NotForRole, Stale, useTitle, Words } from '../parts/parts';
import { Progress } from '../parts/progress';
import { OfWhom, useWhose } from '../parts/whose';
import { whyOf } from '../why';
import { RedriveDialog } from './redrive';
/** The jobs that died of one error. */
export default function DeadLetterGroup() {
    const { fingerprint = '' } = useParams();
    useTitle('Failed jobs with one error');
    const { owner, mayChange } = useWhose();
    const pages = usePages(`${fingerprint} ${owner ?? ''}`);
    const live = useLive(`${fingerprint} ${owner ?? ''} ${pages.cursor ?? ''}`, () => take(api.GET('/api/v1/dead-letters/{fingerprint}/jobs', { params: { path: { fingerprint }, query: { limit: 25, cursor: pages.cursor, owner } } })));
    const [asking, setAsking] = useState(false);
    const [selected, setSelected] = useState([]);
    const { done, failed } = useNotices();
    const jobs = live.data?.items ?? [];
    const latest = jobs[0];
    const only = selected.length === 1 ? selected[0] : jobs.length === 1 ? latest : undefined; // the one that a change concerns
    const navigate = useNavigate();
    const retry = async () => {
        const results = await Promise.allSettled(selected.map((job) => take(api.POST('/api/v1/jobs/{job_id}/retry', { params: { path: { job_id: job.id }, query: { owner } } }))));
        const good = results.filter((result) => result.status === 'fulfilled').length;
        const bad = results.find((result) => result.status === 'rejected');
        if (good > 0)
            done(`${good} ${good === 1 ? 'job runs' : 'jobs run'} again.`);
        if (bad !== undefined)
            failed(`${results.length - good} not run again`, bad.reason);
        setSelected([]);
        live.reload();
    };
    if (live.error?.status === 403)
        return _jsx(NotForRole, { text: live.error.message });
    return (_jsxs(SpaceBetween, { size: "m", children: [_jsx(Progress, { onEnd: live.reload }), _jsx(RedriveDialog, { filter: asking ? { fingerprint } : null, expected: jobs.length, owner: owner, onClose: () => setAsking(false) }), _jsx(JobTable, { variant: "full-page", jobs: jobs, loading: live.loading, loadingText: "Loading jobs", selectionType: mayChange ? 'multi' : undefined, selectedItems: selected, onSelectionChange: ({ detail }) => setSelected(detail.selectedItems), ariaLabels: { tableLabel: 'Jobs', selectionGroupLabel: 'Jobs', allItemsSelectionLabel: () => 'Select all', itemSelectionLabel: (_, job) => `Select ${job.id}` }, columns: ['status', 'calls', 'scheduled', 'task', 'attempts', 'reason', 'job'], header: _jsxs(SpaceBetween, { size: "xs", children: [_jsx(Header, { variant: "awsui-h1-sticky", description: _jsxs(_Fragment, { children: [_jsx(OfWhom, {}), "Failed jobs with one error, with the fingerprint ", fingerprint, ". Their ids, numbers and times may differ."] }), actions: mayChange && _jsxs(SpaceBetween, { direction: "horizontal", size: "xs", children: [_jsx(Button, { disabled: only === undefined, onClick: () => only !== undefined && void navigate(pageOfAnotherJob('retry', only.id, owner)), children: "Run again with changes" }), _jsx(Button, { disabled: selected.length === 0, onClick: () => void retry(), children: "Run selected again" }), _jsx(Button, { variant: "primary", disabled: jobs.length === 0, onClick: () => setAsking(true), children: "Run all again" })] }), children: _jsx(Words, { children: latest === undefined ? `Failed jobs of ${fingerprint}` : (whyOf(latest)?.error ?? fingerprint) }) }), _jsx(Stale, { live: live })] }), pagination: _jsx(Pagination, { ...pages.bar(live.data?.cursor), ariaLabels: { nextPageLabel: 'Next page', previousPageLabel: 'Previous page', pageLabel: (n) => `Page ${n}` } }), empty: live.error !== null && live.data === null ? _jsx(Failed, { error: live.error, what: "failed jobs", retry: live.reload }) : _jsx(Empty, { title: "No failed jobs left" }) })] }));
}
