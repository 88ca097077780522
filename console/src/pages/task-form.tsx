import Alert from '@cloudscape-design/components/alert';
import Box from '@cloudscape-design/components/box';
import Button from '@cloudscape-design/components/button';
import Checkbox from '@cloudscape-design/components/checkbox';
import ColumnLayout from '@cloudscape-design/components/column-layout';
import Container from '@cloudscape-design/components/container';
import ExpandableSection from '@cloudscape-design/components/expandable-section';
import Form from '@cloudscape-design/components/form';
import FormField from '@cloudscape-design/components/form-field';
import Header from '@cloudscape-design/components/header';
import Input from '@cloudscape-design/components/input';
import Modal from '@cloudscape-design/components/modal';
import Select from '@cloudscape-design/components/select';
import SpaceBetween from '@cloudscape-design/components/space-between';
import Textarea from '@cloudscape-design/components/textarea';
import Tiles from '@cloudscape-design/components/tiles';
import TokenGroup from '@cloudscape-design/components/token-group';
import { useEffect, useMemo, useRef, useState, type ReactNode } from 'react';
import { useBlocker, useNavigate, useParams, useSearchParams } from 'react-router';

import { api, apiError, take, type ApiError, type Task, type TaskType } from '../api/client';
import { empty, fieldErrors, fromTask, leftOver, scheduleOf, shownFields, toRequest, type Draft, type FieldErrors, type Kind } from '../form/draft';
import { InstantField } from '../form/instant';
import { PayloadForm } from '../form/payload';
import { PreviewFailed, Runs } from '../form/preview';
import { Receivers } from '../form/receivers';
import { fieldsOf, type Schema } from '../form/schema';
import type { Target } from '../form/target';
import { useLive, useSettled } from '../live';
import { useNotices } from '../parts/notices';
import { Loaded, useTitle } from '../parts/parts';
import { VIEWERS_ZONE } from '../parts/time';
import { cronInWords } from '../words';

const EXAMPLES = [
  { value: '* * * * *', label: 'Every minute' },
  { value: '*/5 * * * *', label: 'Every 5 minutes' },
  { value: '0 * * * *', label: 'Every hour' },
  { value: '30 2 * * *', label: 'Every night at 02:30' },
  { value: '0 9 * * 1-5', label: 'On weekdays at 09:00' },
  { value: '0 9 * * 1', label: 'Every Monday at 09:00' },
  { value: '0 0 1 * *', label: 'On the first of every month' },
];
const UNITS = ['seconds', 'minutes', 'hours', 'days'].map((value) => ({ value, label: value }));
const ZONES = ['UTC', ...Intl.supportedValuesOf('timeZone').filter((zone) => zone !== 'UTC')].map((value) => ({ value, label: value.replaceAll('_', ' ') }));
const OVERLAPS = [
  { value: '', label: 'Default', description: 'Skip if it recurs, else allow' },
  { value: 'skip', label: 'Skip', description: 'The new run does not start' },
  { value: 'queue_one', label: 'Queue one', description: 'It waits for the other to end; a third one is skipped' },
  { value: 'allow', label: 'Allow', description: 'Both run' },
  { value: 'cancel_running', label: 'Cancel the running one', description: 'It starts when that has ended' },
];
const MISFIRES = [
  { value: '', label: 'Default', description: 'Run the latest' },
  { value: 'run_latest', label: 'Run the latest', description: 'Of those missed, only the last one runs' },
  { value: 'run_all', label: 'Run all', description: 'In their order; of a long row only the last ones' },
  { value: 'skip', label: 'Skip', description: 'What was missed does not run' },
];
const JITTERS = [
  { value: 'full', label: 'Full', description: 'Any part of the wait' },
  { value: 'equal', label: 'Equal', description: 'Up to half of it' },
  { value: 'none', label: 'None' },
];
const GAPS = [
  { value: '', label: 'Default', description: 'Shift' },
  { value: 'shift', label: 'Shift', description: 'To the first instant after the gap' },
  { value: 'skip', label: 'Skip', description: 'Not on that day' },
];
const TWICE = [
  { value: '', label: 'Default', description: 'The first time' },
  { value: 'first', label: 'The first time' },
  { value: 'second', label: 'The second time' },
  { value: 'both', label: 'Both times' },
];
const FAILURES = [
  { value: '', label: 'Default', description: 'Block' },
  { value: 'block', label: 'Block', description: 'Those behind it go on once it is tried no more' },
  { value: 'park', label: 'Park', description: 'They wait until a person resumes the key' },
];

/** Create, clone (`?clone=ID`) and edit are one form. */
export default function TaskForm(): ReactNode {
  const { id } = useParams();
  const [query] = useSearchParams();
  const source = id ?? query.get('clone');
  const live = useLive(
    `form ${source ?? ''}`,
    async () => {
      const [types, named, task] = await Promise.all([
        take(api.GET('/api/v1/task-types')),
        take(api.GET('/api/v1/targets')),
        source === null ? null : take(api.GET('/api/v1/tasks/{task_id}', { params: { path: { task_id: source } } })),
      ]);
      return { types: types.task_types, targets: named.targets, task };
    },
    0,
  );
  useTitle(id === undefined ? 'Create task' : 'Edit task');
  return (
    <Loaded live={live} what="task">
      {({ types, targets, task }) => <Editor key={source ?? ''} types={types} targets={targets} task={task} editing={id !== undefined} />}
    </Loaded>
  );
}

interface EditorProps {
  types: TaskType[];
  targets: Target[];
  task: Task | null;
  editing: boolean;
}

function Editor({ types, targets, task, editing }: EditorProps): ReactNode {
  const navigate = useNavigate();
  const { done } = useNotices();
  const first = useMemo(() => initial(task, editing), [task, editing]);
  const [draft, setDraft] = useState(first);
  const [error, setError] = useState<ApiError | null>(null);
  const [errors, setErrors] = useState<FieldErrors>({});
  const [broken, setBroken] = useState(false);
  const [busy, setBusy] = useState(false);
  const saved = useRef(false);
  const key = useRef(crypto.randomUUID());
  const dirty = JSON.stringify(draft) !== JSON.stringify(first);
  const blocker = useBlocker(() => dirty && !saved.current);
  useEffect(() => {
    if (!dirty) return;
    const warn = (event: BeforeUnloadEvent): void => event.preventDefault();
    window.addEventListener('beforeunload', warn);
    return () => window.removeEventListener('beforeunload', warn);
  }, [dirty]);

  const set = (changes: Partial<Draft>): void => setDraft((before) => ({ ...before, ...changes }));
  const target = targets.find((each) => each.name === draft.target);
  const schema = (draft.target === '' ? types.find((each) => each.type === draft.type)?.payload_schema : target?.given) ?? {};
  const preview = usePreview(draft);
  const shown: FieldErrors = { ...preview.errors, ...errors };
  const recurs = draft.kind === 'cron' || draft.kind === 'rate';

  const submit = async (): Promise<void> => {
    setBusy(true);
    setError(null);
    setErrors({});
    try {
      const body = toRequest(draft);
      const result = editing && task !== null
        ? await take(api.PUT('/api/v1/tasks/{task_id}', { params: { path: { task_id: task.id } }, body: { ...body, generation: task.generation } }))
        : await take(api.POST('/api/v1/tasks', { params: { header: { 'Idempotency-Key': key.current } }, body }));
      saved.current = true;
      done(editing ? `Saved “${result.name}”.` : `Created “${result.name}”.`);
      void navigate(`/tasks/${result.id}`);
    } catch (refused) {
      const told = apiError(refused);
      key.current = crypto.randomUUID();
      setError(told);
      setErrors(fieldErrors(told));
      setBusy(false);
    }
  };

  const payloadFields = ['payload', ...fieldsOf(schema as Schema).map((field) => `payload.${field.name}`)];
  const elsewhere = leftOver(errors, shownFields(draft)).filter((text) => !payloadFields.some((field) => text.startsWith(field)));
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      <Form
        header={<Header variant="h1">{editing ? `Edit ${task?.name ?? ''}` : task === null ? 'Create task' : `Clone ${task.name}`}</Header>}
        actions={
          <SpaceBetween direction="horizontal" size="xs">
            <Button variant="link" formAction="none" onClick={() => void navigate(editing && task !== null ? `/tasks/${task.id}` : '/tasks')}>
              Cancel
            </Button>
            <Button variant="primary" formAction="submit" loading={busy} disabled={broken}>
              {editing ? 'Save' : 'Create task'}
            </Button>
          </SpaceBetween>
        }
        errorText={error === null ? undefined : error.details.length === 0 ? error.message : elsewhere.length > 0 ? elsewhere.join('; ') : `These are not as they must be: ${Object.keys(errors).join(', ')}.`}
      >
        <SpaceBetween size="l">
          <Container header={<Header variant="h2">What</Header>}>
            <SpaceBetween size="m">
              <FormField label="Name" errorText={shown['name']}>
                <Input value={draft.name} onChange={({ detail }) => set({ name: detail.value })} autoFocus={!editing} />
              </FormField>
              <FormField label={optional('Description')} errorText={shown['description']}>
                <Textarea rows={2} value={draft.description} onChange={({ detail }) => set({ description: detail.value })} />
              </FormField>
              <FormField label="Type or named target" errorText={shown['type'] ?? shown['target']}>
                <Work
                  draft={draft}
                  types={types}
                  targets={targets}
                  onChange={(work) => set({ ...work, payload: work.target === first.target && (work.target !== '' || work.type === first.type) ? first.payload : {} })}
                />
              </FormField>
              <PayloadForm key={`${draft.type} ${draft.target}`} schema={schema as Schema} payload={draft.payload} errors={errors} onChange={(payload) => set({ payload })} onBroken={setBroken} />
              <FormField label={optional('Tags')} errorText={shown['tags']}>
                <Tags tags={draft.tags} onChange={(tags) => set({ tags })} />
              </FormField>
            </SpaceBetween>
          </Container>

          <Container header={<Header variant="h2">When</Header>}>
            <SpaceBetween size="m">
              <Tiles
                ariaLabel="When"
                value={draft.kind}
                columns={4}
                onChange={({ detail }) => set({ kind: detail.value as Kind })}
                items={[
                  { value: 'now', label: 'At once', description: 'One run, now' },
                  { value: 'at', label: 'At a time', description: 'One run' },
                  { value: 'cron', label: 'By the calendar', description: 'Cron, in a time zone' },
                  { value: 'rate', label: 'At a rate', description: 'Every so often' },
                ]}
              />
              {draft.kind === 'at' && (
                <InstantField label="Time" value={draft.at} error={shown['schedule.at'] ?? shown['schedule']} onChange={(at) => set({ at })} />
              )}
              {draft.kind === 'cron' && (
                <ColumnLayout columns={2}>
                  <FormField
                    label="Cron"
                    description="Minute, hour, day of month, month, day of week"
                    constraintText={cronInWords(draft.cron) ?? 'The next runs tell what it means'}
                    errorText={shown['schedule.cron'] ?? shown['schedule']}
                  >
                    <Input value={draft.cron} spellcheck={false} onChange={({ detail }) => set({ cron: detail.value })} />
                  </FormField>
                  <FormField label="Or pick one" description="Then change it">
                    <Choice value={EXAMPLES.some((each) => each.value === draft.cron) ? draft.cron : ''} options={EXAMPLES} onChange={(cron) => set({ cron })} />
                  </FormField>
                </ColumnLayout>
              )}
              {draft.kind === 'rate' && (
                <FormField label="Every" errorText={shown['schedule.rate'] ?? shown['schedule']}>
                  <SpaceBetween direction="horizontal" size="xs">
                    <Input type="number" value={draft.every} ariaLabel="How many" onChange={({ detail }) => set({ every: detail.value })} />
                    <Choice value={draft.unit} options={UNITS} label="Unit" onChange={(unit) => set({ unit })} />
                  </SpaceBetween>
                </FormField>
              )}
              {draft.kind !== 'now' && (
                <FormField label="Time zone" errorText={shown['schedule.time_zone']}>
                  <Choice value={draft.timeZone} options={ZONES} filter onChange={(timeZone) => set({ timeZone })} />
                </FormField>
              )}
              {recurs && <Window draft={draft} errors={shown} set={set} />}
              {draft.kind !== 'now' && (
                <div aria-live="polite">
                  <Box variant="h3">Next runs</Box>
                  {preview.failed !== null ? (
                    <PreviewFailed message={preview.failed} />
                  ) : (
                    <Runs runs={preview.runs} loading={preview.loading} empty={draft.kind === 'at' && draft.at === '' ? 'Choose a time.' : 'None.'} />
                  )}
                </div>
              )}
            </SpaceBetween>
          </Container>

          <Container header={<Header variant="h2">How</Header>}>
            <SpaceBetween size="m">
              <ColumnLayout columns={3}>
                <Number label="Attempts at most" value={draft.maxAttempts} error={shown['max_attempts']} onChange={(maxAttempts) => set({ maxAttempts })} />
                <Number label="Time-out, seconds" value={draft.timeout} error={shown['timeout_seconds']} onChange={(timeout) => set({ timeout })} />
                <FormField label="If a run has not ended when the next is due" errorText={shown['overlap']}>
                  <Choice value={draft.overlap} options={OVERLAPS} onChange={(overlap) => set({ overlap })} />
                </FormField>
              </ColumnLayout>
              <More draft={draft} errors={shown} set={set} recurs={recurs} />
            </SpaceBetween>
          </Container>

          <Container header={<Header variant="h2" description="Who is told of its runs, and of which">Notifications</Header>}>
            <Receivers draft={draft.notifications} errors={errors} onChange={(notifications) => set({ notifications })} />
          </Container>
          {error?.status === 409 && (
            <Alert type="warning" header="Changed by somebody else meanwhile">
              Reload the page to see what the task is now; your changes would be lost.
            </Alert>
          )}
        </SpaceBetween>
      </Form>
      <Modal
        visible={blocker.state === 'blocked'}
        onDismiss={() => blocker.reset?.()}
        header="Leave without saving?"
        footer={
          <Box float="right">
            <SpaceBetween direction="horizontal" size="xs">
              <Button variant="link" formAction="none" onClick={() => blocker.reset?.()}>
                Stay
              </Button>
              <Button variant="primary" formAction="none" onClick={() => blocker.proceed?.()}>
                Leave
              </Button>
            </SpaceBetween>
          </Box>
        }
      >
        What you have changed is lost.
      </Modal>
    </form>
  );
}

function initial(task: Task | null, editing: boolean): Draft {
  const blank = empty(VIEWERS_ZONE);
  if (task === null) return blank;
  const draft = fromTask(task, blank);
  return editing ? draft : { ...draft, name: `${task.name} (copy)`.slice(0, 120) };
}

function Window({ draft, errors, set }: Part): ReactNode {
  return (
    <ExpandableSection headerText="First and last run, jitter, changes of the clock" defaultExpanded={draft.start + draft.end + draft.maxRuns + draft.jitter + draft.dstGap + draft.dstOverlap !== ''}>
      <SpaceBetween size="m">
        <ColumnLayout columns={2}>
          <InstantField label={optional('Not before')} value={draft.start} error={errors['schedule.start']} onChange={(start) => set({ start })} />
          <InstantField label={optional('Not at or after')} value={draft.end} error={errors['schedule.end']} onChange={(end) => set({ end })} />
          <Number label={optional('Runs at most')} value={draft.maxRuns} error={errors['schedule.max_runs']} onChange={(maxRuns) => set({ maxRuns })} />
          <Number label={optional('Jitter, seconds')} value={draft.jitter} error={errors['schedule.jitter_seconds']} onChange={(jitter) => set({ jitter })} />
        </ColumnLayout>
        {draft.kind === 'cron' && (
          <ColumnLayout columns={2}>
            <FormField label="A time that the clock jumps over" errorText={errors['schedule.dst_gap']}>
              <Choice value={draft.dstGap} options={GAPS} onChange={(dstGap) => set({ dstGap })} />
            </FormField>
            <FormField label="A time that comes twice" errorText={errors['schedule.dst_overlap']}>
              <Choice value={draft.dstOverlap} options={TWICE} onChange={(dstOverlap) => set({ dstOverlap })} />
            </FormField>
          </ColumnLayout>
        )}
      </SpaceBetween>
    </ExpandableSection>
  );
}

interface Part {
  draft: Draft;
  errors: FieldErrors;
  set: (changes: Partial<Draft>) => void;
}

function More({ draft, errors, set, recurs }: Part & { recurs: boolean }): ReactNode {
  return (
    <>
      <ExpandableSection headerText="Retries">
        <SpaceBetween size="m">
          <ColumnLayout columns={4}>
            <Number label="First wait, seconds" value={draft.retryBase} error={errors['retry.base_seconds']} onChange={(retryBase) => set({ retryBase })} />
            <Number label="Longest wait, seconds" value={draft.retryCap} error={errors['retry.cap_seconds']} onChange={(retryCap) => set({ retryCap })} />
            <FormField label="Left to chance" errorText={errors['retry.jitter']}>
              <Choice value={draft.retryJitter} options={JITTERS} onChange={(retryJitter) => set({ retryJitter })} />
            </FormField>
            <Number label={optional('No attempt later than, seconds')} value={draft.retryElapsed} error={errors['retry.max_elapsed_seconds']} onChange={(retryElapsed) => set({ retryElapsed })} />
          </ColumnLayout>
          <Checkbox checked={draft.retryOnTimeout} onChange={({ detail }) => set({ retryOnTimeout: detail.checked })}>
            Try again after a time-out
          </Checkbox>
        </SpaceBetween>
      </ExpandableSection>
      {recurs && (
        <ExpandableSection headerText="Missed runs">
          <ColumnLayout columns={3}>
            <FormField label="A run that could not start on time" errorText={errors['misfire']}>
              <Choice value={draft.misfire} options={MISFIRES} onChange={(misfire) => set({ misfire })} />
            </FormField>
            <Number label={optional('Late by, seconds')} value={draft.misfireThreshold} error={errors['misfire_threshold_seconds']} onChange={(misfireThreshold) => set({ misfireThreshold })} />
            {draft.misfire === 'run_all' && (
              <Number label={optional('Runs at most')} value={draft.maxCatchUp} error={errors['max_catch_up']} onChange={(maxCatchUp) => set({ maxCatchUp })} />
            )}
          </ColumnLayout>
        </ExpandableSection>
      )}
      <ExpandableSection headerText="Order">
        <ColumnLayout columns={2}>
          <FormField label={optional('Ordering key')} description="Your jobs of one key start one after the other" errorText={errors['ordering_key']}>
            <Input value={draft.orderingKey} onChange={({ detail }) => set({ orderingKey: detail.value })} />
          </FormField>
          {draft.orderingKey.trim() !== '' && (
            <FormField label="If it fails" errorText={errors['on_failure']}>
              <Choice value={draft.onFailure} options={FAILURES} onChange={(onFailure) => set({ onFailure })} />
            </FormField>
          )}
        </ColumnLayout>
      </ExpandableSection>
      <ExpandableSection headerText="Call-back">
        <SpaceBetween size="m">
          <FormField errorText={errors['callback']}>
            <Checkbox checked={draft.callback} description="A good answer means: taken over. Its worker reports how it ends." onChange={({ detail }) => set({ callback: detail.checked })}>
              The target reports by call-back
            </Checkbox>
          </FormField>
          {draft.callback && (
            <ColumnLayout columns={2}>
              <Number label="Silent at most, seconds" value={draft.leaseSeconds} error={errors['callback.lease_seconds']} onChange={(leaseSeconds) => set({ leaseSeconds })} />
              <Number label="All in all at most, seconds" value={draft.maxSeconds} error={errors['callback.max_seconds']} onChange={(maxSeconds) => set({ maxSeconds })} />
            </ColumnLayout>
          )}
        </SpaceBetween>
      </ExpandableSection>
    </>
  );
}

interface WorkProps {
  draft: Draft;
  types: TaskType[];
  targets: Target[];
  onChange: (work: Pick<Draft, 'type' | 'target'>) => void;
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

function Choice({ value, options, onChange, filter = false, label }: ChoiceProps): ReactNode {
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

function Number({ label, value, error, onChange }: { label: ReactNode; value: string; error: string | undefined; onChange: (value: string) => void }): ReactNode {
  return (
    <FormField label={label} errorText={error}>
      <Input type="number" value={value} onChange={({ detail }) => onChange(detail.value)} />
    </FormField>
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
        placeholder="Type one and press Enter"
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

function optional(label: string): ReactNode {
  return (
    <>
      {label} <i>– optional</i>
    </>
  );
}

interface Preview {
  runs: NonNullable<Task['next_runs']>;
  errors: FieldErrors;
  failed: string | null;
  loading: boolean;
}

/** The next ten runs of what is typed, asked for once the typing pauses; and what the API finds wrong with it, at its fields. */
function usePreview(draft: Draft): Preview {
  const typed = JSON.stringify(scheduleOf(draft));
  const settled = useSettled(typed, 350);
  const live = useLive(
    settled,
    async () => {
      const schedule = JSON.parse(settled) as ReturnType<typeof scheduleOf>;
      if (schedule === null || schedule.at === '') return { runs: [] };
      return take(api.POST('/api/v1/schedules/preview', { body: { ...schedule, count: 10 } }));
    },
    0,
  );
  const wrong = live.error !== null && live.error.details.length > 0 ? fieldErrors(live.error, 'schedule.') : {};
  return {
    runs: live.data?.runs ?? [],
    errors: wrong,
    failed: live.error === null ? null : live.error.details.length > 0 ? 'The schedule is not as it must be; see above.' : live.error.message,
    loading: live.loading || typed !== settled,
  };
}
