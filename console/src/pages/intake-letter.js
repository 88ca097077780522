import { jsx as _jsx, jsxs as _jsxs } from "react/jsx-runtime";
/** One refused message of an intake queue: why, its body, and what to do with it. */
import Alert from '@cloudscape-design/components/alert';
import Box from '@cloudscape-design/components/box';
import Button from '@cloudscape-design/components/button';
import Container from '@cloudscape-design/components/container';
import FormField from '@cloudscape-design/components/form-field';
import Header from '@cloudscape-design/components/header';
import KeyValuePairs from '@cloudscape-design/components/key-value-pairs';
import SpaceBetween from '@cloudscape-design/components/space-between';
import Textarea from '@cloudscape-design/components/textarea';
import { useState } from 'react';
import { useNavigate, useParams } from 'react-router';
import { api, apiError, take } from '../api/client';
import { read } from '../exact';
import { useLive } from '../live';
import { ofOwner } from '../parts/links';
import { useNotices } from '../parts/notices';
import { ErrorText, Loaded, pretty, useTitle, Words } from '../parts/parts';
import { When } from '../parts/time';
import { useWhose } from '../parts/whose';
const ROWS = 16;
/** The object in a text, or null if it is no JSON object. */
export function bodyOf(text) {
    try {
        const found = read(text);
        return typeof found === 'object' && found !== null && !Array.isArray(found) ? found : null;
    }
    catch {
        return null;
    }
}
export default function IntakeLetterPage() {
    const { id = '' } = useParams();
    useTitle('Refused message');
    const { owner } = useWhose();
    const live = useLive(`intake letter ${id} ${owner ?? ''}`, () => take(api.GET('/api/v1/intake/dead-letters/{message_id}', { params: { path: { message_id: id }, query: { owner } } })), 0);
    return _jsx(Loaded, { live: live, what: "message", children: (letter) => _jsx(Shown, { letter: letter, reload: live.reload }, `${letter.message_id} ${letter.accepted}`) });
}
function Shown({ letter, reload }) {
    const { owner, mayChange } = useWhose();
    const { done, failed } = useNotices();
    const navigate = useNavigate();
    const sent = pretty(letter.body);
    const [text, setText] = useState(sent);
    const [busy, setBusy] = useState(false);
    const [refused, setRefused] = useState(null);
    const params = { path: { message_id: letter.message_id }, query: { owner } };
    const back = () => void navigate(`/dead-letters/intake${ofOwner(owner)}`);
    const unchanged = text === sent && !letter.cut;
    const body = bodyOf(text);
    const retry = async () => {
        setBusy(true);
        setRefused(null);
        try {
            const made = await take(api.POST('/api/v1/intake/dead-letters/{message_id}/retry', { params, body: unchanged ? {} : { body } }));
            done(made.accepted === 1 ? '1 job is created.' : `${made.accepted} jobs are created.`);
            if (made.refused === 0)
                back();
            else
                reload();
        }
        catch (error) {
            setRefused(apiError(error));
        }
        setBusy(false);
    };
    const remove = async () => {
        try {
            await take(api.DELETE('/api/v1/intake/dead-letters/{message_id}', { params }));
            done('The message is deleted.');
            back();
        }
        catch (error) {
            failed('Not deleted', error);
        }
    };
    return (_jsxs(SpaceBetween, { size: "m", children: [_jsx(Header, { variant: "h1", description: letter.accepted > 0 ? `${letter.accepted} other jobs of this batch were created.` : undefined, actions: mayChange && (_jsxs(SpaceBetween, { direction: "horizontal", size: "xs", children: [_jsx(Button, { onClick: () => void remove(), children: "Delete" }), _jsx(Button, { variant: "primary", loading: busy, disabled: !unchanged && body === null, onClick: () => void retry(), children: unchanged ? 'Try again' : 'Try again with this body' })] })), children: "Refused message" }), refused !== null && (_jsx(Alert, { type: "error", header: "No job was created", children: _jsx(ErrorText, { error: refused }) })), _jsx(Container, { header: _jsx(Header, { variant: "h2", children: "Errors" }), children: _jsx(SpaceBetween, { size: "xs", children: letter.errors.map(({ field, rule }, index) => (_jsxs(Words, { children: [_jsx(Box, { variant: "strong", children: field }), " ", rule] }, index))) }) }), _jsx(Container, { header: _jsx(Header, { variant: "h2", children: "Message" }), children: _jsxs(SpaceBetween, { size: "m", children: [_jsx(KeyValuePairs, { columns: 3, items: [
                                { label: 'Message', value: _jsx(Words, { children: letter.message_id }) },
                                { label: 'Queue', value: letter.queue },
                                { label: 'Sender', value: _jsx(Words, { children: letter.sender }) },
                                { label: 'Owner', value: _jsx(Words, { children: letter.owner ?? 'unknown' }) },
                                { label: 'Sent', value: _jsx(When, { at: letter.sent_at }) },
                                { label: 'Deliveries', value: letter.received },
                            ] }), _jsx(FormField, { stretch: true, label: "Body", constraintText: "A delay is counted from the time at which the message was sent.", warningText: letter.cut ? 'The end of the body is missing: only 64 KB are stored.' : undefined, errorText: !unchanged && body === null ? 'must be a JSON object' : undefined, children: _jsx(Textarea, { value: text, rows: ROWS, readOnly: !mayChange, spellcheck: false, onChange: ({ detail }) => setText(detail.value) }) })] }) })] }));
}
