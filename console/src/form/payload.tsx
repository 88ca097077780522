/** The form of a payload, drawn from its JSON Schema; or the JSON itself. */
import AttributeEditor from '@cloudscape-design/components/attribute-editor';
import Checkbox from '@cloudscape-design/components/checkbox';
import FormField from '@cloudscape-design/components/form-field';
import Input from '@cloudscape-design/components/input';
import Select from '@cloudscape-design/components/select';
import SpaceBetween from '@cloudscape-design/components/space-between';
import Textarea from '@cloudscape-design/components/textarea';
import Toggle from '@cloudscape-design/components/toggle';
import { useState, type ReactNode } from 'react';

import { write } from '../exact';
import type { FieldErrors } from './draft';
import { anything, asText, fallbackOf, fieldsOf, json, typedNumber, withField, type Field, type Schema } from './schema';
import { Section } from './section';
import { authentication, AUTHENTICATION, headers, HEADERS } from './summaries';

type Payload = Record<string, unknown>;
const FEW = 10; // choices that need no search
const FOLDED = [...HEADERS, ...AUTHENTICATION];

export interface PayloadProps {
  schema: Schema;
  payload: Payload;
  errors: FieldErrors;
  onChange: (payload: Payload) => void;
  /** Whether something typed is no JSON, and so not in the payload. */
  onBroken: (broken: boolean) => void;
  /** A form of its own for some of the fields. */
  own?: { fields: readonly string[]; form: ReactNode } | undefined;
}

export function PayloadForm({ schema, payload, errors, onChange, onBroken, own }: PayloadProps): ReactNode {
  const [raw, setRaw] = useState(false);
  const fields = fieldsOf(schema);
  const named = new Set(fields.map((field) => `payload.${field.name}`));
  const other = Object.entries(errors).filter(([field]) => field.startsWith('payload') && (raw || !named.has(field.split('.').slice(0, 2).join('.'))));
  const all = (some: readonly Field[]): ReactNode[] =>
    some.map((field) => <One key={field.name} field={field} payload={payload} error={errorOf(errors, `payload.${field.name}`)} onChange={onChange} onBroken={onBroken} />);
  const folded = (header: string, summary: string, names: readonly string[]): ReactNode => {
    const some = fields.filter(({ name }) => names.includes(name));
    if (some.length === 0) return null;
    return (
      <Section header={header} summary={summary} wrong={some.some(({ name }) => errorOf(errors, `payload.${name}`) !== undefined)}>
        <SpaceBetween size="m">{all(some)}</SpaceBetween>
      </Section>
    );
  };
  const toggle = (
    <Toggle checked={raw} description="Write the payload as the API takes it, instead of in fields" onChange={({ detail }) => { setRaw(detail.checked); onBroken(false); }}>
      As JSON
    </Toggle>
  );
  if (raw) {
    return (
      <SpaceBetween size="m">
        {toggle}
        <Json
          label="Payload"
          value={payload}
          error={other.map(([field, rule]) => `${field}: ${rule}`).join('; ')}
          rows={14}
          check={(value) => (value !== null && typeof value === 'object' && !Array.isArray(value) ? null : 'must be a JSON object')}
          onChange={(value) => onChange((value ?? {}) as Payload)}
          onBroken={onBroken}
        />
      </SpaceBetween>
    );
  }
  return (
    <SpaceBetween size="m">
      {toggle}
      {own?.form}
      {all(fields.filter(({ name }) => !FOLDED.includes(name) && own?.fields.includes(name) !== true))}
      {folded('Headers', headers(payload), HEADERS)}
      {folded('Authentication', authentication(payload), AUTHENTICATION)}
      {other.length > 0 && <FormField errorText={other.map(([field, rule]) => `${field}: ${rule}`).join('; ')} />}
    </SpaceBetween>
  );
}

/** Of the field or of something within it. */
export function errorOf(errors: FieldErrors, path: string): string | undefined {
  const found = Object.entries(errors).filter(([field]) => field === path || field.startsWith(`${path}.`));
  return found.length === 0 ? undefined : found.map(([field, rule]) => (field === path ? rule : `${field.slice(path.length + 1)}: ${rule}`)).join('; ');
}

interface OneProps {
  field: Field;
  payload: Payload;
  error: string | undefined;
  /** The height of a text. */
  rows?: number;
  onChange: (payload: Payload) => void;
  onBroken: (broken: boolean) => void;
}

export function One({ field, payload, error, rows = 3, onChange, onBroken }: OneProps): ReactNode {
  const value = payload[field.name];
  const set = (next: unknown): void => onChange(withField(payload, field.name, next));
  const label = field.required ? field.label : <>{field.label} <i>– optional</i></>;
  if (field.widget === 'json') {
    return <Json label={label} description={field.description} value={value} error={error} rows={6} onChange={set} onBroken={onBroken} />;
  }
  if (field.widget === 'switch') {
    return (
      <FormField errorText={error}>
        <Checkbox checked={Boolean(value ?? field.fallback)} description={field.description} onChange={({ detail }) => set(detail.checked)}>
          {field.label}
        </Checkbox>
      </FormField>
    );
  }
  return (
    <FormField label={label} description={field.description} errorText={error} stretch={field.widget === 'pairs'}>
      {widget(field, value, fallbackOf(field, payload), rows, set)}
    </FormField>
  );
}

function widget(field: Field, value: unknown, fallback: unknown, rows: number, set: (value: unknown) => void): ReactNode {
  switch (field.widget) {
    case 'choice': {
      const now = value ?? fallback;
      const others = typeof now === 'string' && !field.choices.includes(now) ? [now] : []; // such as a placeholder
      const options = [...field.choices, ...others].map((choice) => ({ value: choice, label: choice }));
      const chosen = options.find((option) => option.value === now) ?? null;
      return <Select options={options} selectedOption={chosen} filteringType={options.length > FEW ? 'auto' : 'none'} filteringAriaLabel={`Find a value of ${field.label}`} onChange={({ detail }) => set(detail.selectedOption.value)} placeholder="Choose one" />;
    }
    case 'number':
      return (
        <Input
          type="number"
          value={value === undefined ? '' : String(value)}
          placeholder={fallback === undefined ? undefined : String(fallback)}
          onChange={({ detail }) => set(typedNumber(detail.value))}
        />
      );
    case 'lines':
      return (
        <Textarea
          rows={3}
          placeholder="One per line"
          value={Array.isArray(value) ? value.join('\n') : ''}
          onChange={({ detail }) => set(detail.value === '' ? undefined : detail.value.split('\n'))}
        />
      );
    case 'pairs':
      return <Pairs value={(value ?? {}) as Record<string, string>} onChange={set} />;
    case 'any':
      return <Any value={value} onChange={set} />;
    case 'text':
      return <Textarea rows={rows} value={asText(value)} onChange={({ detail }) => set(detail.value)} />;
    default:
      return <Input value={asText(value)} onChange={({ detail }) => set(detail.value)} />;
  }
}

/** Keeps what is being typed, which need not have a name yet. */
function Pairs({ value, onChange }: { value: Record<string, string>; onChange: (value: unknown) => void }): ReactNode {
  const [items, setItems] = useState(() => Object.entries(value).map(([key, text]) => ({ key, text })));
  const set = (next: { key: string; text: string }[]): void => {
    setItems(next);
    const named = next.filter((item) => item.key !== '');
    onChange(named.length === 0 ? undefined : Object.fromEntries(named.map((item) => [item.key, item.text])));
  };
  const change = (index: number, part: Partial<{ key: string; text: string }>): void =>
    set(items.map((item, at) => (at === index ? { ...item, ...part } : item)));
  return (
    <AttributeEditor
      items={items}
      addButtonText="Add"
      removeButtonText="Remove"
      empty="None"
      onAddButtonClick={() => set([...items, { key: '', text: '' }])}
      onRemoveButtonClick={({ detail }) => set(items.filter((_, at) => at !== detail.itemIndex))}
      definition={[
        { label: 'Name', control: (item, at) => <Input value={item.key} onChange={({ detail }) => change(at, { key: detail.value })} /> },
        { label: 'Value', control: (item, at) => <Input value={item.text} onChange={({ detail }) => change(at, { text: detail.value })} /> },
      ]}
    />
  );
}

/** A string, or JSON where it looks like it. What is typed stays as it is typed. */
function Any({ value, onChange }: { value: unknown; onChange: (value: unknown) => void }): ReactNode {
  const [text, setText] = useState(() => asText(value));
  return (
    <Textarea
      rows={4}
      value={text}
      onChange={({ detail }) => {
        setText(detail.value);
        onChange(anything(detail.value));
      }}
    />
  );
}

interface JsonProps {
  label: ReactNode;
  description?: string;
  value: unknown;
  error: string | undefined;
  rows: number;
  check?: (value: unknown) => string | null;
  onChange: (value: unknown) => void;
  onBroken: (broken: boolean) => void;
}

export function Json({ label, description, value, error, rows, check, onChange, onBroken }: JsonProps): ReactNode {
  const [text, setText] = useState(() => (value === undefined ? '' : write(value, 2)));
  const [why, setWhy] = useState<string | null>(null);
  const typed = (next: string): void => {
    setText(next);
    const parsed = json(next);
    const wrong = parsed.ok ? (check?.(parsed.value) ?? null) : parsed.why;
    setWhy(wrong);
    onBroken(wrong !== null);
    if (parsed.ok && wrong === null) onChange(parsed.value);
  };
  return (
    <FormField label={label} description={description} errorText={why ?? error} stretch>
      <Textarea rows={rows} value={text} spellcheck={false} onChange={({ detail }) => typed(detail.value)} />
    </FormField>
  );
}
