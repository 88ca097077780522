import { jsx as _jsx, jsxs as _jsxs, Fragment as _Fragment } from "react/jsx-runtime";
/** What tasks and jobs share, in their forms and on their pages: what to run, and how. */
import Checkbox from '@cloudscape-design/components/checkbox';
import ColumnLayout from '@cloudscape-design/components/column-layout';
import FormField from '@cloudscape-design/components/form-field';
import Input from '@cloudscape-design/components/input';
import Select from '@cloudscape-design/components/select';
import SpaceBetween from '@cloudscape-design/components/space-between';
import TokenGroup from '@cloudscape-design/components/token-group';
import { useState } from 'react';
import { Words } from '../parts/parts';
import { span } from '../words';
import { labelOf } from './labels';
import { PayloadForm } from './payload';
import { Receivers } from './receivers';
import { anyOf, Section } from './section';
import { callback, labels, notifications, order, retries } from './summaries';
import { timeOuts } from './timeouts';
/** The choices of a field: each value that the API takes, and the absent one with what it means. */
export function choices(of, usual) {
    const named = Object.entries(of).map(([value, name]) => ({ value, ...name }));
    return usual === undefined ? named : [{ value: '', label: 'Default', description: usual }, ...named];
}
const JITTERS = choices({
    full: { label: 'Full', description: 'A random part of the wait' },
    equal: { label: 'Equal', description: 'Half of the wait, and a random part of the other half' },
    none: { label: 'None' },
});
const FAILURES = choices({
    continue: { label: 'Continue', description: 'The next jobs start after its last attempt' },
    pause: { label: 'Pause', description: 'The next jobs wait until you resume the key' },
}, 'Continue');
/** The schema of the payload: of the type, or of what the target leaves open. */
export function schemaOf(draft, types, targets) {
    const found = draft.target === '' ? types.find((each) => each.type === draft.type)?.payload_schema : targets.find((each) => each.name === draft.target)?.job_payload_schema;
    return (found ?? {});
}
/** The type or named target, and its payload. */
export function What({ draft, errors, set, types, targets, first, onBroken }) {
    return (_jsxs(SpaceBetween, { size: "m", children: [_jsx(FormField, { label: "Type or named target", errorText: errors['type'] ?? errors['target'], children: _jsx(Work, { draft: draft, types: types, targets: targets, onChange: (work) => set({ ...work, payload: work.target === first.target && (work.target !== '' || work.type === first.type) ? first.payload : {} }) }) }), _jsx(PayloadForm, { schema: schemaOf(draft, types, targets), payload: draft.payload, errors: errors, onChange: (payload) => set({ payload }), onBroken: onBroken }, `${draft.type} ${draft.target}`)] }));
}
export function MaxAttempts({ draft, errors, set }) {
    return _jsx(Number, { label: "Max attempts", value: draft.maxAttempts, error: errors['max_attempts'], onChange: (maxAttempts) => set({ maxAttempts }) });
}
/** The time-out of an attempt, beside that of the call if it has one. */
export function TimeOut({ draft, errors, set, schema }) {
    const both = timeOuts(schema, draft.payload, draft.timeout);
    return (_jsx(FormField, { label: "Attempt time-out (s)", constraintText: both?.useless === true ? undefined : (both?.text ?? 'The attempt is killed after this time.'), warningText: both?.useless === true ? both.text : undefined, errorText: errors['timeout_seconds'], children: _jsx(Input, { type: "number", value: draft.timeout, onChange: ({ detail }) => set({ timeout: detail.value }) }) }));
}
export function Retries({ draft, errors, set }) {
    return (_jsx(Section, { header: "Retries", summary: retries(draft), wrong: anyOf(errors, 'retry'), children: _jsxs(SpaceBetween, { size: "m", children: [_jsxs(ColumnLayout, { columns: 4, children: [_jsx(Number, { label: "First wait (s)", value: draft.retryBase, error: errors['retry.base_seconds'], onChange: (retryBase) => set({ retryBase }) }), _jsx(Number, { label: "Longest wait (s)", value: draft.retryCap, error: errors['retry.cap_seconds'], onChange: (retryCap) => set({ retryCap }) }), _jsx(FormField, { label: "Jitter", errorText: errors['retry.jitter'], children: _jsx(Choice, { value: draft.retryJitter, options: JITTERS, onChange: (retryJitter) => set({ retryJitter }) }) }), _jsx(Number, { label: optional('Stop retrying after (s)'), value: draft.retryElapsed, error: errors['retry.max_elapsed_seconds'], onChange: (retryElapsed) => set({ retryElapsed }) })] }), _jsx(FormField, { errorText: errors['retry.on_timeout'], children: _jsx(Checkbox, { checked: draft.retryOnTimeout, onChange: ({ detail }) => set({ retryOnTimeout: detail.checked }), children: "Retry after a time-out" }) })] }) }));
}
export function Order({ draft, errors, set }) {
    return (_jsx(Section, { header: "Order", summary: order(draft), wrong: anyOf(errors, 'ordering_key', 'on_failure'), children: _jsxs(ColumnLayout, { columns: 2, children: [_jsx(FormField, { label: optional('Ordering key'), description: "Your jobs with the same key start one after the other", errorText: errors['ordering_key'], children: _jsx(Input, { value: draft.orderingKey, onChange: ({ detail }) => set({ orderingKey: detail.value }) }) }), draft.orderingKey.trim() !== '' && (_jsx(FormField, { label: "If a job fails", errorText: errors['on_failure'], children: _jsx(Choice, { value: draft.onFailure, options: FAILURES, onChange: (onFailure) => set({ onFailure }) }) }))] }) }));
}
export function CallBacks({ draft, errors, set }) {
    return (_jsx(Section, { header: "Call-back", summary: callback(draft), wrong: anyOf(errors, 'callback'), children: _jsxs(SpaceBetween, { size: "m", children: [_jsx(FormField, { errorText: errors['callback'], children: _jsx(Checkbox, { checked: draft.callback, description: "The target only accepts the job; a worker reports the result.", onChange: ({ detail }) => set({ callback: detail.checked }), children: "The target reports by call-back" }) }), draft.callback && (_jsxs(ColumnLayout, { columns: 2, children: [_jsx(Number, { label: "Heartbeat time-out (s)", value: draft.leaseSeconds, error: errors['callback.lease_seconds'], onChange: (leaseSeconds) => set({ leaseSeconds }) }), _jsx(Number, { label: "Maximum duration (s)", value: draft.maxSeconds, error: errors['callback.max_seconds'], onChange: (maxSeconds) => set({ maxSeconds }) })] }))] }) }));
}
/** The name that its owner chose; that of a task never changes. */
function KeyField({ value, error, fixed = false, onChange }) {
    return (_jsx(FormField, { label: optional('Key'), description: "A name of your choice, to find and change it by", constraintText: fixed ? 'The key cannot be changed' : undefined, errorText: error, children: _jsx(Input, { value: value, disabled: fixed, spellcheck: false, onChange: ({ detail }) => onChange(detail.value) }) }));
}
/** By what it is found: the key and the tags; a task has a description, too. */
export function Labels({ draft, errors, set, fixed = false, children }) {
    return (_jsx(Section, { header: children === undefined ? 'Key and tags' : 'Description, key and tags', summary: labels(draft), wrong: anyOf(errors, 'description', 'key', 'tags'), children: _jsxs(SpaceBetween, { size: "m", children: [children, _jsx(KeyField, { value: draft.key, error: errors['key'], fixed: fixed, onChange: (key) => set({ key }) }), _jsx(FormField, { label: optional('Tags'), errorText: errors['tags'], children: _jsx(Tags, { tags: draft.tags, onChange: (tags) => set({ tags }) }) })] }) }));
}
/** Messages about its end, by e-mail, webhook or event. */
export function Telling({ draft, errors, set }) {
    return (_jsx(Section, { header: "Notifications", summary: notifications(draft), wrong: anyOf(errors, 'notifications', 'events'), children: _jsxs(SpaceBetween, { size: "m", children: [_jsx(Receivers, { draft: draft.notifications, errors: errors, onChange: (notifications) => set({ notifications }) }), _jsx(Events, { draft: draft, errors: errors, set: set })] }) }));
}
function Events({ draft, errors, set }) {
    return (_jsx(FormField, { errorText: errors['events'], children: _jsx(Checkbox, { checked: draft.events, description: "On the EventBridge bus of this stage", onChange: ({ detail }) => set({ events: detail.checked }), children: "Publish an event when it ends" }) }));
}
/** What to run: a type with all of its payload, or a named target with what its defaults leave open. */
function Work({ draft, types, targets, onChange }) {
    const plain = types.map((each) => ({ value: `type ${each.type}`, label: each.type, description: each.description }));
    const named = targets.map((each) => ({ value: `target ${each.name}`, label: each.name, description: each.description ?? `A target of type ${each.kind}`, disabled: !each.enabled }));
    const value = draft.target === '' ? `type ${draft.type}` : `target ${draft.target}`;
    const chosen = [...plain, ...named].find((option) => option.value === value) ?? { value, label: draft.target || draft.type };
    return (_jsx(Select, { options: named.length === 0 ? plain : [{ label: 'Named targets', options: named }, { label: 'Types', options: plain }], selectedOption: chosen, triggerVariant: "option", onChange: ({ detail }) => {
            const [what, ...rest] = (detail.selectedOption.value ?? '').split(' ');
            const name = rest.join(' ');
            if (what === 'type')
                onChange({ type: name, target: '' });
            else
                onChange({ type: targets.find((each) => each.name === name)?.kind ?? draft.type, target: name });
        } }));
}
export function Choice({ value, options, onChange, filter = false, label }) {
    const chosen = options.find((option) => option.value === value) ?? (value === '' ? null : { value, label: value });
    return (_jsx(Select, { options: options, selectedOption: chosen, filteringType: filter ? 'auto' : 'none', placeholder: "Choose one", triggerVariant: "option", ariaLabel: label, onChange: ({ detail }) => onChange(detail.selectedOption.value ?? '') }));
}
export function Number({ label, value, error, onChange }) {
    return (_jsx(FormField, { label: label, errorText: error, children: _jsx(Input, { type: "number", value: value, onChange: ({ detail }) => onChange(detail.value) }) }));
}
function Tags({ tags, onChange }) {
    const [text, setText] = useState('');
    const add = () => {
        const tag = text.trim();
        if (tag !== '' && !tags.includes(tag))
            onChange([...tags, tag]);
        setText('');
    };
    return (_jsxs(SpaceBetween, { size: "xs", children: [_jsx(Input, { value: text, placeholder: "Type a tag and press Enter", onChange: ({ detail }) => setText(detail.value), onBlur: add, onKeyDown: (event) => {
                    if (event.detail.key !== 'Enter')
                        return;
                    event.preventDefault();
                    add();
                } }), _jsx(TokenGroup, { items: tags.map((tag) => ({ label: tag, dismissLabel: `Remove ${tag}` })), onDismiss: ({ detail }) => onChange(tags.filter((_, at) => at !== detail.itemIndex)) })] }));
}
export function optional(label) {
    return (_jsxs(_Fragment, { children: [label, " ", _jsx("i", { children: "\u2013 optional" })] }));
}
/** What a page shows beside the type, the payload, the attempts and the receivers. */
export function details(work) {
    const text = (value) => _jsx(Words, { children: value || '–' });
    return [
        { label: 'Attempt time-out', value: span(work.timeout_seconds * 1_000) },
        { label: labelOf('key'), value: text(work.key) },
        { label: labelOf('ordering_key'), value: text(work.ordering_key) },
        { label: labelOf('events'), value: work.events ? 'Published when it ends' : '–' },
        { label: labelOf('tags'), value: text(work.tags.join(', ')) },
    ];
}
