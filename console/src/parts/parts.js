import { jsx as _jsx, jsxs as _jsxs, Fragment as _Fragment } from "react/jsx-runtime";
/** Small things that several pages show. */
import Alert from '@cloudscape-design/components/alert';
import Box from '@cloudscape-design/components/box';
import Button from '@cloudscape-design/components/button';
import Link from '@cloudscape-design/components/link';
import Modal from '@cloudscape-design/components/modal';
import SpaceBetween from '@cloudscape-design/components/space-between';
import Spinner from '@cloudscape-design/components/spinner';
import { useEffect, useState } from 'react';
import { useNavigate } from 'react-router';
import { pageOfError } from '../docs';
import { read, write } from '../exact';
import { DocsLink } from './docs-link';
import { When } from './time';
/** A link within the console: no reload, but its address can be copied and opened in another tab. */
export function To({ href, children, ...rest }) {
    const navigate = useNavigate();
    return (_jsx(Link, { ...rest, href: href, onFollow: (event) => {
            if (event.detail.external)
                return;
            event.preventDefault();
            void navigate(href);
        }, children: children }));
}
export function useTitle(title) {
    useEffect(() => {
        document.title = `${title} · Punctual`;
    }, [title]);
}
/** Nothing yet, an error before anything was seen, or the page; an error after that stands above it. */
export function Loaded({ live, what, children }) {
    if (live.data === null) {
        if (live.error !== null)
            return _jsx(Failed, { error: live.error, what: what, retry: live.reload });
        return (_jsxs(Box, { textAlign: "center", padding: "xxl", children: [_jsx(Spinner, { size: "large" }), " ", _jsxs(Box, { variant: "p", children: ["Loading ", what] })] }));
    }
    return (_jsxs(SpaceBetween, { size: "m", children: [_jsx(Stale, { live: live }), children(live.data)] }));
}
/** That what is shown may be old. */
export function Stale({ live }) {
    if (live.error === null || live.data === null)
        return null;
    return (_jsxs(Alert, { type: "warning", header: "Not up to date", action: _jsx(Button, { onClick: live.reload, children: "Try again" }), children: [live.error.message, " The page shows what it loaded before."] }));
}
export function Failed({ error, what, retry }) {
    if (error.status === 403)
        return _jsx(NotForRole, { text: error.message });
    const header = error.status === 404 ? `There is no such ${what}` : `Could not load ${what}`;
    return (_jsx(Alert, { type: "error", header: header, action: retry && error.status !== 404 ? _jsx(Button, { onClick: retry, children: "Try again" }) : undefined, children: _jsx(ErrorText, { error: error }) }));
}
/** The message of an error, the id of its request, and a link to its documentation. */
export function ErrorText({ error: { message, requestId, code } }) {
    const page = pageOfError(code);
    return (_jsxs(_Fragment, { children: [message, requestId !== null && _jsxs(Box, { color: "text-body-secondary", children: ["Request ", requestId] }), page !== null && _jsx("div", { children: _jsx(DocsLink, { href: page, children: "About this error" }) })] }));
}
/** A page that the viewer's role does not open. */
export function NotForRole({ text }) {
    return (_jsxs(SpaceBetween, { size: "m", children: [_jsx(Box, { variant: "h1", children: "Not for your role" }), _jsxs(Alert, { type: "info", children: [text, " Go to your ", _jsx(To, { href: "/tasks", children: "tasks" }), "."] })] }));
}
/** Text that others wrote: a long word of it wraps instead of making the page wider. */
export function Words({ children }) {
    return _jsx("span", { className: "words", children: children });
}
const INSTANT = /(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)/;
/** A reason of the API, with its instants in the viewer's zone. */
export function Reason({ text }) {
    return (_jsx(Words, { children: text.split(INSTANT).map((part, index) => (index % 2 === 1 ? _jsx(When, { at: part }, index) : part)) }));
}
/** An empty table: why, and what to do. */
export function Empty({ title, children }) {
    return (_jsx(Box, { textAlign: "center", color: "inherit", padding: { vertical: 'l' }, children: _jsxs(SpaceBetween, { size: "xs", children: [_jsx("b", { children: title }), children] }) }));
}
/** Text of any length as it is, in a box that scrolls. */
export function Code({ text, label }) {
    return (_jsx("pre", { className: "code", tabIndex: 0, role: "region", "aria-label": label, children: text }));
}
/** Pretty if it is JSON, as it is otherwise. */
export function pretty(text) {
    if (text.length > 200_000)
        return text;
    try {
        return write(read(text), 2);
    }
    catch {
        return text;
    }
}
/** Ask before what cannot be undone. Returns the dialog to show and what opens it. */
export function useConfirm() {
    const [question, ask] = useState(null);
    const [busy, setBusy] = useState(false);
    const close = () => ask(null);
    const go = async () => {
        setBusy(true);
        try {
            await question?.act();
        }
        finally {
            setBusy(false);
            close();
        }
    };
    const dialog = (_jsx(Modal, { visible: question !== null, onDismiss: close, header: question?.title, closeAriaLabel: "Close", footer: _jsx(Box, { float: "right", children: _jsxs(SpaceBetween, { direction: "horizontal", size: "xs", children: [_jsx(Button, { variant: "link", onClick: close, children: "Cancel" }), _jsx(Button, { variant: "primary", loading: busy, onClick: () => void go(), children: question?.yes })] }) }), children: question?.text }));
    return [dialog, ask];
}
