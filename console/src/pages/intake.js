import { jsx as _jsx, jsxs as _jsxs } from "react/jsx-runtime";
/** Messages of the intake queues of which no job was made. */
import Box from '@cloudscape-design/components/box';
import Button from '@cloudscape-design/components/button';
import Header from '@cloudscape-design/components/header';
import Pagination from '@cloudscape-design/components/pagination';
import SpaceBetween from '@cloudscape-design/components/space-between';
import Table from '@cloudscape-design/components/table';
import Toggle from '@cloudscape-design/components/toggle';
import {} from 'react';
import { useSearchParams } from 'react-router';
import { api, take } from '../api/client';
import { mayOversee, useRole } from '../api/session';
import { pageOfDocs } from '../docs';
import { useLive } from '../live';
import { DocsLink } from '../parts/docs-link';
import { pageOfIntakeLetter } from '../parts/links';
import { usePages } from '../parts/pages';
import { Empty, Failed, NotForRole, Stale, To, useTitle, Words } from '../parts/parts';
import { Ago } from '../parts/time';
import { useWhose, WhoseChoice } from '../parts/whose';
const LIMIT = 25;
/** The first broken rule, and how many others there are. */
export function rulesOf(errors) {
    const first = errors[0];
    if (first === undefined)
        return '–';
    return `${first.field}: ${first.rule}${errors.length > 1 ? ` and ${errors.length - 1} more` : ''}`;
}
export default function Intake() {
    useTitle('Intake');
    const { owner } = useWhose();
    const [query, setQuery] = useSearchParams();
    const role = useRole();
    const unknown = query.get('unknown') === 'true';
    const filter = unknown ? 'unknown' : `of ${owner ?? ''}`;
    const pages = usePages(filter);
    const live = useLive(`intake ${filter} ${pages.cursor ?? ''}`, () => take(api.GET('/api/v1/intake/dead-letters', { params: { query: { unknown: unknown || undefined, owner: unknown ? undefined : owner, limit: LIMIT, cursor: pages.cursor } } })));
    const setUnknown = (checked) => setQuery((before) => {
        const next = new URLSearchParams(before);
        next.delete('owner');
        if (checked)
            next.set('unknown', 'true');
        else
            next.delete('unknown');
        return next;
    }, { replace: true });
    if (live.error?.status === 403)
        return _jsx(NotForRole, { text: live.error.message });
    return (_jsx(Table, { variant: "full-page", stickyHeader: true, contentDensity: "compact", wrapLines: true, items: live.data?.items ?? [], loading: live.loading, loadingText: "Loading messages", ariaLabels: { tableLabel: 'Refused messages', selectionGroupLabel: '' }, header: _jsxs(SpaceBetween, { size: "xs", children: [_jsx(Header, { variant: "awsui-h1-sticky", description: "Messages of the intake queues of which no job was made, or not all jobs. They are stored for 14 days.", actions: _jsx(Button, { iconName: "refresh", ariaLabel: "Refresh", onClick: live.reload }), children: "Intake" }), _jsx(Stale, { live: live })] }), filter: _jsx("div", { className: "filters", children: _jsxs(SpaceBetween, { direction: "horizontal", size: "m", children: [!unknown && _jsx(WhoseChoice, {}), mayOversee(role) && (_jsx(Toggle, { checked: unknown, onChange: ({ detail }) => setUnknown(detail.checked), children: "Unknown senders" }))] }) }), pagination: _jsx(Pagination, { ...pages.bar(live.data?.cursor), ariaLabels: { nextPageLabel: 'Next page', previousPageLabel: 'Previous page', pageLabel: (n) => `Page ${n}` } }), empty: live.error !== null && live.data === null ? _jsx(Failed, { error: live.error, what: "messages", retry: live.reload }) : (_jsxs(Empty, { title: "No refused messages", children: [_jsx(Box, { variant: "p", color: "inherit", children: "A message is listed here when its body, its sender or its owner breaks a rule. You correct the message, and create its jobs." }), _jsx(DocsLink, { href: pageOfDocs('guides/intake'), children: "Create jobs by a queue" })] })), columnDefinitions: [
            {
                id: 'error',
                header: 'Error',
                isRowHeader: true,
                cell: (letter) => _jsx(To, { href: pageOfIntakeLetter(letter.message_id, unknown ? undefined : owner), children: _jsx(Words, { children: rulesOf(letter.errors) }) }),
                minWidth: 240,
            },
            { id: 'queue', header: 'Queue', cell: (letter) => letter.queue },
            { id: 'sender', header: 'Sender', cell: (letter) => _jsx(Words, { children: letter.sender }), minWidth: 160 },
            { id: 'sent', header: 'Sent', cell: (letter) => _jsx(Ago, { at: letter.sent_at }) },
            { id: 'message', header: 'Message', cell: (letter) => _jsx(Words, { children: letter.message_id }), minWidth: 160 },
        ] }));
}
