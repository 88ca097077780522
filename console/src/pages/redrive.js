import { jsxs as _jsxs, jsx as _jsx, Fragment as _Fragment } from "react/jsx-runtime";
/** Run many dead letters again, at a rate. */
import Box from '@cloudscape-design/components/box';
import Button from '@cloudscape-design/components/button';
import FormField from '@cloudscape-design/components/form-field';
import Input from '@cloudscape-design/components/input';
import Modal from '@cloudscape-design/components/modal';
import SpaceBetween from '@cloudscape-design/components/space-between';
import { useState } from 'react';
import { api, apiError, take } from '../api/client';
import { errorsOf } from '../form/mended';
import { useNotices } from '../parts/notices';
import { useProgress } from '../parts/progress';
/** The dialog that starts one. Its id goes into the address: a reload or a shared address shows its progress. */
export function RedriveDialog({ filter, expected, owner, onClose }) {
    const [rate, setRate] = useState('10');
    const [limit, setLimit] = useState('');
    const [refused, setRefused] = useState(null);
    const [busy, setBusy] = useState(false);
    const show = useProgress();
    const { failed } = useNotices();
    const start = async () => {
        setBusy(true);
        setRefused(null);
        try {
            const chosen = Object.values(filter ?? {}).some((value) => value !== undefined && value !== null);
            const body = { ...filter, all: !chosen, rate: Number(rate), ...(limit.trim() === '' ? {} : { limit: Number(limit) }) };
            const made = await take(api.POST('/api/v1/dead-letters/redrive', { params: { query: { owner } }, body }));
            show(made.id, expected, owner);
            onClose();
        }
        catch (error) {
            const told = apiError(error);
            if (told.details.length > 0)
                setRefused({ error: told, sent: { rate, limit } });
            else
                failed('The jobs do not run again', told);
        }
        finally {
            setBusy(false);
        }
    };
    const errors = errorsOf(refused, () => ({ rate, limit }));
    return (_jsx(Modal, { visible: filter !== null, onDismiss: onClose, header: "Run failed jobs again", closeAriaLabel: "Close", footer: _jsx(Box, { float: "right", children: _jsxs(SpaceBetween, { direction: "horizontal", size: "xs", children: [_jsx(Button, { variant: "link", onClick: onClose, children: "Cancel" }), _jsx(Button, { variant: "primary", loading: busy, onClick: () => void start(), children: "Run again" })] }) }), children: _jsxs(SpaceBetween, { size: "m", children: [_jsxs(Box, { children: [expected, " ", expected === 1 ? 'job' : 'jobs', " at present. Each starts again with all its attempts. Jobs that fail from now on are not included."] }), _jsx(FormField, { label: "Jobs per second", errorText: errors['rate'], children: _jsx(Input, { type: "number", value: rate, onChange: ({ detail }) => setRate(detail.value) }) }), _jsx(FormField, { label: _jsxs(_Fragment, { children: ["Limit ", _jsx("i", { children: "\u2013 optional" })] }), description: "The earliest jobs first", errorText: errors['limit'], children: _jsx(Input, { type: "number", value: limit, onChange: ({ detail }) => setLimit(detail.value) }) })] }) }));
}
