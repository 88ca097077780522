import { jsx as _jsx, jsxs as _jsxs, Fragment as _Fragment } from "react/jsx-runtime";
/** The form of a payload, drawn from its JSON Schema; or the JSON itself. */
import AttributeEditor from '@cloudscape-design/components/attribute-editor';
import Checkbox from '@cloudscape-design/components/checkbox';
import FormField from '@cloudscape-design/components/form-field';
import Input from '@cloudscape-design/components/input';
import Select from '@cloudscape-design/components/select';
import SpaceBetween from '@cloudscape-design/components/space-between';
import Textarea from '@cloudscape-design/components/textarea';
import Toggle from '@cloudscape-design/components/toggle';
import { useState } from 'react';
import { write } from '../exact';
import { anything, asText, fallbackOf, fieldsOf, json, typedNumber, withField } from './schema';
import { Section } from './section';
import { authentication, AUTHENTICATION, headers, HEADERS } from './summaries';
const FOLDED = [...HEADERS, ...AUTHENTICATION];
export function PayloadForm({ schema, payload, errors, onChange, onBroken }) {
    const [raw, setRaw] = useState(false);
    const fields = fieldsOf(schema);
    const named = new Set(fields.map((field) => `payload.${field.name}`));
    const other = Object.entries(errors).filter(([field]) => field.startsWith('payload') && (raw || !named.has(field.split('.').slice(0, 2).join('.'))));
    const all = (some) => some.map((field) => _jsx(One, { field: field, payload: payload, error: errorOf(errors, field.name), onChange: onChange, onBroken: onBroken }, field.name));
    const folded = (header, summary, names) => {
        const some = fields.filter(({ name }) => names.includes(name));
        if (some.length === 0)
            return null;
        return (_jsx(Section, { header: header, summary: summary, wrong: some.some(({ name }) => errorOf(errors, name) !== undefined), children: _jsx(SpaceBetween, { size: "m", children: all(some) }) }));
    };
    const toggle = (_jsx(Toggle, { checked: raw, description: "Write the payload as the API takes it, instead of in fields", onChange: ({ detail }) => { setRaw(detail.checked); onBroken(false); }, children: "As JSON" }));
    if (raw) {
        return (_jsxs(SpaceBetween, { size: "m", children: [toggle, _jsx(Json, { label: "Payload", value: payload, error: other.map(([field, rule]) => `${field}: ${rule}`).join('; '), rows: 14, check: (value) => (value !== null && typeof value === 'object' && !Array.isArray(value) ? null : 'must be a JSON object'), onChange: (value) => onChange((value ?? {})), onBroken: onBroken })] }));
    }
    return (_jsxs(SpaceBetween, { size: "m", children: [toggle, all(fields.filter(({ name }) => !FOLDED.includes(name))), folded('Headers', headers(payload), HEADERS), folded('Authentication', authentication(payload), AUTHENTICATION), other.length > 0 && _jsx(FormField, { errorText: other.map(([field, rule]) => `${field}: ${rule}`).join('; ') })] }));
}
/** Of the field or of something within it. */
function errorOf(errors, name) {
    const path = `payload.${name}`;
    const found = Object.entries(errors).filter(([field]) => field === path || field.startsWith(`${path}.`));
    return found.length === 0 ? undefined : found.map(([field, rule]) => (field === path ? rule : `${field.slice(path.length + 1)}: ${rule}`)).join('; ');
}
function One({ field, payload, error, onChange, onBroken }) {
    const value = payload[field.name];
    const set = (next) => onChange(withField(payload, field.name, next));
    const label = field.required ? field.label : _jsxs(_Fragment, { children: [field.label, " ", _jsx("i", { children: "\u2013 optional" })] });
    if (field.widget === 'json') {
        return _jsx(Json, { label: label, description: field.description, value: value, error: error, rows: 6, onChange: set, onBroken: onBroken });
    }
    if (field.widget === 'switch') {
        return (_jsx(FormField, { errorText: error, children: _jsx(Checkbox, { checked: Boolean(value ?? field.fallback), description: field.description, onChange: ({ detail }) => set(detail.checked), children: field.label }) }));
    }
    return (_jsx(FormField, { label: label, description: field.description, errorText: error, stretch: field.widget === 'pairs', children: widget(field, value, fallbackOf(field, payload), set) }));
}
function widget(field, value, fallback, set) {
    switch (field.widget) {
        case 'choice': {
            const options = field.choices.map((choice) => ({ value: choice, label: choice }));
            const chosen = options.find((option) => option.value === (value ?? fallback)) ?? null;
            return _jsx(Select, { options: options, selectedOption: chosen, onChange: ({ detail }) => set(detail.selectedOption.value), placeholder: "Choose one" });
        }
        case 'number':
            return (_jsx(Input, { type: "number", value: value === undefined ? '' : String(value), placeholder: fallback === undefined ? undefined : String(fallback), onChange: ({ detail }) => set(typedNumber(detail.value)) }));
        case 'lines':
            return (_jsx(Textarea, { rows: 3, placeholder: "One per line", value: Array.isArray(value) ? value.join('\n') : '', onChange: ({ detail }) => set(detail.value === '' ? undefined : detail.value.split('\n')) }));
        case 'pairs':
            return _jsx(Pairs, { value: (value ?? {}), onChange: set });
        case 'any':
            return _jsx(Any, { value: value, onChange: set });
        case 'text':
            return _jsx(Textarea, { rows: 3, value: asText(value), onChange: ({ detail }) => set(detail.value) });
        default:
            return _jsx(Input, { value: asText(value), onChange: ({ detail }) => set(detail.value) });
    }
}
/** Keeps what is being typed, which need not have a name yet. */
function Pairs({ value, onChange }) {
    const [items, setItems] = useState(() => Object.entries(value).map(([key, text]) => ({ key, text })));
    const set = (next) => {
        setItems(next);
        const named = next.filter((item) => item.key !== '');
        onChange(named.length === 0 ? undefined : Object.fromEntries(named.map((item) => [item.key, item.text])));
    };
    const change = (index, part) => set(items.map((item, at) => (at === index ? { ...item, ...part } : item)));
    return (_jsx(AttributeEditor, { items: items, addButtonText: "Add", removeButtonText: "Remove", empty: "None", onAddButtonClick: () => set([...items, { key: '', text: '' }]), onRemoveButtonClick: ({ detail }) => set(items.filter((_, at) => at !== detail.itemIndex)), definition: [
            { label: 'Name', control: (item, at) => _jsx(Input, { value: item.key, onChange: ({ detail }) => change(at, { key: detail.value }) }) },
            { label: 'Value', control: (item, at) => _jsx(Input, { value: item.text, onChange: ({ detail }) => change(at, { text: detail.value }) }) },
        ] }));
}
/** A string, or JSON where it looks like it. What is typed stays as it is typed. */
function Any({ value, onChange }) {
    const [text, setText] = useState(() => asText(value));
    return (_jsx(Textarea, { rows: 4, value: text, onChange: ({ detail }) => {
            setText(detail.value);
            onChange(anything(detail.value));
        } }));
}
export function Json({ label, description, value, error, rows, check, onChange, onBroken }) {
    const [text, setText] = useState(() => (value === undefined ? '' : write(value, 2)));
    const [why, setWhy] = useState(null);
    const typed = (next) => {
        setText(next);
        const parsed = json(next);
        const wrong = parsed.ok ? (check?.(parsed.value) ?? null) : parsed.why;
        setWhy(wrong);
        onBroken(wrong !== null);
        if (parsed.ok && wrong === null)
            onChange(parsed.value);
    };
    return (_jsx(FormField, { label: label, description: description, errorText: why ?? error, stretch: true, children: _jsx(Textarea, { rows: rows, value: text, spellcheck: false, onChange: ({ detail }) => typed(detail.value) }) }));
}
