/** What tasks and jobs share, in their forms and on their pages: what to run, and how. */
import Checkbox from '@cloudscape-design/components/checkbox';
import ColumnLayout from '@cloudscape-design/components/column-layout';
import FormField from '@cloudscape-design/components/form-field';
import Input from '@cloudscape-design/components/input';
import Select from '@cloudscape-design/components/select';
import SpaceBetween from '@cloudscape-design/components/space-between';
import TokenGroup from '@cloudscape-design/components/token-group';
import { useState, type ReactNode } from 'react';

import type { Job, Schemas, Task, TaskType } from '../api/client';
import { Words } from '../parts/parts';
import { span } from '../words';
import { TypedPayload } from './action';
import type { FieldErrors, WorkDraft } from './draft';
import { labelOf } from './labels';
import { Number, Seconds } from './numbers';
import type { NotificationsDraft } from './notifications';
import { Receivers } from './receivers';
import type { Schema } from './schema';
import { anyOf, Section } from './section';
import { callback, labels, notifications, order, retries } from './summaries';
import type { Target } from './target';
import { timeOuts } from './timeouts';

interface Named {
  label: string;
  description?: string;
}

/** The choices of a field: each value that the API takes, and the absent one with what it means. */
export function choices<T extends string>(of: Record<T, Named>, usual?: string): ({ value: string } & Named)[] {
  const named = Object.entries<Named>(of).map(([value, name]) => ({ value, ...name }));
  return usual === undefined ? named : [{ value: '', label: 'Default', description: usual }, ...named];
}

const JITTERS = choices<Schemas['Jitter']>({
  full: { label: 'Full', description: 'A random part of the wait' },
  equal: { label: 'Equal', description: 'Half of the wait, and a random part of the other half' },
  none: { label: 'None' },
});
const FAILURES = choices<Schemas['OnFailure']>({
  continue: { label: 'Continue', description: 'The next jobs start after its last attempt' },
  pause: { label: 'Pause', description: 'The next jobs wait until you resume the key' },
}, 'Continue');

export interface Part {
  draft: WorkDraft;
  errors: FieldErrors;
  set: (changes: Partial<WorkDraft>) => void;
}

/** The schema of the payload: of the type, or of what the target leaves open. */
export function schemaOf(draft: WorkDraft, types: readonly TaskType[], targets: readonly Target[]): Schema {
  const found = draft.target === '' ? types.find((each) => each.type === draft.type)?.payload_schema : targets.find((each) => each.name === draft.target)?.job_payload_schema;
  return (found ?? {}) as Schema;
}

interface WhatProps extends Part {
  types: TaskType[];
  targets: Target[];
  /** The owner of the job or task; undefined: the viewer. */
  owner: string | undefined;
  /** The draft that the form began with: its payload comes back when its type is chosen again. */
  first: WorkDraft;
  onBroken: (broken: boolean) => void;
}

/** The type or named target, and its payload. */
export function What({ draft, errors, set, types, targets, owner, first, onBroken }: WhatProps): ReactNode {
  return (
    <SpaceBetween size="m">
      <FormField label="Type or named target" errorText={errors['type'] ?? errors['target']}>
        <Work
          draft={draft}
          types={types}
          targets={targets}
          onChange={(work) => set({ ...work, payload: work.target === first.target && (work.target !== '' || work.type === first.type) ? first.payload : {} })}
        />
      </FormField>
      <TypedPayload
        key={`${draft.type} ${draft.target}`}
        schema={schemaOf(draft, types, targets)}
        payload={draft.payload}
        type={draft.type}
        defaults={targets.find(({ name }) => name === draft.target)?.defaults ?? {}}
        scope={{ owner }}
        errors={errors}
        onChange={(payload) => set({ payload })}
        onBroken={onBroken}
      />
    </SpaceBetween>
  );
}

export function MaxAttempts({ draft, errors, set }: Part): ReactNode {
  return <Number label="Max attempts" value={draft.maxAttempts} error={errors['max_attempts']} onChange={(maxAttempts) => set({ maxAttempts })} />;
}

/** The time-out of an attempt, beside that of the call if it has one. */
export function TimeOut({ draft, errors, set, schema }: Part & { schema: Schema }): ReactNode {
  const both = timeOuts(schema, draft.payload, draft.timeout);
  return (
    <FormField
      label="Attempt time-out (s)"
      constraintText={both?.useless === true ? undefined : (both?.text ?? 'The attempt is killed after this time.')}
      warningText={both?.useless === true ? both.text : undefined}
      errorText={errors['timeout_seconds']}
    >
      <Input type="number" value={draft.timeout} onChange={({ detail }) => set({ timeout: detail.value })} />
    </FormField>
  );
}

export function Retries({ draft, errors, set }: Part): ReactNode {
  return (
    <Section header="Retries" summary={retries(draft)} wrong={anyOf(errors, 'retry')}>
      <SpaceBetween size="m">
        <ColumnLayout columns={4}>
          <Seconds label="First wait (s)" value={draft.retryBase} error={errors['retry.base_seconds']} onChange={(retryBase) => set({ retryBase })} />
          <Seconds label="Longest wait (s)" value={draft.retryCap} error={errors['retry.cap_seconds']} onChange={(retryCap) => set({ retryCap })} />
          <FormField label="Jitter" errorText={errors['retry.jitter']}>
            <Choice value={draft.retryJitter} options={JITTERS} onChange={(retryJitter) => set({ retryJitter })} />
          </FormField>
          <Seconds label={optional('Stop retrying after (s)')} value={draft.retryElapsed} error={errors['retry.max_elapsed_seconds']} onChange={(retryElapsed) => set({ retryElapsed })} />
        </ColumnLayout>
        <FormField errorText={errors['retry.on_timeout']}>
          <Checkbox checked={draft.retryOnTimeout} onChange={({ detail }) => set({ retryOnTimeout: detail.checked })}>
            Retry after a time-out
          </Checkbox>
        </FormField>
      </SpaceBetween>
    </Section>
  );
}

export function Order({ draft, errors, set }: Part): ReactNode {
  return (
    <Section header="Order and limit" summary={order(draft)} wrong={anyOf(errors, 'ordering_key', 'on_failure', 'limit')}>
      <ColumnLayout columns={2}>
        <FormField label={optional('Ordering key')} description="Your jobs with the same key start one after the other" errorText={errors['ordering_key']}>
          <Input value={draft.orderingKey} onChange={({ detail }) => set({ orderingKey: detail.value })} />
        </FormField>
        {draft.orderingKey.trim() !== '' && (
          <FormField label="If a job fails" errorText={errors['on_failure']}>
            <Choice value={draft.onFailure} options={FAILURES} onChange={(onFailure) => set({ onFailure })} />
          </FormField>
        )}
        <FormField label={optional('Limit key')} description="Your jobs with the same key share one limit" errorText={errors['limit'] ?? errors['limit.key']}>
          <Input value={draft.limitKey} onChange={({ detail }) => set({ limitKey: detail.value })} />
        </FormField>
        {draft.limitKey.trim() !== '' && (
          <>
            <Number label="Max jobs at once" value={draft.limitAtOnce} error={errors['limit.concurrency']} onChange={(limitAtOnce) => set({ limitAtOnce })} />
            <Number label="Max starts in a period" value={draft.limitRate} error={errors['limit.rate']} onChange={(limitRate) => set({ limitRate })} />
            <FormField label="Period" description="From 1s to 7d, such as 1m" errorText={errors['limit.period']}>
              <Input value={draft.limitPeriod} onChange={({ detail }) => set({ limitPeriod: detail.value })} />
            </FormField>
          </>
        )}
      </ColumnLayout>
    </Section>
  );
}

export function CallBacks({ draft, errors, set }: Part): ReactNode {
  return (
    <Section header="Call-back" summary={callback(draft)} wrong={anyOf(errors, 'callback')}>
      <SpaceBetween size="m">
        <FormField errorText={errors['callback']}>
          <Checkbox checked={draft.callback} description="The target only accepts the job; a worker reports the result." onChange={({ detail }) => set({ callback: detail.checked })}>
            The target reports by call-back
          </Checkbox>
        </FormField>
        {draft.callback && (
          <ColumnLayout columns={2}>
            <Seconds label="Heartbeat time-out (s)" value={draft.leaseSeconds} error={errors['callback.lease_seconds']} onChange={(leaseSeconds) => set({ leaseSeconds })} />
            <Seconds label="Maximum duration (s)" value={draft.maxSeconds} error={errors['callback.max_seconds']} onChange={(maxSeconds) => set({ maxSeconds })} />
          </ColumnLayout>
        )}
      </SpaceBetween>
    </Section>
  );
}

/** The name that its owner chose; that of a task never changes. */
function KeyField({ value, error, fixed = false, onChange }: { value: string; error: string | undefined; fixed?: boolean; onChange: (key: string) => void }): ReactNode {
  return (
    <FormField label={optional('Key')} description="A name of your choice, to find and change it by" constraintText={fixed ? 'The key cannot be changed' : undefined} errorText={error}>
      <Input value={value} disabled={fixed} spellcheck={false} onChange={({ detail }) => onChange(detail.value)} />
    </FormField>
  );
}

interface LabelsProps extends Part {
  draft: WorkDraft & { key: string; description?: string };
  set: (changes: Partial<WorkDraft & { key: string }>) => void;
  /** The key of a task never changes. */
  fixed?: boolean;
  children?: ReactNode;
}

/** By what it is found: the key and the tags; a task has a description, too. */
export function Labels({ draft, errors, set, fixed = false, children }: LabelsProps): ReactNode {
  return (
    <Section header={children === undefined ? 'Key and tags' : 'Description, key and tags'} summary={labels(draft)} wrong={anyOf(errors, 'description', 'key', 'tags')}>
      <SpaceBetween size="m">
        {children}
        <KeyField value={draft.key} error={errors['key']} fixed={fixed} onChange={(key) => set({ key })} />
        <FormField label={optional('Tags')} errorText={errors['tags']}>
          <Tags tags={draft.tags} onChange={(tags) => set({ tags })} />
        </FormField>
      </SpaceBetween>
    </Section>
  );
}

interface TellingProps extends Part {
  owner: string | undefined;
  draft: WorkDraft & { notifications: NotificationsDraft };
  set: (changes: Partial<WorkDraft & { notifications: NotificationsDraft }>) => void;
}

/** Messages about its end, by e-mail, webhook or event. */
export function Telling({ draft, errors, set, owner }: TellingProps): ReactNode {
  return (
    <Section header="Notifications" summary={notifications(draft)} wrong={anyOf(errors, 'notifications', 'events')}>
      <SpaceBetween size="m">
        <Receivers owner={owner} draft={draft.notifications} errors={errors} onChange={(notifications) => set({ notifications })} />
        <Events draft={draft} errors={errors} set={set} />
      </SpaceBetween>
    </Section>
  );
}

function Events({ draft, errors, set }: Part): ReactNode {
  return (
    <FormField errorText={errors['events']}>
      <Checkbox checked={draft.events} description="On the EventBridge bus of this stage" onChange={({ detail }) => set({ events: detail.checked })}>
        Publish an event when it ends
      </Checkbox>
    </FormField>
  );
}

interface WorkProps {
  draft: WorkDraft;
  types: TaskType[];
  targets: Target[];
  onChange: (work: Pick<WorkDraft, 'type' | 'target'>) => void;
}

/** What to run: a type with all of its payload, or a named target with what its defaults leave open. */
function Work({ draft, types, targets, onChange }: WorkProps): ReactNode {
  const plain = types.map((each) => ({ value: `type ${each.type}`, label: each.type, description: each.description }));
  const named = targets.map((each) => ({ value: `target ${each.name}`, label: each.name, description: each.description ?? `A target of type ${each.kind}`, disabled: !each.enabled }));
  const value = draft.target === '' ? `type ${draft.type}` : `target ${draft.target}`;
  const chosen = [...plain, ...named].find((option) => option.value === value) ?? { value, label: draft.target || draft.type };
  return (
    <Select
      options={named.length === 0 ? plain : [{ label: 'Named targets', options: named }, { label: 'Types', options: plain }]}
      selectedOption={chosen}
      triggerVariant="option"
      onChange={({ detail }) => {
        const [what, ...rest] = (detail.selectedOption.value ?? '').split(' ');
        const name = rest.join(' ');
        if (what === 'type') onChange({ type: name, target: '' });
        else onChange({ type: targets.find((each) => each.name === name)?.kind ?? draft.type, target: name });
      }}
    />
  );
}

interface ChoiceProps {
  value: string;
  options: { value: string; label: string; description?: string }[];
  onChange: (value: string) => void;
  filter?: boolean;
  label?: string;
}

export function Choice({ value, options, onChange, filter = false, label }: ChoiceProps): ReactNode {
  const chosen = options.find((option) => option.value === value) ?? (value === '' ? null : { value, label: value });
  return (
    <Select
      options={options}
      selectedOption={chosen}
      filteringType={filter ? 'auto' : 'none'}
      placeholder="Choose one"
      triggerVariant="option"
      ariaLabel={label}
      onChange={({ detail }) => onChange(detail.selectedOption.value ?? '')}
    />
  );
}

function Tags({ tags, onChange }: { tags: string[]; onChange: (tags: string[]) => void }): ReactNode {
  const [text, setText] = useState('');
  const add = (): void => {
    const tag = text.trim();
    if (tag !== '' && !tags.includes(tag)) onChange([...tags, tag]);
    setText('');
  };
  return (
    <SpaceBetween size="xs">
      <Input
        value={text}
        placeholder="Type a tag and press Enter"
        onChange={({ detail }) => setText(detail.value)}
        onBlur={add}
        onKeyDown={(event) => {
          if (event.detail.key !== 'Enter') return;
          event.preventDefault();
          add();
        }}
      />
      <TokenGroup
        items={tags.map((tag) => ({ label: tag, dismissLabel: `Remove ${tag}` }))}
        onDismiss={({ detail }) => onChange(tags.filter((_, at) => at !== detail.itemIndex))}
      />
    </SpaceBetween>
  );
}

export function optional(label: string): ReactNode {
  return (
    <>
      {label} <i>– optional</i>
    </>
  );
}

/** The key of a limit, and the limit. */
export function limitInWords(limit: Job['limit']): string {
  if (!limit) return '';
  const parts = [limit.concurrency === null ? '' : `${limit.concurrency} at once`, limit.rate === null ? '' : `${limit.rate} per ${limit.period}`];
  return `${limit.key}: ${parts.filter(Boolean).join(', ')}`;
}

/** What a page shows beside the type, the payload, the attempts and the receivers. */
export function details(work: Job | Task): { label: string; value: ReactNode }[] {
  const text = (value: string | null): ReactNode => <Words>{value || '–'}</Words>;
  return [
    { label: 'Attempt time-out', value: span(work.timeout_seconds * 1_000) },
    { label: labelOf('key'), value: text(work.key) },
    { label: labelOf('ordering_key'), value: text(work.ordering_key) },
    { label: labelOf('limit'), value: text(limitInWords(work.limit)) },
    { label: labelOf('events'), value: work.events ? 'Published when it ends' : '–' },
    { label: labelOf('tags'), value: text(work.tags.join(', ')) },
  ];
}
