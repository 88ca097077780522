import { jsx as _jsx, jsxs as _jsxs } from "react/jsx-runtime";
import Box from '@cloudscape-design/components/box';
import Button from '@cloudscape-design/components/button';
import Header from '@cloudscape-design/components/header';
import Pagination from '@cloudscape-design/components/pagination';
import SpaceBetween from '@cloudscape-design/components/space-between';
import StatusIndicator from '@cloudscape-design/components/status-indicator';
import Table from '@cloudscape-design/components/table';
import { api, take } from '../api/client';
import { GOES_ON } from '../colours';
import { useLive } from '../live';
import { chosenInWords, WORDS } from '../operations';
import { pageOfDocs } from '../docs';
import { DocsLink } from '../parts/docs-link';
import { usePages } from '../parts/pages';
import { Empty, Failed, NotForRole, Reason, Stale, To, useTitle } from '../parts/parts';
import { Progress, useAbort } from '../parts/progress';
import { Ago } from '../parts/time';
import { ofEverybody, useWhose, WhoseChoice } from '../parts/whose';
const LIMIT = 20;
const OFTEN = 2_000; // while one runs
const SELDOM = 15_000;
const LOOKS = { running: GOES_ON, done: { type: 'success' }, aborted: { type: 'stopped' } };
const NAMES = { running: 'Running', done: 'Done', aborted: 'Aborted' };
/** Everybody's first page: those that run before the ended ones, each the newest first. */
async function all(ask) {
    const { found } = await ofEverybody(async (owner) => (await ask(owner)).items);
    found.sort((one, other) => Number(other.status === 'running') - Number(one.status === 'running') || other.started_at.localeCompare(one.started_at));
    return { items: found, cursor: null };
}
/** What was started on many jobs or tasks: cancellations, redrives, and the like. */
export default function Operations() {
    useTitle('Operations');
    const { owner, everybody, mayChange } = useWhose();
    const key = `operations ${everybody ? 'all' : (owner ?? '')}`;
    const pages = usePages(key);
    const ask = (owner, cursor) => take(api.GET('/api/v1/operations', { params: { query: { limit: LIMIT, cursor, owner } } }));
    const live = useLive(`${key} ${pages.cursor ?? ''}`, () => (everybody ? all((owner) => ask(owner, undefined)) : ask(owner, pages.cursor)), (found) => (!everybody && found?.items.some(({ status }) => status === 'running') ? OFTEN : SELDOM));
    const abort = useAbort(live.reload);
    if (live.error?.status === 403)
        return _jsx(NotForRole, { text: live.error.message });
    return (_jsxs(SpaceBetween, { size: "m", children: [_jsx(Progress, { onEnd: live.reload }), _jsx(Table, { variant: "full-page", stickyHeader: true, contentDensity: "compact", wrapLines: true, trackBy: "id", items: live.data?.items ?? [], loading: live.loading, loadingText: "Loading operations", ariaLabels: { tableLabel: 'Operations', selectionGroupLabel: '' }, header: _jsxs(SpaceBetween, { size: "xs", children: [_jsx(Header, { variant: "awsui-h1-sticky", description: "One action on many jobs or tasks. Running operations first, then those that ended in the last 90 days.", actions: _jsx(Button, { iconName: "refresh", ariaLabel: "Refresh", onClick: live.reload }), children: "Operations" }), _jsx(Stale, { live: live })] }), filter: _jsx("div", { className: "filters", children: _jsx(WhoseChoice, {}) }), pagination: everybody ? undefined : _jsx(Pagination, { ...pages.bar(live.data?.cursor), ariaLabels: { nextPageLabel: 'Next page', previousPageLabel: 'Previous page', pageLabel: (n) => `Page ${n}` } }), empty: live.error !== null && live.data === null ? (_jsx(Failed, { error: live.error, what: "operations", retry: live.reload })) : (_jsxs(Empty, { title: "No operations yet", children: [_jsxs(Box, { variant: "p", color: "inherit", children: ["An operation changes many jobs or tasks. Start one with ", _jsx("i", { children: "Cancel all that match" }), " on ", _jsx(To, { href: "/jobs", children: "Jobs" }), ", ", _jsx("i", { children: "All that match" }), " on ", _jsx(To, { href: "/tasks", children: "Tasks" }), ", or ", _jsx("i", { children: "Run again" }), " on ", _jsx(To, { href: "/dead-letters", children: "Failed jobs" }), "."] }), _jsx(DocsLink, { href: pageOfDocs('guides/many-at-once'), children: "Many at once" })] })), columnDefinitions: [
                    { id: 'what', header: 'Operation', isRowHeader: true, cell: ({ action }) => WORDS[action].name, minWidth: 150 },
                    ...(everybody ? [{ id: 'owner', header: 'Owner', cell: (each) => each.owner?.username ?? '–' }] : []),
                    { id: 'status', header: 'Status', cell: ({ status }) => _jsx(StatusIndicator, { ...LOOKS[status], children: NAMES[status] }), minWidth: 115 },
                    {
                        id: 'action',
                        header: 'Action',
                        cell: (each) => each.status !== 'running' || !mayChange ? null : (_jsx(Button, { variant: "inline-link", ariaLabel: `Abort the ${WORDS[each.action].name.toLowerCase()}`, onClick: () => void abort(each.id, each.owner?.id ?? owner), children: "Abort" })),
                    },
                    { id: 'chosen', header: 'Filter', cell: ({ filter }) => _jsx(Reason, { text: chosenInWords(filter).join('; ') || 'All' }), minWidth: 220 },
                    { id: 'matched', header: 'Matched', cell: ({ matched }) => matched },
                    { id: 'done', header: 'Done', cell: ({ done }) => done },
                    { id: 'skipped', header: 'Skipped', cell: ({ skipped }) => skipped },
                    { id: 'failed', header: 'Failed', cell: ({ failed }) => failed },
                    { id: 'rate', header: 'Rate', cell: ({ rate }) => `${rate}/s` },
                    { id: 'started', header: 'Started', cell: ({ started_at }) => _jsx(Ago, { at: started_at }) },
                    { id: 'ended', header: 'Ended', cell: ({ ended_at }) => _jsx(Ago, { at: ended_at }) },
                ] })] }));
}
