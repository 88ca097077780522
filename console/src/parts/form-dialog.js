import { jsx as _jsx, jsxs as _jsxs } from "react/jsx-runtime";
/** A dialog with a form: what the API finds wrong stands at its fields, and it stays open until it was done. */
import Alert from '@cloudscape-design/components/alert';
import Box from '@cloudscape-design/components/box';
import Button from '@cloudscape-design/components/button';
import Modal from '@cloudscape-design/components/modal';
import SpaceBetween from '@cloudscape-design/components/space-between';
import { useId, useState } from 'react';
import { apiError } from '../api/client';
import { leftOver } from '../form/draft';
import { errorsOf } from '../form/mended';
import { ErrorText } from './parts';
/** Mounted while it is open, so that it begins empty each time. */
export function FormDialog({ title, yes, fields, values, disabled = false, act, onClose, children }) {
    const id = useId();
    const [refused, setRefused] = useState(null);
    const [busy, setBusy] = useState(false);
    const submit = async () => {
        setBusy(true);
        setRefused(null);
        try {
            if ((await act()) === false)
                setBusy(false);
            else
                onClose();
        }
        catch (error) {
            setRefused({ error: apiError(error), sent: values });
            setBusy(false);
        }
    };
    const errors = errorsOf(refused, () => values);
    const elsewhere = leftOver(errors, fields);
    const said = refused !== null && refused.error.details.length === 0 ? _jsx(ErrorText, { error: refused.error }) : elsewhere.length > 0 ? elsewhere.join('; ') : null;
    return (_jsx(Modal, { visible: true, onDismiss: onClose, header: title, closeAriaLabel: "Close", footer: _jsx(Box, { float: "right", children: _jsxs(SpaceBetween, { direction: "horizontal", size: "xs", children: [_jsx(Button, { variant: "link", formAction: "none", onClick: onClose, children: "Cancel" }), _jsx(Button, { variant: "primary", form: id, loading: busy, disabled: disabled, children: yes })] }) }), children: _jsx("form", { id: id, onSubmit: (event) => {
                event.preventDefault();
                void submit();
            }, children: _jsxs(SpaceBetween, { size: "m", children: [said !== null && _jsx(Alert, { type: "error", children: said }), children(errors)] }) }) }));
}
