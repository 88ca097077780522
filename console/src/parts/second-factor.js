import { jsx as _jsx, Fragment as _Fragment, jsxs as _jsxs } from "react/jsx-runtime";
/** The second factor of one's own account: a program on a phone shows codes. */
import Alert from '@cloudscape-design/components/alert';
import Box from '@cloudscape-design/components/box';
import FormField from '@cloudscape-design/components/form-field';
import Input from '@cloudscape-design/components/input';
import SpaceBetween from '@cloudscape-design/components/space-between';
import Spinner from '@cloudscape-design/components/spinner';
import { useEffect, useState } from 'react';
import { encode } from 'uqr';
import { api, apiError, take } from '../api/client';
import { FormDialog } from './form-dialog';
import { useNotices } from './notices';
const FIELDS = ['current_password', 'code'];
export function SecondFactorDialog({ onClose }) {
    const [found, setFound] = useState(null);
    const [begun, setBegun] = useState(null);
    const [password, setPassword] = useState('');
    const [code, setCode] = useState('');
    const [error, setError] = useState(null);
    const { done } = useNotices();
    useEffect(() => {
        take(api.GET('/api/v1/auth/totp')).then(setFound, (refused) => setError(apiError(refused).message));
    }, []);
    const proof = { current_password: password, code: code.replaceAll(' ', '') };
    const act = async () => {
        if (found?.enabled) {
            await take(api.POST('/api/v1/auth/totp/disable', { body: proof }));
            done('Your second factor is off.');
        }
        else if (begun === null) {
            setBegun(await take(api.POST('/api/v1/auth/totp', { body: { current_password: password } })));
            return false; // the dialog goes on with the code
        }
        else {
            await take(api.PUT('/api/v1/auth/totp', { body: proof }));
            done('Your second factor is on. From now on you need a code to sign in.');
        }
        return true;
    };
    const title = found?.enabled ? 'Switch the second factor off' : 'Switch a second factor on';
    const yes = found?.enabled ? 'Switch off' : begun === null ? 'Continue' : 'Switch on';
    return (_jsx(FormDialog, { title: title, yes: yes, fields: FIELDS, values: proof, act: act, onClose: onClose, children: (errors) => (_jsxs(SpaceBetween, { size: "m", children: [error !== null && _jsx(Alert, { type: "error", children: error }), found === null && error === null && _jsx(Spinner, {}), found !== null && !found.possible && _jsx(Alert, { type: "info", children: "You sign in with the identity provider of your organization, which asks for further factors itself." }), found?.possible && begun === null && (_jsx(FormField, { label: "Current password", errorText: errors['current_password'], children: _jsx(Input, { type: "password", value: password, onChange: ({ detail }) => setPassword(detail.value), autoComplete: "current-password", autoFocus: true }) })), begun !== null && (_jsxs(_Fragment, { children: [_jsx(Box, { children: "Scan this code with a program for one-time codes, or type the key into it." }), _jsx(QrCode, { text: begun.uri }), _jsx(Box, { variant: "code", children: begun.secret.replace(/(.{4})(?=.)/g, '$1 ') })] })), (begun !== null || (found?.possible && found.enabled)) && (_jsx(FormField, { label: "Code", description: "The six digits that the program shows now.", errorText: errors['code'], children: _jsx(Input, { value: code, onChange: ({ detail }) => setCode(detail.value), autoComplete: "one-time-code", inputMode: "numeric", name: "code" }) }))] })) }));
}
/** Dark squares on white, also in dark mode: cameras need the contrast. */
function QrCode({ text }) {
    const { size, data } = encode(text, { ecc: 'M', border: 4 });
    const squares = data.flatMap((row, y) => row.flatMap((dark, x) => (dark ? [`M${x} ${y}h1v1h-1z`] : []))).join('');
    return (_jsxs("svg", { viewBox: `0 0 ${size} ${size}`, width: "220", height: "220", role: "img", "aria-label": "QR code of the key below", shapeRendering: "crispEdges", children: [_jsx("rect", { width: size, height: size, fill: "white" }), _jsx("path", { d: squares, fill: "black" })] }));
}
