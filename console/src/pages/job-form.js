import { jsx as _jsx, jsxs as _jsxs } from "react/jsx-runtime";
/** Post a one-time job: an empty form, a duplicate (`?from=ID`), or a failed job with an edited payload (`?retry=ID`). */
import ColumnLayout from '@cloudscape-design/components/column-layout';
import Button from '@cloudscape-design/components/button';
import Container from '@cloudscape-design/components/container';
import Form from '@cloudscape-design/components/form';
import FormField from '@cloudscape-design/components/form-field';
import Header from '@cloudscape-design/components/header';
import Input from '@cloudscape-design/components/input';
import SpaceBetween from '@cloudscape-design/components/space-between';
import Tiles from '@cloudscape-design/components/tiles';
import { useRef, useState } from 'react';
import { useNavigate, useSearchParams } from 'react-router';
import { api, apiError, take } from '../api/client';
import { jobCall } from '../code';
import { CallBacks, Choice, Labels, MaxAttempts, optional, Order, Retries, schemaOf, Telling, TimeOut, What } from '../form/fields';
import { FormErrors, useFirstError } from '../form/form-errors';
import { InstantField } from '../form/instant';
import { errorsOf } from '../form/mended';
import { fromJob, NEW_JOB, toJob, UNITS } from '../form/job-draft';
import { useLive } from '../live';
import { CopyAs } from '../parts/copy-as';
import { ofOwner, pageOfJob } from '../parts/links';
import { useNotices } from '../parts/notices';
import { Loaded, useTitle } from '../parts/parts';
import { useUnsaved } from '../parts/unsaved';
import { useWhose } from '../parts/whose';
const UNIT_CHOICES = Object.keys(UNITS).map((value) => ({ value, label: value }));
export default function JobForm() {
    const [query] = useSearchParams();
    const { owner } = useWhose();
    const retried = query.get('retry');
    const source = retried ?? query.get('from');
    const live = useLive(`job form ${source ?? ''} ${owner ?? ''}`, async () => {
        const [types, named, job] = await Promise.all([
            take(api.GET('/api/v1/types')),
            take(api.GET('/api/v1/targets')),
            source === null ? null : take(api.GET('/api/v1/jobs/{job_id}', { params: { path: { job_id: source }, query: { owner } } })),
        ]);
        return { types: types.items, targets: named.items, job };
    }, 0);
    const title = retried !== null ? 'Run again with changes' : source !== null ? 'Duplicate job' : 'Post a job';
    useTitle(title);
    return (_jsx(Loaded, { live: live, what: "job", children: ({ types, targets, job }) => _jsx(Editor, { types: types, targets: targets, job: job, title: title }, source ?? '') }));
}
function Editor({ types, targets, job, title }) {
    const navigate = useNavigate();
    const { done } = useNotices();
    const { owner } = useWhose();
    const form = useRef(null);
    const [first] = useState(() => (job === null ? NEW_JOB : fromJob(job)));
    const [draft, setDraft] = useState(first);
    const [refused, setRefused] = useState(null);
    const [broken, setBroken] = useState(false);
    const [busy, setBusy] = useState(false);
    const saved = useRef(false);
    const key = useRef(crypto.randomUUID());
    const question = useUnsaved(JSON.stringify(draft) !== JSON.stringify(first), saved);
    useFirstError(form, refused?.error ?? null);
    const set = (changes) => setDraft((before) => ({ ...before, ...changes }));
    const errors = errorsOf(refused, () => toJob(draft));
    const submit = async () => {
        setBusy(true);
        setRefused(null);
        const sent = toJob(draft);
        try {
            const made = await take(api.POST('/api/v1/jobs', { params: { header: { 'Idempotency-Key': key.current } }, body: sent }));
            saved.current = true;
            done('Posted the job.');
            void navigate(pageOfJob(made.id));
        }
        catch (error) {
            key.current = crypto.randomUUID();
            setRefused({ error: apiError(error), sent });
            setBusy(false);
        }
    };
    return (_jsxs("form", { ref: form, onSubmit: (event) => {
            event.preventDefault();
            void submit();
        }, children: [_jsx(Form, { header: _jsx(Header, { variant: "h1", description: description(job, owner), children: title }), actions: _jsxs(SpaceBetween, { direction: "horizontal", size: "xs", children: [_jsx(Button, { variant: "link", formAction: "none", onClick: () => void navigate(job === null ? `/jobs${ofOwner(owner)}` : pageOfJob(job.id, owner)), children: "Cancel" }), _jsx(CopyAs, { disabled: broken, call: () => jobCall(toJob(draft)) }), _jsx(Button, { variant: "primary", formAction: "submit", loading: busy, disabled: broken, children: "Post job" })] }), children: _jsxs(SpaceBetween, { size: "l", children: [_jsx(FormErrors, { error: refused?.error ?? null, errors: errors }), _jsx(Container, { header: _jsx(Header, { variant: "h2", children: "What to run" }), children: _jsx(What, { draft: draft, errors: errors, set: set, types: types, targets: targets, first: first, onBroken: setBroken }) }), _jsx(Container, { header: _jsx(Header, { variant: "h2", children: "When to run" }), children: _jsxs(SpaceBetween, { size: "m", children: [_jsx(Tiles, { ariaLabel: "When", value: draft.start, columns: 3, onChange: ({ detail }) => set({ start: detail.value }), items: [
                                            { value: 'now', label: 'Now' },
                                            { value: 'after', label: 'After a delay' },
                                            { value: 'at', label: 'At a time' },
                                        ] }), draft.start === 'after' && (_jsx(FormField, { label: "Delay", constraintText: "Counted from the moment you post the job", errorText: errors['delay_seconds'], children: _jsxs(SpaceBetween, { direction: "horizontal", size: "xs", children: [_jsx(Input, { type: "number", value: draft.after, ariaLabel: "How many", invalid: errors['delay_seconds'] !== undefined, onChange: ({ detail }) => set({ after: detail.value }) }), _jsx(Choice, { value: draft.unit, options: UNIT_CHOICES, label: "Unit", onChange: (unit) => set({ unit }) })] }) })), draft.start === 'at' && _jsx(InstantField, { label: "Time", value: draft.at, error: errors['execute_at'], onChange: (at) => set({ at }) }), _jsx(InstantField, { label: optional('Expires at'), description: "From this time on, the job neither starts nor is tried again", value: draft.expiresAt, error: errors['expires_at'], onChange: (expiresAt) => set({ expiresAt }) })] }) }), _jsx(Container, { header: _jsx(Header, { variant: "h2", children: "How to run" }), children: _jsxs(SpaceBetween, { size: "m", children: [_jsxs(ColumnLayout, { columns: 2, children: [_jsx(MaxAttempts, { draft: draft, errors: errors, set: set }), _jsx(TimeOut, { draft: draft, errors: errors, set: set, schema: schemaOf(draft, types, targets) })] }), _jsx(Retries, { draft: draft, errors: errors, set: set }), _jsx(Order, { draft: draft, errors: errors, set: set }), _jsx(CallBacks, { draft: draft, errors: errors, set: set }), _jsx(Telling, { draft: draft, errors: errors, set: set }), _jsx(Labels, { draft: draft, errors: errors, set: set })] }) })] }) }), question] }));
}
/** What becomes of the job that the form was filled from. */
function description(job, owner) {
    if (job === null)
        return undefined;
    const whose = owner === undefined ? '' : ' The new job belongs to you.';
    return `A new job with the content of ${job.id}, which does not change.${whose}`;
}
