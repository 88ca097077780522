import { jsx as _jsx, jsxs as _jsxs, Fragment as _Fragment } from "react/jsx-runtime";
import BreadcrumbGroup from '@cloudscape-design/components/breadcrumb-group';
import Button from '@cloudscape-design/components/button';
import ColumnLayout from '@cloudscape-design/components/column-layout';
import Container from '@cloudscape-design/components/container';
import Form from '@cloudscape-design/components/form';
import FormField from '@cloudscape-design/components/form-field';
import Header from '@cloudscape-design/components/header';
import Input from '@cloudscape-design/components/input';
import KeyValuePairs from '@cloudscape-design/components/key-value-pairs';
import Multiselect from '@cloudscape-design/components/multiselect';
import Select from '@cloudscape-design/components/select';
import SpaceBetween from '@cloudscape-design/components/space-between';
import StatusIndicator from '@cloudscape-design/components/status-indicator';
import Textarea from '@cloudscape-design/components/textarea';
import Toggle from '@cloudscape-design/components/toggle';
import { useRef, useState } from 'react';
import { useLocation, useNavigate, useSearchParams } from 'react-router';
import { api, apiError, take } from '../api/client';
import { useRole } from '../api/session';
import { write } from '../exact';
import { FormErrors, useFirstError } from '../form/form-errors';
import { errorsOf } from '../form/mended';
import { Json, PayloadForm } from '../form/payload';
import { asPayload, BLANK, fromTarget, loosened, toTarget } from '../form/target';
import { useLive } from '../live';
import { useNotices } from '../parts/notices';
import { Code, Loaded, NotForRole, useConfirm, useTitle, Words } from '../parts/parts';
import { Ago } from '../parts/time';
/** Register a named target, change it, or, for who is no administrator, see what a job gives to it. */
export default function TargetPage() {
    const { pathname } = useLocation();
    const [query] = useSearchParams();
    const name = pathname.endsWith('/new') ? undefined : (query.get('name') ?? '');
    const administers = useRole() === 'administrator';
    useTitle(name ?? 'Register target');
    const live = useLive(`target ${name ?? ''}`, async () => {
        const [types, target] = await Promise.all([
            take(api.GET('/api/v1/types')),
            name === undefined ? null : take(api.GET('/api/v1/targets/{name}', { params: { path: { name } } })),
        ]);
        return { types: types.items, target };
    }, 0);
    return (_jsx(Loaded, { live: live, what: "target", children: ({ types, target }) => administers ? _jsx(Editor, { types: types, target: target, reload: live.reload }, target?.version ?? 0) : target === null ? _jsx(NotYours, {}) : _jsx(Seen, { target: target }) }));
}
function NotYours() {
    return _jsx(NotForRole, { text: "Administrators register targets." });
}
function Trail({ name }) {
    const navigate = useNavigate();
    return (_jsx(BreadcrumbGroup, { items: [{ text: 'Named targets', href: '/targets' }, { text: name, href: '#' }], onFollow: (event) => {
            event.preventDefault();
            if (event.detail.href !== '#')
                void navigate(event.detail.href);
        } }));
}
function Seen({ target }) {
    return (_jsxs(SpaceBetween, { size: "l", children: [_jsx(Trail, { name: target.name }), _jsx(Header, { variant: "h1", description: target.description === null ? undefined : _jsx(Words, { children: target.description }), children: target.name }), _jsx(Container, { header: _jsx(Header, { variant: "h2", children: "Overview" }), children: _jsx(KeyValuePairs, { columns: 4, items: [
                        { label: 'Type', value: target.kind },
                        { label: 'State', value: _jsx(StatusIndicator, { type: target.enabled ? 'success' : 'stopped', children: target.enabled ? 'Enabled' : 'Disabled' }) },
                        { label: 'Starts per second', value: target.rate ?? 'unlimited' },
                        { label: 'Concurrent jobs', value: target.concurrency ?? 'unlimited' },
                    ] }) }), _jsx(Container, { header: _jsx(Header, { variant: "h2", children: "Payload schema" }), children: _jsx(Code, { label: "Payload schema", text: write(target.job_payload_schema, 2) }) })] }));
}
function Editor({ types, target, reload }) {
    const navigate = useNavigate();
    const { done, failed } = useNotices();
    const [dialog, confirm] = useConfirm();
    const form = useRef(null);
    const [draft, setDraft] = useState(() => (target === null ? BLANK : fromTarget(target)));
    const [refused, setRefused] = useState(null);
    const [broken, setBroken] = useState(false);
    const [busy, setBusy] = useState(false);
    const set = (changes) => setDraft((before) => ({ ...before, ...changes }));
    const schema = loosened((types.find(({ type }) => type === draft.kind)?.payload_schema ?? {}));
    const request = () => ({ ...toTarget(draft), name: draft.name });
    const errors = asPayload(errorsOf(refused, request));
    useFirstError(form, refused?.error ?? null);
    const kinds = types.map(({ type, description }) => ({ value: type, label: type, description }));
    const submit = async () => {
        setBusy(true);
        setRefused(null);
        const sent = request();
        try {
            const body = toTarget(draft);
            if (target === null) {
                const made = await take(api.POST('/api/v1/targets', { body: sent }));
                done(`Registered ${made.name}.`);
                void navigate('/targets');
            }
            else {
                await take(api.PUT('/api/v1/targets/{name}', { params: { path: { name: target.name } }, body: { ...body, version: target.version } }));
                done(`Saved ${target.name}.`);
                reload();
            }
        }
        catch (error) {
            setRefused({ error: apiError(error), sent });
        }
        finally {
            setBusy(false);
        }
    };
    const remove = async () => {
        if (target === null)
            return;
        try {
            await take(api.DELETE('/api/v1/targets/{name}', { params: { path: { name: target.name } } }));
            done(`Deleted ${target.name}.`);
            void navigate('/targets');
        }
        catch (refused) {
            failed(`${target.name} was not deleted`, refused);
        }
    };
    return (_jsxs(SpaceBetween, { size: "l", children: [dialog, _jsx(Trail, { name: target?.name ?? 'Register target' }), _jsx("form", { ref: form, onSubmit: (event) => {
                    event.preventDefault();
                    void submit();
                }, children: _jsx(Form, { header: _jsx(Header, { variant: "h1", description: target === null ? undefined : _jsxs(_Fragment, { children: ["Version ", target.version, ", changed ", _jsx(Ago, { at: target.updated_at }), ". A change applies to jobs that start more than a second later."] }), actions: target !== null && (_jsx(Button, { formAction: "none", onClick: () => confirm({ title: `Delete ${target.name}?`, text: 'Jobs and runs that refer to it fail when they start.', yes: 'Delete', act: remove }), children: "Delete" })), children: target?.name ?? 'Register a target' }), actions: _jsxs(SpaceBetween, { direction: "horizontal", size: "xs", children: [_jsx(Button, { variant: "link", formAction: "none", onClick: () => void navigate('/targets'), children: "Cancel" }), _jsx(Button, { variant: "primary", formAction: "submit", loading: busy, disabled: broken, children: target === null ? 'Register' : 'Save' })] }), children: _jsxs(SpaceBetween, { size: "l", children: [_jsx(FormErrors, { error: refused?.error ?? null, errors: errors }), _jsx(Container, { header: _jsx(Header, { variant: "h2", children: "General" }), children: _jsxs(SpaceBetween, { size: "m", children: [target === null && (_jsx(FormField, { label: "Name", description: "Tasks and jobs refer to the target by it", errorText: errors['name'], children: _jsx(Input, { value: draft.name, onChange: ({ detail }) => set({ name: detail.value }), autoFocus: true }) })), _jsx(FormField, { label: "Type", errorText: errors['kind'], children: _jsx(Select, { options: kinds, selectedOption: kinds.find(({ value }) => value === draft.kind) ?? null, triggerVariant: "option", disabled: target !== null, onChange: ({ detail }) => set({ kind: detail.selectedOption.value ?? '', defaults: {}, locked: null }) }) }), _jsx(FormField, { label: _jsxs(_Fragment, { children: ["Description ", _jsx("i", { children: "\u2013 optional" })] }), errorText: errors['description'], children: _jsx(Textarea, { rows: 2, value: draft.description, onChange: ({ detail }) => set({ description: detail.value }) }) }), _jsx(Toggle, { checked: draft.enabled, description: "If disabled, new jobs are refused and existing jobs fail when they start.", onChange: ({ detail }) => set({ enabled: detail.checked }), children: "Enabled" }), _jsxs(ColumnLayout, { columns: 2, children: [_jsx(FormField, { label: _jsxs(_Fragment, { children: ["Max starts per second ", _jsx("i", { children: "\u2013 optional" })] }), description: "Of all users\u2019 jobs together", errorText: errors['rate'], children: _jsx(Input, { type: "number", value: draft.rate, placeholder: "unlimited", onChange: ({ detail }) => set({ rate: detail.value }) }) }), _jsx(FormField, { label: _jsxs(_Fragment, { children: ["Max concurrent jobs ", _jsx("i", { children: "\u2013 optional" })] }), description: "Of all users\u2019 jobs together", errorText: errors['concurrency'], children: _jsx(Input, { type: "number", value: draft.concurrency, placeholder: "unlimited", onChange: ({ detail }) => set({ concurrency: detail.value }) }) })] })] }) }), _jsx(Container, { header: _jsx(Header, { variant: "h2", description: "Used for fields that a job leaves out", children: "Defaults" }), children: _jsx(PayloadForm, { schema: schema, payload: draft.defaults, errors: errors, onChange: (defaults) => set({ defaults }), onBroken: setBroken }, draft.kind) }), _jsx(Container, { header: _jsx(Header, { variant: "h2", children: "Allowed overrides" }), children: _jsxs(SpaceBetween, { size: "m", children: [_jsx(Toggle, { checked: draft.locked === null, description: "Jobs can override only the content, such as the body.", onChange: ({ detail }) => set({ locked: detail.checked ? null : Object.keys(draft.defaults) }), children: "Lock all but the content" }), draft.locked !== null && (_jsx(FormField, { label: "Locked defaults", errorText: errors['locked'], children: _jsx(Multiselect, { options: Object.keys(draft.defaults).map((value) => ({ value, label: value })), selectedOptions: draft.locked.map((value) => ({ value, label: value })), placeholder: "None", deselectAriaLabel: ({ label }) => `Unlock ${label ?? ''}`, onChange: ({ detail }) => set({ locked: detail.selectedOptions.map(({ value }) => value ?? '') }) }) })), _jsx(Json, { label: _jsxs(_Fragment, { children: ["JSON Schema of the payload ", _jsx("i", { children: "\u2013 optional" })] }), description: "Checked when a job is created. Without a schema, jobs may give every field that is not locked.", value: draft.payloadSchema, error: errors['payload_schema'], rows: 8, check: (value) => (value === undefined || (value !== null && typeof value === 'object' && !Array.isArray(value)) ? null : 'must be a JSON object'), onChange: (payloadSchema) => set({ payloadSchema: payloadSchema }), onBroken: setBroken })] }) })] }) }) })] }));
}
