import { jsx as _jsx } from "react/jsx-runtime";
/** Entries of the audit trail: who asked for what and when, and how it ended. */
import Box from '@cloudscape-design/components/box';
import Button from '@cloudscape-design/components/button';
import Pagination from '@cloudscape-design/components/pagination';
import Popover from '@cloudscape-design/components/popover';
import StatusIndicator from '@cloudscape-design/components/status-indicator';
import Table, {} from '@cloudscape-design/components/table';
import { idOf, useSession } from '../api/session';
import { actionInWords, fieldsAsked, outcomeOf, pageOf } from '../entries';
import { write } from '../exact';
import { Code, Empty, Failed, To } from './parts';
import { When } from './time';
function Changed({ entry }) {
    const session = useSession();
    const page = pageOf(entry, session === null ? '' : idOf(session.token));
    return page === null ? (entry.object ?? '–') : _jsx(To, { href: page, children: entry.object });
}
const COLUMNS = {
    at: { id: 'at', header: 'When', cell: (entry) => _jsx(When, { at: entry.at }) },
    who: { id: 'who', header: 'Author', cell: (entry) => _jsx("span", { title: entry.actor, children: entry.actor_name }) },
    action: { id: 'action', header: 'Change', cell: (entry) => actionInWords(entry), isRowHeader: true },
    object: {
        id: 'object',
        header: 'Object',
        cell: (entry) => _jsx(Changed, { entry: entry }),
    },
    changes: {
        id: 'changes',
        header: 'Values',
        cell: (entry) => Object.keys(entry.changes).length === 0 ? ('–') : (_jsx(Popover, { wrapTriggerText: false, size: "large", header: "Requested values", dismissAriaLabel: "Close", content: _jsx(Code, { label: "Requested values", text: write(entry.changes, 2) }), children: fieldsAsked(entry.changes) })),
        maxWidth: 320,
    },
    outcome: {
        id: 'outcome',
        header: 'Result',
        cell: (entry) => {
            const { look, word } = outcomeOf(entry.status);
            return _jsx(StatusIndicator, { type: look, children: word });
        },
    },
    address: { id: 'address', header: 'IP address', cell: (entry) => entry.address || '–' },
};
export function TrailTable({ live, pages, columns, ...rest }) {
    return (_jsx(Table, { ...rest, contentDensity: "compact", trackBy: "id", items: live.data?.items ?? [], loading: live.loading, loadingText: "Loading entries", ariaLabels: { tableLabel: 'Audit trail', selectionGroupLabel: '' }, columnDefinitions: columns.map((name) => COLUMNS[name]), pagination: _jsx(Pagination, { ...pages.bar(live.data?.cursor), ariaLabels: { nextPageLabel: 'Next page', previousPageLabel: 'Previous page', pageLabel: (n) => `Page ${n}` } }), empty: live.error !== null && live.data === null ? _jsx(Failed, { error: live.error, what: "the audit trail", retry: live.reload }) : _jsx(Empty, { title: "No changes", children: _jsx(Box, { variant: "p", color: "inherit", children: "Every change that a user requests is listed here. Choose a longer time or another filter to see older ones." }) }) }));
}
export function Refresh({ live }) {
    return _jsx(Button, { iconName: "refresh", ariaLabel: "Refresh", formAction: "none", onClick: live.reload });
}
