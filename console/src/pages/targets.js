import { jsx as _jsx, jsxs as _jsxs } from "react/jsx-runtime";
import Box from '@cloudscape-design/components/box';
import Button from '@cloudscape-design/components/button';
import Header from '@cloudscape-design/components/header';
import SpaceBetween from '@cloudscape-design/components/space-between';
import StatusIndicator from '@cloudscape-design/components/status-indicator';
import Table from '@cloudscape-design/components/table';
import { useNavigate } from 'react-router';
import { api, take } from '../api/client';
import { useRole } from '../api/session';
import { pageOfTarget } from '../form/target';
import { pageOfDocs } from '../docs';
import { useLive } from '../live';
import { DocsLink } from '../parts/docs-link';
import { Empty, Failed, Stale, To, useTitle } from '../parts/parts';
import { Ago } from '../parts/time';
import { Refresh } from '../parts/trail';
const EVERY = 15_000;
/** What tasks and jobs may be sent to by name. */
export default function Targets() {
    useTitle('Named targets');
    const navigate = useNavigate();
    const administers = useRole() === 'administrator';
    const live = useLive('targets', () => take(api.GET('/api/v1/targets')), EVERY);
    return (_jsx(Table, { variant: "full-page", stickyHeader: true, contentDensity: "compact", trackBy: "name", wrapLines: true, items: live.data?.items ?? [], loading: live.loading, loadingText: "Loading targets", ariaLabels: { tableLabel: 'Named targets', selectionGroupLabel: '' }, header: _jsxs(SpaceBetween, { size: "xs", children: [_jsx(Header, { variant: "awsui-h1-sticky", description: "Reusable destinations with defaults and limits. Tasks and jobs refer to them by name.", actions: _jsxs(SpaceBetween, { direction: "horizontal", size: "xs", children: [_jsx(Refresh, { live: live }), administers && (_jsx(Button, { variant: "primary", onClick: () => void navigate('/targets/new'), children: "Register target" }))] }), children: "Named targets" }), _jsx(Stale, { live: live })] }), empty: live.error !== null && live.data === null ? (_jsx(Failed, { error: live.error, what: "targets", retry: live.reload })) : (_jsxs(Empty, { title: "No named targets yet", children: [_jsxs(Box, { variant: "p", color: "inherit", children: ["A named target stores a destination with its defaults and limits once. Tasks and jobs then refer to it by name.", administers ? '' : ' Ask an administrator to register one.'] }), administers && _jsx(Button, { onClick: () => void navigate('/targets/new'), children: "Register your first target" }), _jsx(DocsLink, { href: pageOfDocs('reference/targets'), children: "Targets" })] })), columnDefinitions: [
            { id: 'name', header: 'Name', cell: (target) => _jsx(To, { href: pageOfTarget(target.name), children: target.name }), isRowHeader: true },
            { id: 'kind', header: 'Type', cell: (target) => target.kind },
            { id: 'state', header: 'State', cell: (target) => _jsx(StatusIndicator, { type: target.enabled ? 'success' : 'stopped', children: target.enabled ? 'Enabled' : 'Disabled' }) },
            { id: 'rate', header: 'Starts per second', cell: (target) => target.rate?.toLocaleString() ?? 'unlimited' },
            { id: 'concurrency', header: 'Concurrent jobs', cell: (target) => target.concurrency?.toLocaleString() ?? 'unlimited' },
            { id: 'given', header: 'Fields', cell: (target) => Object.keys(target.job_payload_schema['properties'] ?? {}).join(', ') || '–' },
            { id: 'description', header: 'Description', cell: (target) => target.description ?? '–' },
            { id: 'changed', header: 'Changed', cell: (target) => _jsx(Ago, { at: target.updated_at }) },
        ] }));
}
