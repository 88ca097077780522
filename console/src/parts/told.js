import { jsx as _jsx, jsxs as _jsxs, Fragment as _Fragment } from "react/jsx-runtime";
/** The receivers of notifications about a job or a task's runs, and what they are notified of. */
import Box from '@cloudscape-design/components/box';
import KeyValuePairs from '@cloudscape-design/components/key-value-pairs';
import { OCCASIONS } from '../form/notifications';
import { span } from '../words';
export function Told({ notifications: { emails, webhooks, on, after_failures, digest_seconds } }) {
    return (_jsx(KeyValuePairs, { columns: 4, items: [
            { label: 'E-mail addresses', value: emails.length === 0 ? '–' : emails.map((address) => _jsx("div", { className: "words", children: address }, address)) },
            { label: 'Webhooks', value: webhooks.length === 0 ? '–' : webhooks.map(({ url, signing_secret, format }) => _jsxs("div", { className: "words", children: [url, _jsxs(Box, { color: "text-body-secondary", fontSize: "body-s", children: [format === 'slack' ? 'Slack format, ' : '', signing_secret === null ? 'not signed' : `signed with ${signing_secret}`] })] }, `${url} ${signing_secret}`)) },
            { label: 'Notify on', value: _jsxs(_Fragment, { children: [on.map((occasion) => OCCASIONS[occasion]?.short ?? occasion).join(', '), after_failures > 1 && _jsxs(Box, { color: "text-body-secondary", fontSize: "body-s", children: ["after ", after_failures, " failures in a row"] })] }) },
            { label: 'Notify at most every', value: span(digest_seconds * 1_000) },
        ] }));
}
