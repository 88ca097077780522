import { jsx as _jsx } from "react/jsx-runtime";
/** The next runs of a schedule that is being typed, as the API sees them. */
import Alert from '@cloudscape-design/components/alert';
import Badge from '@cloudscape-design/components/badge';
import Box from '@cloudscape-design/components/box';
import Table from '@cloudscape-design/components/table';
import { Ago, When } from '../parts/time';
/** A local time such as `2027-03-28T03:00:00+02:00`, without seconds if they are 0. */
const shown = (at) => at.replace('T', ' ').replace(/:00(?=[+-]\d\d:\d\d$)/, '');
export function Runs({ runs, loading = false, empty }) {
    return (_jsx(Table, { variant: "embedded", contentDensity: "compact", items: runs, loading: loading, loadingText: "Loading the next runs", ariaLabels: { tableLabel: 'Next runs', selectionGroupLabel: '' }, empty: _jsx(Box, { textAlign: "center", color: "inherit", children: empty }), columnDefinitions: [
            { id: 'local', header: 'In the task’s time zone', cell: (run) => _jsx("span", { className: "when", children: shown(run.local_at) }), isRowHeader: true },
            { id: 'here', header: 'In your time zone', cell: (run) => (run.at === null ? '–' : _jsx(When, { at: run.at })) },
            { id: 'away', header: 'From now', cell: (run) => (run.at === null ? _jsx(Badge, { color: "grey", children: "skipped" }) : _jsx(Ago, { at: run.at })) },
            { id: 'note', header: 'Clock change', cell: (run) => (run.dst_note === null ? '' : _jsx(Badge, { color: "severity-medium", children: run.dst_note })) },
        ] }));
}
export function PreviewFailed({ message }) {
    return _jsx(Alert, { type: "warning", header: "No preview", children: message });
}
