import { jsx as _jsx, jsxs as _jsxs } from "react/jsx-runtime";
/** Change one's own password. */
import FormField from '@cloudscape-design/components/form-field';
import Input from '@cloudscape-design/components/input';
import SpaceBetween from '@cloudscape-design/components/space-between';
import { useState } from 'react';
import { api, ApiError, take } from '../api/client';
import { FormDialog } from './form-dialog';
import { useNotices } from './notices';
export const POLICY = 'At least 12 characters, with upper and lower case, a digit and a symbol.';
const FIELDS = ['current_password', 'new_password', 'again'];
export function PasswordDialog({ onClose }) {
    const [current, setCurrent] = useState('');
    const [wanted, setWanted] = useState('');
    const [again, setAgain] = useState('');
    const { done } = useNotices();
    const act = async () => {
        if (wanted !== again)
            throw new ApiError(400, 'validation_failed', '', [{ field: 'again', rule: 'does not match' }]);
        await take(api.POST('/api/v1/auth/password', { body: { current_password: current, new_password: wanted } }));
        done('Your password was changed.');
    };
    return (_jsx(FormDialog, { title: "Change your password", yes: "Change", fields: FIELDS, values: { current_password: current, new_password: wanted, again }, act: act, onClose: onClose, children: (errors) => (_jsxs(SpaceBetween, { size: "m", children: [_jsx(FormField, { label: "Current password", errorText: errors['current_password'], children: _jsx(Input, { type: "password", value: current, onChange: ({ detail }) => setCurrent(detail.value), autoComplete: "current-password", autoFocus: true }) }), _jsx(FormField, { label: "New password", description: POLICY, errorText: errors['new_password'], children: _jsx(Input, { type: "password", value: wanted, onChange: ({ detail }) => setWanted(detail.value), autoComplete: "new-password" }) }), _jsx(FormField, { label: "Confirm new password", errorText: errors['again'], children: _jsx(Input, { type: "password", value: again, onChange: ({ detail }) => setAgain(detail.value), autoComplete: "new-password" }) })] })) }));
}
