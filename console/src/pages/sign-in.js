import { jsx as _jsx, jsxs as _jsxs, Fragment as _Fragment } from "react/jsx-runtime";
import Alert from '@cloudscape-design/components/alert';
import Button from '@cloudscape-design/components/button';
import Container from '@cloudscape-design/components/container';
import Form from '@cloudscape-design/components/form';
import FormField from '@cloudscape-design/components/form-field';
import Header from '@cloudscape-design/components/header';
import Input from '@cloudscape-design/components/input';
import SpaceBetween from '@cloudscape-design/components/space-between';
import Spinner from '@cloudscape-design/components/spinner';
import { useEffect, useState } from 'react';
import { api, apiError, take } from '../api/client';
import { begin, hasExpired } from '../api/session';
import { comeBack, go, waysToSignIn } from '../api/sso';
import { useTitle } from '../parts/parts';
let back = null; // the code of an address is used once
export function SignIn() {
    const [username, setUsername] = useState('');
    const [password, setPassword] = useState('');
    const [challenge, setChallenge] = useState(null);
    const [code, setCode] = useState('');
    const [busy, setBusy] = useState(false);
    const [error, setError] = useState(null);
    const [ways, setWays] = useState(null);
    const [byPassword, setByPassword] = useState(false);
    useTitle('Sign in');
    useEffect(() => {
        back ??= comeBack();
        back
            .then((found) => {
            if (found !== null && 'token' in found)
                begin({ token: found.token, username: found.username, signOutUrl: found.signOutUrl });
            else if (found !== null)
                setError(found.refusal);
        })
            .catch((refused) => setError(apiError(refused).message))
            .finally(() => void waysToSignIn().then(setWays));
    }, []);
    const sign = async (call) => {
        setBusy(true);
        setError(null);
        try {
            const found = await call();
            if ('challenge' in found) {
                setChallenge(found.session);
                setBusy(false);
            }
            else {
                begin({ token: found.token, username: found.user.username });
            }
        }
        catch (refused) {
            setError(apiError(refused).message);
            setBusy(false);
        }
    };
    const submit = (event) => {
        event.preventDefault();
        if (challenge === null)
            void sign(() => take(api.POST('/api/v1/auth/login', { body: { username, password, cookie: true } })));
        else
            void sign(() => take(api.POST('/api/v1/auth/challenge', { body: { session: challenge, code: code.replaceAll(' ', ''), cookie: true } })));
    };
    const again = () => {
        setChallenge(null);
        setCode('');
        setPassword('');
        setError(null);
    };
    const sso = ways?.sso ?? null;
    const fields = ways !== null && (sso === null || ways.passwords || byPassword);
    const actions = (_jsxs(SpaceBetween, { direction: "horizontal", size: "xs", children: [challenge !== null && _jsx(Button, { variant: "link", formAction: "none", onClick: again, children: "Cancel" }), fields && _jsx(Button, { variant: sso === null || challenge !== null ? 'primary' : 'normal', loading: busy, formAction: "submit", children: "Sign in" })] }));
    return (_jsx("main", { className: "sign-in", children: _jsx("form", { onSubmit: submit, children: _jsx(Container, { header: _jsx(Header, { variant: "h1", description: "Jobs that start on time.", children: "Sign in to Punctual" }), children: _jsx(Form, { actions: actions, errorText: error ?? undefined, children: _jsxs(SpaceBetween, { size: "m", children: [hasExpired() && error === null && _jsx(Alert, { type: "info", children: "Your session has expired. Sign in to return to the page." }), ways === null && _jsx(Spinner, {}), sso !== null && challenge === null && (_jsx(Button, { variant: "primary", formAction: "none", fullWidth: true, onClick: () => void go(sso), children: `Sign in with ${sso.name}` })), sso !== null && !fields && challenge === null && (_jsx(Button, { variant: "inline-link", formAction: "none", onClick: () => setByPassword(true), children: "Administrators: sign in with a password" })), fields && challenge === null && (_jsxs(_Fragment, { children: [_jsx(FormField, { label: "User name", children: _jsx(Input, { value: username, onChange: ({ detail }) => setUsername(detail.value), autoComplete: "username", name: "username", autoFocus: sso === null }) }), _jsx(FormField, { label: "Password", children: _jsx(Input, { type: "password", value: password, onChange: ({ detail }) => setPassword(detail.value), autoComplete: "current-password", name: "password" }) })] })), challenge !== null && (_jsx(FormField, { label: "Code", description: "The six digits that your program for one-time codes shows now.", children: _jsx(Input, { value: code, onChange: ({ detail }) => setCode(detail.value), autoComplete: "one-time-code", inputMode: "numeric", name: "code", autoFocus: true }) }))] }) }) }) }) }));
}
