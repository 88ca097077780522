import { jsx as _jsx, jsxs as _jsxs } from "react/jsx-runtime";
/** A dialog that asks for the reason of what it does. */
import FormField from '@cloudscape-design/components/form-field';
import Input from '@cloudscape-design/components/input';
import SpaceBetween from '@cloudscape-design/components/space-between';
import { useState } from 'react';
import { optional } from '../form/fields';
import { FormDialog } from './form-dialog';
/** Mounted while it is open. */
export function ReasonDialog({ title, text, yes, shown, act, onClose }) {
    const [reason, setReason] = useState('');
    return (_jsx(FormDialog, { title: title, yes: yes, fields: ['reason'], values: { reason }, act: () => act(reason.trim() || undefined), onClose: onClose, children: (errors) => (_jsxs(SpaceBetween, { size: "m", children: [_jsx("div", { children: text }), _jsx(FormField, { label: optional('Reason'), constraintText: shown, errorText: errors['reason'], children: _jsx(Input, { value: reason, onChange: ({ detail }) => setReason(detail.value), autoFocus: true }) })] })) }));
}
/** What the dialog says before tasks are paused. */
export const PAUSE_TASKS = { text: 'None of the runs starts until you resume. Runs that fall due in the meantime do not start later.', yes: 'Pause', shown: 'Shown with the task, and with each run that does not start' };
