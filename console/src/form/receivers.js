import { jsx as _jsx, jsxs as _jsxs, Fragment as _Fragment } from "react/jsx-runtime";
/** The receivers of notifications about a job or a task's runs, and what they are notified of. */
import AttributeEditor from '@cloudscape-design/components/attribute-editor';
import Checkbox from '@cloudscape-design/components/checkbox';
import ColumnLayout from '@cloudscape-design/components/column-layout';
import FormField from '@cloudscape-design/components/form-field';
import Input from '@cloudscape-design/components/input';
import Select from '@cloudscape-design/components/select';
import SpaceBetween from '@cloudscape-design/components/space-between';
import { OCCASIONS, tellsAnyone, withOccasion } from './notifications';
const FORMATS = [
    { value: 'standard', label: 'Standard', description: 'All fields as JSON, signed' },
    { value: 'slack', label: 'Slack', description: 'A text message; the secret is optional' },
];
export function Receivers({ nobody = 'No notifications.', draft, errors, onChange }) {
    const set = (changes) => onChange({ ...draft, ...changes });
    const error = (field) => errors[`notifications.${field}`];
    const change = (index, changes) => set({ webhooks: draft.webhooks.map((hook, at) => (at === index ? { ...hook, ...changes } : hook)) });
    return (_jsxs(SpaceBetween, { size: "m", children: [_jsx(AttributeEditor, { items: draft.emails, addButtonText: "Add e-mail address", removeButtonText: "Remove", removeButtonAriaLabel: (address) => `Remove ${address || 'this address'}`, empty: tellsAnyone(draft) ? 'No e-mail addresses' : nobody, additionalInfo: _jsx(Wrong, { text: error('emails') }), onAddButtonClick: () => set({ emails: [...draft.emails, ''] }), onRemoveButtonClick: ({ detail }) => set({ emails: draft.emails.filter((_, at) => at !== detail.itemIndex) }), definition: [
                    {
                        label: 'E-mail address',
                        errorText: (_, at) => error(`emails.${at}`),
                        control: (address, at) => (_jsx(Input, { inputMode: "email", value: address, placeholder: "ann@example.com", onChange: ({ detail }) => set({ emails: draft.emails.map((each, index) => (index === at ? detail.value : each)) }) })),
                    },
                ] }), _jsx(AttributeEditor, { items: draft.webhooks, addButtonText: "Add webhook", removeButtonText: "Remove", removeButtonAriaLabel: (hook) => `Remove ${hook.url || 'this webhook'}`, empty: tellsAnyone(draft) ? 'No webhooks' : undefined, additionalInfo: _jsx(Wrong, { text: error('webhooks') }), onAddButtonClick: () => set({ webhooks: [...draft.webhooks, { url: '', signing_secret: '', format: 'standard' }] }), onRemoveButtonClick: ({ detail }) => set({ webhooks: draft.webhooks.filter((_, at) => at !== detail.itemIndex) }), definition: [
                    {
                        label: 'Webhook',
                        errorText: (_, at) => error(`webhooks.${at}.url`),
                        control: (hook, at) => (_jsx(Input, { value: hook.url, inputMode: "url", spellcheck: false, placeholder: "https://hooks.example.com/punctual", onChange: ({ detail }) => change(at, { url: detail.value }) })),
                    },
                    {
                        label: 'Format',
                        errorText: (_, at) => error(`webhooks.${at}.format`),
                        control: (hook, at) => (_jsx(Select, { options: FORMATS, selectedOption: FORMATS.find(({ value }) => value === hook.format) ?? { value: hook.format, label: hook.format }, onChange: ({ detail }) => change(at, { format: detail.selectedOption.value }) })),
                    },
                    {
                        label: 'Signing secret',
                        errorText: (_, at) => error(`webhooks.${at}.signing_secret`),
                        constraintText: 'The name of a stored secret, not its value',
                        control: (hook, at) => _jsx(Input, { value: hook.signing_secret, spellcheck: false, onChange: ({ detail }) => change(at, { signing_secret: detail.value }) }),
                    },
                ] }), tellsAnyone(draft) && (_jsxs(_Fragment, { children: [_jsx(FormField, { label: "Notify on", errorText: error('on'), stretch: true, children: _jsx(ColumnLayout, { columns: 3, children: Object.entries(OCCASIONS).map(([occasion, { label, description }]) => (_jsx(Checkbox, { checked: draft.on.includes(occasion), description: description, onChange: ({ detail }) => set({ on: withOccasion(draft.on, occasion, detail.checked) }), children: label }, occasion))) }) }), _jsxs(ColumnLayout, { columns: 2, children: [_jsx(FormField, { label: "Notify after this many failures in a row", errorText: error('after_failures'), children: _jsx(Input, { type: "number", value: draft.afterFailures, onChange: ({ detail }) => set({ afterFailures: detail.value }) }) }), _jsx(FormField, { label: "Notify at most every (s)", constraintText: "Notifications of the same kind in this time are combined into one", errorText: error('digest_seconds'), children: _jsx(Input, { type: "number", value: draft.digest, onChange: ({ detail }) => set({ digest: detail.value }) }) })] })] }))] }));
}
/** What is wrong with a list and not with one of its rows. */
function Wrong({ text }) {
    return text === undefined ? null : _jsx(FormField, { errorText: text });
}
