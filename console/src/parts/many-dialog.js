import { jsx as _jsx, jsxs as _jsxs, Fragment as _Fragment } from "react/jsx-runtime";
/** The dialog that starts an operation on what a list shows: it counts first, and asks. */
import Alert from '@cloudscape-design/components/alert';
import Box from '@cloudscape-design/components/box';
import FormField from '@cloudscape-design/components/form-field';
import Input from '@cloudscape-design/components/input';
import SpaceBetween from '@cloudscape-design/components/space-between';
import StatusIndicator from '@cloudscape-design/components/status-indicator';
import { useState } from 'react';
import { api, take } from '../api/client';
import { number } from '../form/typed';
import { useLive } from '../live';
import { chosenInWords, counted, WORDS } from '../operations';
import { FormDialog } from './form-dialog';
import { Reason } from './parts';
import { useProgress } from './progress';
const ASKS = {
    cancel_jobs: { verb: 'Cancel', text: 'Jobs that start in the meantime are skipped. Running jobs are asked to stop only if you filter by the status running.', rate: '50' },
    pause_tasks: { verb: 'Pause', text: 'Active tasks are paused: none of their runs starts until you resume them.', rate: '10' },
    resume_tasks: { verb: 'Resume', text: 'Paused tasks are resumed. Runs that were due during the pause do not start.', rate: '10' },
    delete_tasks: { verb: 'Delete', text: 'Their future runs are deleted too. Past runs stay in the history.', rate: '10' },
};
/** Mounted while it is open. */
export function ManyDialog({ many, owner, onClose }) {
    const { verb, text, rate: usual } = ASKS[many.action];
    const { of } = WORDS[many.action];
    const [rate, setRate] = useState(usual);
    const [limit, setLimit] = useState('');
    const [reason, setReason] = useState('');
    const show = useProgress();
    const found = useLive('count', async () => (await request(many, { dry_run: true }, owner)), 0);
    const chosen = found.data === null ? [] : chosenInWords(found.data.filter);
    const count = found.data?.matched ?? 0;
    const start = async () => {
        const asked = { rate: number(rate), ...(limit.trim() !== '' && { limit: number(limit) }), ...(reason.trim() !== '' && { reason: reason.trim() }) };
        const made = (await request(many, asked, owner));
        show(made.id, count, owner);
    };
    return (_jsx(FormDialog, { title: `${verb} all ${of}s that match?`, yes: `${verb} ${counted(count, of)}`, disabled: count === 0, fields: ['rate', 'limit', 'reason'], values: { rate, limit, reason }, act: start, onClose: onClose, children: (errors) => (_jsxs(SpaceBetween, { size: "m", children: [found.loading ? (_jsx(StatusIndicator, { type: "loading", children: "Counting" })) : found.error !== null ? (_jsx(Alert, { type: "error", header: `Could not count the ${of}s`, children: found.error.message })) : (_jsxs(Box, { children: [_jsxs(Box, { variant: "strong", children: [found.data?.complete === false ? 'At least ' : '', counted(count, of)] }), " ", count === 1 ? 'matches' : 'match', " at present", chosen.length === 0 ? `: all ${of}s` : _jsxs(_Fragment, { children: [": ", _jsx(Reason, { text: chosen.join('; ') })] }), "."] })), _jsx(Box, { children: text }), many.action === 'pause_tasks' && (_jsx(FormField, { label: _jsxs(_Fragment, { children: ["Reason ", _jsx("i", { children: "\u2013 optional" })] }), errorText: errors['reason'], children: _jsx(Input, { value: reason, onChange: ({ detail }) => setReason(detail.value) }) })), _jsx(FormField, { label: of === 'job' ? 'Jobs per second' : 'Tasks per second', errorText: errors['rate'], children: _jsx(Input, { type: "number", value: rate, onChange: ({ detail }) => setRate(detail.value) }) }), _jsx(FormField, { label: _jsxs(_Fragment, { children: ["Limit ", _jsx("i", { children: "\u2013 optional" })] }), errorText: errors['limit'], children: _jsx(Input, { type: "number", value: limit, onChange: ({ detail }) => setLimit(detail.value) }) })] })) }));
}
/** Start it, or count with `dry_run`. */
function request(many, asked, owner) {
    const params = { query: { owner } };
    switch (many.action) {
        case 'cancel_jobs':
            return take(api.POST('/api/v1/jobs/cancel', { params, body: { ...many.body, ...asked } }));
        case 'pause_tasks':
            return take(api.POST('/api/v1/tasks/pause', { params, body: { ...many.body, ...asked } }));
        case 'resume_tasks':
            return take(api.POST('/api/v1/tasks/resume', { params, body: { ...many.body, ...asked } }));
        case 'delete_tasks':
            return take(api.POST('/api/v1/tasks/delete', { params, body: { ...many.body, ...asked } }));
    }
}
