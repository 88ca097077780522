import Alert from '@cloudscape-design/components/alert';
import Box from '@cloudscape-design/components/box';
import Button from '@cloudscape-design/components/button';
import Checkbox from '@cloudscape-design/components/checkbox';
import ColumnLayout from '@cloudscape-design/components/column-layout';
import Container from '@cloudscape-design/components/container';
import Form from '@cloudscape-design/components/form';
import FormField from '@cloudscape-design/components/form-field';
import Header from '@cloudscape-design/components/header';
import Input from '@cloudscape-design/components/input';
import SpaceBetween from '@cloudscape-design/components/space-between';
import Textarea from '@cloudscape-design/components/textarea';
import Tiles from '@cloudscape-design/components/tiles';
import { useMemo, useRef, useState, type ReactNode } from 'react';
import { useNavigate, useParams, useSearchParams } from 'react-router';

import { api, apiError, take, type ScheduleRequest, type Schemas, type Task, type TaskType } from '../api/client';
import { taskCall } from '../code';
import type { AlertsDraft } from '../form/alerts';
import { empty, errorOf, fieldErrors, fromTask, isRecurring, scheduleOf, toEdit, toRequest, type Draft, type FieldErrors, type Kind } from '../form/draft';
import { CallBacks, Choice, choices, Labels, MaxAttempts, optional, Order, Retries, schemaOf, Telling, TimeOut, What } from '../form/fields';
import { daysOf, errorsOfDays, listedDays, type ListedDays } from '../form/excluded-days';
import { FormErrors, useFirstError } from '../form/form-errors';
import { InstantField } from '../form/instant';
import { errorsOf, type Refused } from '../form/mended';
import { CalendarNames } from '../form/names';
import { Number, Seconds } from '../form/numbers';
import { PreviewFailed, Runs } from '../form/preview';
import { RepeatPicker } from '../form/repeat-picker';
import { skippedMonths } from '../form/repeats';
import { anyOf, Section } from '../form/section';
import { alerts, bounds, days, missed } from '../form/summaries';
import type { Target } from '../form/target';
import { useLive, useSettled } from '../live';
import { CopyAs } from '../parts/copy-as';
import { useNotices } from '../parts/notices';
import { Loaded, useTitle } from '../parts/parts';
import { ofOwner, pageOfTask } from '../parts/links';
import { VIEWERS_ZONE } from '../parts/time';
import { useUnsaved } from '../parts/unsaved';
import { OfWhom, useWhose } from '../parts/whose';
import { cronInWords } from '../words';

const UNITS = ['seconds', 'minutes', 'hours', 'days'].map((value) => ({ value, label: value }));
const PERIODS = ['days', 'weeks'].map((value) => ({ value, label: value }));
const ZONES = ['UTC', ...Intl.supportedValuesOf('timeZone').filter((zone) => zone !== 'UTC')].map((value) => ({ value, label: value.replaceAll('_', ' ') }));
const OVERLAPS = choices<Schemas['Overlap']>({
  skip: { label: 'Skip', description: 'The new run does not start' },
  queue_one: { label: 'Queue one', description: 'The new run waits for the previous one; further runs are skipped' },
  allow: { label: 'Allow', description: 'Both runs continue' },
  cancel_running: { label: 'Cancel the running one', description: 'The new run starts when it has ended' },
}, 'Skip for recurring tasks, allow for others');
const MISFIRES = choices<Schemas['Misfire']>({
  run_latest: { label: 'Run the latest', description: 'Only the last missed run starts' },
  run_all: { label: 'Run all', description: 'In order, up to the maximum of catch-up runs' },
  skip: { label: 'Skip', description: 'Missed runs do not start' },
}, 'Run the latest');
const GAPS = choices<NonNullable<ScheduleRequest['dst_gap']>>({
  shift: { label: 'Shift', description: 'Run at the first instant after the gap' },
  skip: { label: 'Skip', description: 'No run on that day' },
}, 'Shift');
const TWICE = choices<NonNullable<ScheduleRequest['dst_overlap']>>({
  first: { label: 'The first time' },
  second: { label: 'The second time' },
  both: { label: 'Both times' },
}, 'The first time');

const EXCLUDED = choices<NonNullable<ScheduleRequest['on_excluded']>>({
  skip: { label: 'Skip' },
  next_day: { label: 'Next working day', description: 'At the same local time' },
  previous_day: { label: 'Previous working day', description: 'At the same local time' },
}, 'Skip');

const LISTED = [
  { value: 'exclude', label: 'Nothing runs' },
  { value: 'only', label: 'It runs, and on no other day' },
];

/** Create, clone (`?clone=ID`) and edit are one form. */
export default function TaskForm(): ReactNode {
  const { id } = useParams();
  const [query] = useSearchParams();
  const { owner } = useWhose();
  const source = id ?? query.get('clone');
  const live = useLive(
    `form ${source ?? ''} ${owner ?? ''}`,
    async () => {
      const [types, named, task] = await Promise.all([
        take(api.GET('/api/v1/types')),
        take(api.GET('/api/v1/targets')),
        source === null ? null : take(api.GET('/api/v1/tasks/{task_id}', { params: { path: { task_id: source }, query: { owner } } })),
      ]);
      return { types: types.items, targets: named.items, task };
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

export function Editor({ types, targets, task, editing }: EditorProps): ReactNode {
  const navigate = useNavigate();
  const { done } = useNotices();
  const { owner: named, creates } = useWhose();
  const owner = editing ? named : creates?.owner; // who does not belong to the owner makes a copy of their own
  const form = useRef<HTMLFormElement>(null);
  const first = useMemo(() => initial(task, editing), [task, editing]);
  const [draft, setDraft] = useState(first);
  const [refused, setRefused] = useState<Refused | null>(null);
  const [broken, setBroken] = useState(false);
  const [busy, setBusy] = useState(false);
  const saved = useRef(false);
  const key = useRef(crypto.randomUUID());
  const dirty = JSON.stringify(draft) !== JSON.stringify(first);
  const question = useUnsaved(dirty, saved);

  const set = (changes: Partial<Draft>): void => setDraft((before) => ({ ...before, ...changes }));
  const schema = schemaOf(draft, types, targets);
  const preview = usePreview(draft, owner);
  const error = refused?.error ?? null;
  const errors = errorsOf(refused, () => toRequest(draft));
  const shown: FieldErrors = { ...preview.errors, ...errors };
  const recurs = isRecurring(draft.kind);

  const submit = async (): Promise<void> => {
    setBusy(true);
    setRefused(null);
    const sent = toRequest(draft);
    try {
      const edited = editing && task !== null ? toEdit(draft, first, task) : null;
      const result = !editing || task === null
        ? await take(api.POST('/api/v1/tasks', { params: { header: { 'Idempotency-Key': key.current }, query: { owner } }, body: sent }))
        : edited === null
          ? task
          : await take(api.PUT('/api/v1/tasks/{task_id}', { params: { path: { task_id: task.id }, query: { owner } }, body: { ...edited, generation: task.generation } }));
      saved.current = true;
      done(editing ? `Saved “${result.name}”.` : `Created “${result.name}”.`);
      void navigate(pageOfTask(result.id, owner));
    } catch (error) {
      key.current = crypto.randomUUID();
      setRefused({ error: apiError(error), sent });
      setBusy(false);
    }
  };

  useFirstError(form, error);
  return (
    <form
      ref={form}
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      <Form
        header={<Header variant="h1" description={named === owner ? <OfWhom /> : task === null ? 'The task belongs to you.' : 'The copy belongs to you.'}>{editing ? `Edit ${task?.name ?? ''}` : task === null ? 'Create task' : `Clone ${task.name}`}</Header>}
        actions={
          <SpaceBetween direction="horizontal" size="xs">
            <Button variant="link" formAction="none" onClick={() => void navigate(editing && task !== null ? pageOfTask(task.id, owner) : `/tasks${ofOwner(named)}`)}>
              Cancel
            </Button>
            <CopyAs disabled={broken} call={() => (editing && task !== null ? taskCall(toEdit(draft, first, task) ?? toRequest(draft), owner, task.id) : taskCall(toRequest(draft), owner))} />
            <Button variant="primary" formAction="submit" loading={busy} disabled={broken}>
              {editing ? 'Save' : 'Create task'}
            </Button>
          </SpaceBetween>
        }
      >
        <SpaceBetween size="l">
          <FormErrors error={error} errors={error === null || error.details.length === 0 ? {} : shown} />
          <Container header={<Header variant="h2">What to run</Header>}>
            <SpaceBetween size="m">
              <FormField label="Name" errorText={shown['name']}>
                <Input value={draft.name} onChange={({ detail }) => set({ name: detail.value })} autoFocus={!editing} />
              </FormField>
              <What draft={draft} errors={shown} set={set} types={types} targets={targets} owner={owner} first={first} onBroken={setBroken} />
            </SpaceBetween>
          </Container>

          <Container header={<Header variant="h2">When to run</Header>}>
            <SpaceBetween size="m">
              <Tiles
                ariaLabel="When"
                value={draft.kind}
                columns={3}
                onChange={({ detail }) => set({ kind: detail.value as Kind })}
                items={[
                  { value: 'now', label: 'Now', description: 'One run' },
                  { value: 'at', label: 'At a time', description: 'One run' },
                  { value: 'cron', label: 'On a calendar', description: 'Day, week, month or cron, in a time zone' },
                  { value: 'every', label: 'Every few days or weeks', description: 'Such as every other Monday, at a local time' },
                  { value: 'rate', label: 'At an interval', description: 'Every few minutes, hours or days' },
                ]}
              />
              {draft.kind === 'at' && (
                <InstantField label="Time" value={draft.at} error={shown['schedule.at'] ?? shown['schedule']} onChange={(at) => set({ at })} />
              )}
              {draft.kind === 'cron' && (
                <ColumnLayout columns={2}>
                  <RepeatPicker cron={draft.cron} onChange={(cron) => set({ cron })} />
                  <FormField
                    label="Cron"
                    description="Minute, hour, day of month, month, day of week; several with ;"
                    constraintText={cronInWords(draft.cron) ?? 'See the next runs below'}
                    warningText={skippedMonths(draft.cron) ?? undefined}
                    errorText={errorOf(shown, 'schedule.cron') ?? shown['schedule']}
                  >
                    <Input value={draft.cron} spellcheck={false} onChange={({ detail }) => set({ cron: detail.value })} />
                  </FormField>
                </ColumnLayout>
              )}
              {draft.kind === 'every' && (
                <ColumnLayout columns={3}>
                  <FormField label="Every" errorText={shown['schedule.every'] ?? shown['schedule']}>
                    <SpaceBetween direction="horizontal" size="xs">
                      <Input type="number" value={draft.period} ariaLabel="Number of days or weeks" onChange={({ detail }) => set({ period: detail.value })} />
                      <Choice value={draft.periodUnit} options={PERIODS} label="Days or weeks" onChange={(periodUnit) => set({ periodUnit })} />
                    </SpaceBetween>
                  </FormField>
                  {draft.periodUnit === 'weeks' && (
                    <FormField label="Weekdays" description="Such as MON, WED" errorText={errorOf(shown, 'schedule.weekdays')}>
                      <Input value={draft.weekdays} spellcheck={false} onChange={({ detail }) => set({ weekdays: detail.value })} />
                    </FormField>
                  )}
                  <FormField label="Times" description="Such as 09:00, 18:30" errorText={errorOf(shown, 'schedule.times')}>
                    <Input value={draft.times} spellcheck={false} onChange={({ detail }) => set({ times: detail.value })} />
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
              {recurs && <Days draft={draft} errors={shown} set={set} owner={owner} />}
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

          <Container header={<Header variant="h2">How to run</Header>}>
            <SpaceBetween size="m">
              <ColumnLayout columns={3}>
                <MaxAttempts draft={draft} errors={shown} set={set} />
                <TimeOut draft={draft} errors={shown} set={set} schema={schema} />
                <FormField label="If the previous run has not ended" errorText={shown['overlap']}>
                  <Choice value={draft.overlap} options={OVERLAPS} onChange={(overlap) => set({ overlap })} />
                </FormField>
              </ColumnLayout>
              <Retries draft={draft} errors={shown} set={set} />
              {recurs && <Missed draft={draft} errors={shown} set={set} />}
              <Order draft={draft} errors={shown} set={set} />
              <CallBacks draft={draft} errors={shown} set={set} />
              <Telling draft={draft} errors={shown} set={set} owner={owner} />
              <Alerts draft={draft} errors={shown} set={set} />
              <Labels draft={draft} errors={shown} set={set} fixed={editing}>
                <FormField label={optional('Description')} errorText={shown['description']}>
                  <Textarea rows={2} value={draft.description} onChange={({ detail }) => set({ description: detail.value })} />
                </FormField>
              </Labels>
            </SpaceBetween>
          </Container>
          {error?.status === 409 && (
            <Alert type="warning" header="This task was changed by someone else">
              Reload the page to see the current task. Your changes are then lost.
            </Alert>
          )}
        </SpaceBetween>
      </Form>
      {question}
    </form>
  );
}

function initial(task: Task | null, editing: boolean): Draft {
  const blank = empty(VIEWERS_ZONE);
  if (task === null) return blank;
  const draft = fromTask(task, blank);
  if (editing) return draft;
  return { ...draft, key: '', name: `${task.name} (copy)`.slice(0, 120) };
}

/** Calendars and dates on which nothing runs, or on which alone it runs. */
function Days({ draft, errors, set, owner }: Part & { owner: string | undefined }): ReactNode {
  const [listed, setListed] = useState(() => listedDays(draft));
  const change = (changes: Partial<ListedDays>): void => {
    const now = { ...listed, ...changes };
    setListed(now);
    set(daysOf(now));
  };
  const wrong = errorsOfDays(errors, listed);
  return (
    <Section header="Holidays and excluded days" summary={days(draft)} wrong={anyOf(errors, 'schedule.exclude', 'schedule.only', 'schedule.on_excluded', 'schedule.working_days')}>
      <ColumnLayout columns={2}>
        <FormField label="On the days below" errorText={errorOf(errors, listed.only ? 'schedule.exclude' : 'schedule.only')}>
          <Choice value={listed.only ? 'only' : 'exclude'} options={LISTED} onChange={(value) => change({ only: value === 'only' })} />
        </FormField>
        <FormField label={optional('Calendars')} errorText={wrong.calendars}>
          <CalendarNames owner={owner} names={listed.calendars} onChange={(calendars) => change({ calendars })} />
        </FormField>
        <FormField label={optional('Dates')} description="Such as 2026-12-24, 2026-12-31" errorText={wrong.dates}>
          <Input value={listed.dates} spellcheck={false} onChange={({ detail }) => change({ dates: detail.value })} />
        </FormField>
        <FormField label="Runs on excluded days" errorText={errors['schedule.on_excluded']}>
          <Choice value={draft.onExcluded} options={EXCLUDED} onChange={(onExcluded) => set({ onExcluded })} />
        </FormField>
        <FormField label={optional('Working days')} description="Weekdays, such as MON, TUE. Without them: MON to FRI." errorText={errorOf(errors, 'schedule.working_days')}>
          <Input value={draft.workingDays} spellcheck={false} onChange={({ detail }) => set({ workingDays: detail.value })} />
        </FormField>
      </ColumnLayout>
    </Section>
  );
}

function Window({ draft, errors, set }: Part): ReactNode {
  return (
    <Section
      header="Start, end, jitter, clock changes"
      summary={bounds(draft)}
      wrong={anyOf(errors, 'schedule.start', 'schedule.end', 'schedule.max_runs', 'schedule.jitter_seconds', 'schedule.dst_')}
    >
      <SpaceBetween size="m">
        <ColumnLayout columns={2}>
          <InstantField label={optional('No run before')} value={draft.start} error={errors['schedule.start']} onChange={(start) => set({ start })} />
          <InstantField label={optional('No run at or after')} value={draft.end} error={errors['schedule.end']} onChange={(end) => set({ end })} />
          <Number label={optional('Max runs')} value={draft.maxRuns} error={errors['schedule.max_runs']} onChange={(maxRuns) => set({ maxRuns })} />
          <Seconds label={optional('Jitter (s)')} value={draft.jitter} error={errors['schedule.jitter_seconds']} onChange={(jitter) => set({ jitter })} />
        </ColumnLayout>
        {(draft.kind === 'cron' || draft.kind === 'every') && (
          <ColumnLayout columns={2}>
            <FormField label="Local time skipped by the clock" errorText={errors['schedule.dst_gap']}>
              <Choice value={draft.dstGap} options={GAPS} onChange={(dstGap) => set({ dstGap })} />
            </FormField>
            <FormField label="Local time that occurs twice" errorText={errors['schedule.dst_overlap']}>
              <Choice value={draft.dstOverlap} options={TWICE} onChange={(dstOverlap) => set({ dstOverlap })} />
            </FormField>
          </ColumnLayout>
        )}
      </SpaceBetween>
    </Section>
  );
}

function Missed({ draft, errors, set }: Part): ReactNode {
  return (
    <Section header="Missed runs" summary={missed(draft)} wrong={anyOf(errors, 'misfire', 'max_catch_up')}>
      <ColumnLayout columns={3}>
        <FormField label="Missed runs" errorText={errors['misfire']}>
          <Choice value={draft.misfire} options={MISFIRES} onChange={(misfire) => set({ misfire })} />
        </FormField>
        <Seconds label={optional('Missed after (s)')} value={draft.misfireThreshold} error={errors['misfire_threshold_seconds']} onChange={(misfireThreshold) => set({ misfireThreshold })} />
        {draft.misfire === 'run_all' && (
          <Number label={optional('Max catch-up runs')} value={draft.maxCatchUp} error={errors['max_catch_up']} onChange={(maxCatchUp) => set({ maxCatchUp })} />
        )}
      </ColumnLayout>
    </Section>
  );
}

function Alerts({ draft, errors, set }: Part): ReactNode {
  const change = (changes: Partial<AlertsDraft>): void => set({ alerts: { ...draft.alerts, ...changes } });
  return (
    <Section header="Alerts" summary={alerts(draft)} wrong={anyOf(errors, 'alerts')}>
      <SpaceBetween size="m">
        <Box variant="p">The receivers of the notifications get one notice when a run breaks a rule, and one when that is over.</Box>
        {errors['alerts'] !== undefined && <Alert type="error">{errors['alerts']}</Alert>}
        <Checkbox checked={draft.alerts.none} description="Not the default alerts either, which apply to a task without rules" onChange={({ detail }) => change({ none: detail.checked })}>
          No alerts for this task
        </Checkbox>
        {!draft.alerts.none && <Rules draft={draft} errors={errors} change={change} />}
      </SpaceBetween>
    </Section>
  );
}

function Rules({ draft, errors, change }: Omit<Part, 'set'> & { change: (changes: Partial<AlertsDraft>) => void }): ReactNode {
  return (
    <SpaceBetween size="m">
      <ColumnLayout columns={3}>
        <Seconds label={optional('Late after (s)')} value={draft.alerts.lateAfter} error={errors['alerts.late_after_seconds']} onChange={(lateAfter) => change({ lateAfter })} />
        <Seconds label={optional('Too long after (s)')} value={draft.alerts.maxDuration} error={errors['alerts.max_duration_seconds']} onChange={(maxDuration) => change({ maxDuration })} />
        <FormField label={optional('Done by')} description="A time in the zone of the schedule, such as 07:00" errorText={errors['alerts.done_by']}>
          <Input value={draft.alerts.doneBy} spellcheck={false} onChange={({ detail }) => change({ doneBy: detail.value })} />
        </FormField>
      </ColumnLayout>
      <Checkbox checked={draft.alerts.missed} description="Runs that were skipped because they could not start in time" onChange={({ detail }) => change({ missed: detail.checked })}>
        Alert on missed runs
      </Checkbox>
    </SpaceBetween>
  );
}

interface Part {
  draft: Draft;
  errors: FieldErrors;
  set: (changes: Partial<Draft>) => void;
}

interface Preview {
  runs: NonNullable<Task['next_runs']>;
  errors: FieldErrors;
  failed: string | null;
  loading: boolean;
}

/** The next ten runs of what is typed, asked for once the typing pauses; and what the API finds wrong with it, at its fields. */
function usePreview(draft: Draft, owner: string | undefined): Preview {
  const typed = JSON.stringify(scheduleOf(draft));
  const settled = useSettled(typed, 350);
  const live = useLive(
    `${owner ?? ''} ${settled}`,
    async () => {
      const schedule = JSON.parse(settled) as ReturnType<typeof scheduleOf>;
      if (schedule === null || schedule.at === '') return { runs: [] };
      return take(api.POST('/api/v1/schedules/preview', { params: { query: { owner } }, body: { ...schedule, count: 10 } }));
    },
    0,
  );
  const wrong = live.error !== null && live.error.details.length > 0 ? fieldErrors(live.error, 'schedule.') : {};
  return {
    runs: live.data?.runs ?? [],
    errors: wrong,
    failed: live.error === null ? null : live.error.details.length > 0 ? 'The schedule is not valid; see above.' : live.error.message,
    loading: live.loading || typed !== settled,
  };
}
