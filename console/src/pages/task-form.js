import { jsx as _jsx, jsxs as _jsxs } from "react/jsx-runtime";
import Alert from '@cloudscape-design/components/alert';
import Box from '@cloudscape-design/components/box';
import Button from '@cloudscape-design/components/button';
import ColumnLayout from '@cloudscape-design/components/column-layout';
import Container from '@cloudscape-design/components/container';
import Form from '@cloudscape-design/components/form';
import FormField from '@cloudscape-design/components/form-field';
import Header from '@cloudscape-design/components/header';
import Input from '@cloudscape-design/components/input';
import SpaceBetween from '@cloudscape-design/components/space-between';
import Textarea from '@cloudscape-design/components/textarea';
import Tiles from '@cloudscape-design/components/tiles';
import { useMemo, useRef, useState } from 'react';
import { useNavigate, useParams, useSearchParams } from 'react-router';
import { api, apiError, take } from '../api/client';
import { taskCall } from '../code';
import { empty, fieldErrors, fromTask, scheduleOf, toEdit, toRequest } from '../form/draft';
import { CallBacks, Choice, choices, Labels, MaxAttempts, Number, optional, Order, Retries, schemaOf, Telling, TimeOut, What } from '../form/fields';
import { FormErrors, useFirstError } from '../form/form-errors';
import { InstantField } from '../form/instant';
import { errorsOf } from '../form/mended';
import { PreviewFailed, Runs } from '../form/preview';
import { RepeatPicker } from '../form/repeat-picker';
import { skippedMonths } from '../form/repeats';
import { anyOf, Section } from '../form/section';
import { bounds, missed } from '../form/summaries';
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
const ZONES = ['UTC', ...Intl.supportedValuesOf('timeZone').filter((zone) => zone !== 'UTC')].map((value) => ({ value, label: value.replaceAll('_', ' ') }));
const OVERLAPS = choices({
    skip: { label: 'Skip', description: 'The new run does not start' },
    queue_one: { label: 'Queue one', description: 'The new run waits for the previous one; further runs are skipped' },
    allow: { label: 'Allow', description: 'Both runs continue' },
    cancel_running: { label: 'Cancel the running one', description: 'The new run starts when it has ended' },
}, 'Skip for recurring tasks, allow for others');
const MISFIRES = choices({
    run_latest: { label: 'Run the latest', description: 'Only the last missed run starts' },
    run_all: { label: 'Run all', description: 'In order, up to the maximum of catch-up runs' },
    skip: { label: 'Skip', description: 'Missed runs do not start' },
}, 'Run the latest');
const GAPS = choices({
    shift: { label: 'Shift', description: 'Run at the first instant after the gap' },
    skip: { label: 'Skip', description: 'No run on that day' },
}, 'Shift');
const TWICE = choices({
    first: { label: 'The first time' },
    second: { label: 'The second time' },
    both: { label: 'Both times' },
}, 'The first time');
/** Create, clone (`?clone=ID`) and edit are one form. */
export default function TaskForm() {
    const { id } = useParams();
    const [query] = useSearchParams();
    const { owner } = useWhose();
    const source = id ?? query.get('clone');
    const live = useLive(`form ${source ?? ''} ${owner ?? ''}`, async () => {
        const [types, named, task] = await Promise.all([
            take(api.GET('/api/v1/types')),
            take(api.GET('/api/v1/targets')),
            source === null ? null : take(api.GET('/api/v1/tasks/{task_id}', { params: { path: { task_id: source }, query: { owner } } })),
        ]);
        return { types: types.items, targets: named.items, task };
    }, 0);
    useTitle(id === undefined ? 'Create task' : 'Edit task');
    return (_jsx(Loaded, { live: live, what: "task", children: ({ types, targets, task }) => _jsx(Editor, { types: types, targets: targets, task: task, editing: id !== undefined }, source ?? '') }));
}
export function Editor({ types, targets, task, editing }) {
    const navigate = useNavigate();
    const { done } = useNotices();
    const { owner: named } = useWhose();
    const owner = editing ? named : undefined; // a clone is one's own
    const form = useRef(null);
    const first = useMemo(() => initial(task, editing), [task, editing]);
    const [draft, setDraft] = useState(first);
    const [refused, setRefused] = useState(null);
    const [broken, setBroken] = useState(false);
    const [busy, setBusy] = useState(false);
    const saved = useRef(false);
    const key = useRef(crypto.randomUUID());
    const dirty = JSON.stringify(draft) !== JSON.stringify(first);
    const question = useUnsaved(dirty, saved);
    const set = (changes) => setDraft((before) => ({ ...before, ...changes }));
    const schema = schemaOf(draft, types, targets);
    const preview = usePreview(draft);
    const error = refused?.error ?? null;
    const errors = errorsOf(refused, () => toRequest(draft));
    const shown = { ...preview.errors, ...errors };
    const recurs = draft.kind === 'cron' || draft.kind === 'rate';
    const submit = async () => {
        setBusy(true);
        setRefused(null);
        const sent = toRequest(draft);
        try {
            const edited = editing && task !== null ? toEdit(draft, first, task) : null;
            const result = !editing || task === null
                ? await take(api.POST('/api/v1/tasks', { params: { header: { 'Idempotency-Key': key.current } }, body: sent }))
                : edited === null
                    ? task
                    : await take(api.PUT('/api/v1/tasks/{task_id}', { params: { path: { task_id: task.id }, query: { owner } }, body: { ...edited, generation: task.generation } }));
            saved.current = true;
            done(editing ? `Saved “${result.name}”.` : `Created “${result.name}”.`);
            void navigate(pageOfTask(result.id, owner));
        }
        catch (error) {
            key.current = crypto.randomUUID();
            setRefused({ error: apiError(error), sent });
            setBusy(false);
        }
    };
    useFirstError(form, error);
    return (_jsxs("form", { ref: form, onSubmit: (event) => {
            event.preventDefault();
            void submit();
        }, children: [_jsx(Form, { header: _jsx(Header, { variant: "h1", description: editing ? _jsx(OfWhom, {}) : named === undefined ? undefined : 'The copy belongs to you.', children: editing ? `Edit ${task?.name ?? ''}` : task === null ? 'Create task' : `Clone ${task.name}` }), actions: _jsxs(SpaceBetween, { direction: "horizontal", size: "xs", children: [_jsx(Button, { variant: "link", formAction: "none", onClick: () => void navigate(editing && task !== null ? pageOfTask(task.id, owner) : `/tasks${ofOwner(named)}`), children: "Cancel" }), _jsx(CopyAs, { disabled: broken, call: () => (editing && task !== null ? taskCall(toEdit(draft, first, task) ?? toRequest(draft), { id: task.id, owner }) : taskCall(toRequest(draft))) }), _jsx(Button, { variant: "primary", formAction: "submit", loading: busy, disabled: broken, children: editing ? 'Save' : 'Create task' })] }), children: _jsxs(SpaceBetween, { size: "l", children: [_jsx(FormErrors, { error: error, errors: error === null || error.details.length === 0 ? {} : shown }), _jsx(Container, { header: _jsx(Header, { variant: "h2", children: "What to run" }), children: _jsxs(SpaceBetween, { size: "m", children: [_jsx(FormField, { label: "Name", errorText: shown['name'], children: _jsx(Input, { value: draft.name, onChange: ({ detail }) => set({ name: detail.value }), autoFocus: !editing }) }), _jsx(What, { draft: draft, errors: shown, set: set, types: types, targets: targets, first: first, onBroken: setBroken })] }) }), _jsx(Container, { header: _jsx(Header, { variant: "h2", children: "When to run" }), children: _jsxs(SpaceBetween, { size: "m", children: [_jsx(Tiles, { ariaLabel: "When", value: draft.kind, columns: 4, onChange: ({ detail }) => set({ kind: detail.value }), items: [
                                            { value: 'now', label: 'Now', description: 'One run' },
                                            { value: 'at', label: 'At a time', description: 'One run' },
                                            { value: 'cron', label: 'On a calendar', description: 'Day, week, month or cron, in a time zone' },
                                            { value: 'rate', label: 'At an interval', description: 'Every few minutes, hours or days' },
                                        ] }), draft.kind === 'at' && (_jsx(InstantField, { label: "Time", value: draft.at, error: shown['schedule.at'] ?? shown['schedule'], onChange: (at) => set({ at }) })), draft.kind === 'cron' && (_jsxs(ColumnLayout, { columns: 2, children: [_jsx(RepeatPicker, { cron: draft.cron, onChange: (cron) => set({ cron }) }), _jsx(FormField, { label: "Cron", description: "Minute, hour, day of month, month, day of week", constraintText: cronInWords(draft.cron) ?? 'See the next runs below', warningText: skippedMonths(draft.cron) ?? undefined, errorText: shown['schedule.cron'] ?? shown['schedule'], children: _jsx(Input, { value: draft.cron, spellcheck: false, onChange: ({ detail }) => set({ cron: detail.value }) }) })] })), draft.kind === 'rate' && (_jsx(FormField, { label: "Every", errorText: shown['schedule.rate'] ?? shown['schedule'], children: _jsxs(SpaceBetween, { direction: "horizontal", size: "xs", children: [_jsx(Input, { type: "number", value: draft.every, ariaLabel: "How many", onChange: ({ detail }) => set({ every: detail.value }) }), _jsx(Choice, { value: draft.unit, options: UNITS, label: "Unit", onChange: (unit) => set({ unit }) })] }) })), draft.kind !== 'now' && (_jsx(FormField, { label: "Time zone", errorText: shown['schedule.time_zone'], children: _jsx(Choice, { value: draft.timeZone, options: ZONES, filter: true, onChange: (timeZone) => set({ timeZone }) }) })), recurs && _jsx(Window, { draft: draft, errors: shown, set: set }), draft.kind !== 'now' && (_jsxs("div", { "aria-live": "polite", children: [_jsx(Box, { variant: "h3", children: "Next runs" }), preview.failed !== null ? (_jsx(PreviewFailed, { message: preview.failed })) : (_jsx(Runs, { runs: preview.runs, loading: preview.loading, empty: draft.kind === 'at' && draft.at === '' ? 'Choose a time.' : 'None.' }))] }))] }) }), _jsx(Container, { header: _jsx(Header, { variant: "h2", children: "How to run" }), children: _jsxs(SpaceBetween, { size: "m", children: [_jsxs(ColumnLayout, { columns: 3, children: [_jsx(MaxAttempts, { draft: draft, errors: shown, set: set }), _jsx(TimeOut, { draft: draft, errors: shown, set: set, schema: schema }), _jsx(FormField, { label: "If the previous run has not ended", errorText: shown['overlap'], children: _jsx(Choice, { value: draft.overlap, options: OVERLAPS, onChange: (overlap) => set({ overlap }) }) })] }), _jsx(Retries, { draft: draft, errors: shown, set: set }), recurs && _jsx(Missed, { draft: draft, errors: shown, set: set }), _jsx(Order, { draft: draft, errors: shown, set: set }), _jsx(CallBacks, { draft: draft, errors: shown, set: set }), _jsx(Telling, { draft: draft, errors: shown, set: set }), _jsx(Labels, { draft: draft, errors: shown, set: set, fixed: editing, children: _jsx(FormField, { label: optional('Description'), errorText: shown['description'], children: _jsx(Textarea, { rows: 2, value: draft.description, onChange: ({ detail }) => set({ description: detail.value }) }) }) })] }) }), error?.status === 409 && (_jsx(Alert, { type: "warning", header: "This task was changed by someone else", children: "Reload the page to see the current task. Your changes are then lost." }))] }) }), question] }));
}
function initial(task, editing) {
    const blank = empty(VIEWERS_ZONE);
    if (task === null)
        return blank;
    const draft = fromTask(task, blank);
    if (editing)
        return draft;
    return { ...draft, key: '', name: `${task.name} (copy)`.slice(0, 120) };
}
function Window({ draft, errors, set }) {
    return (_jsx(Section, { header: "Start, end, jitter, clock changes", summary: bounds(draft), wrong: anyOf(errors, 'schedule.start', 'schedule.end', 'schedule.max_runs', 'schedule.jitter_seconds', 'schedule.dst_'), children: _jsxs(SpaceBetween, { size: "m", children: [_jsxs(ColumnLayout, { columns: 2, children: [_jsx(InstantField, { label: optional('No run before'), value: draft.start, error: errors['schedule.start'], onChange: (start) => set({ start }) }), _jsx(InstantField, { label: optional('No run at or after'), value: draft.end, error: errors['schedule.end'], onChange: (end) => set({ end }) }), _jsx(Number, { label: optional('Max runs'), value: draft.maxRuns, error: errors['schedule.max_runs'], onChange: (maxRuns) => set({ maxRuns }) }), _jsx(Number, { label: optional('Jitter (s)'), value: draft.jitter, error: errors['schedule.jitter_seconds'], onChange: (jitter) => set({ jitter }) })] }), draft.kind === 'cron' && (_jsxs(ColumnLayout, { columns: 2, children: [_jsx(FormField, { label: "Local time skipped by the clock", errorText: errors['schedule.dst_gap'], children: _jsx(Choice, { value: draft.dstGap, options: GAPS, onChange: (dstGap) => set({ dstGap }) }) }), _jsx(FormField, { label: "Local time that occurs twice", errorText: errors['schedule.dst_overlap'], children: _jsx(Choice, { value: draft.dstOverlap, options: TWICE, onChange: (dstOverlap) => set({ dstOverlap }) }) })] }))] }) }));
}
function Missed({ draft, errors, set }) {
    return (_jsx(Section, { header: "Missed runs", summary: missed(draft), wrong: anyOf(errors, 'misfire', 'max_catch_up'), children: _jsxs(ColumnLayout, { columns: 3, children: [_jsx(FormField, { label: "Missed runs", errorText: errors['misfire'], children: _jsx(Choice, { value: draft.misfire, options: MISFIRES, onChange: (misfire) => set({ misfire }) }) }), _jsx(Number, { label: optional('Missed after (s)'), value: draft.misfireThreshold, error: errors['misfire_threshold_seconds'], onChange: (misfireThreshold) => set({ misfireThreshold }) }), draft.misfire === 'run_all' && (_jsx(Number, { label: optional('Max catch-up runs'), value: draft.maxCatchUp, error: errors['max_catch_up'], onChange: (maxCatchUp) => set({ maxCatchUp }) }))] }) }));
}
/** The next ten runs of what is typed, asked for once the typing pauses; and what the API finds wrong with it, at its fields. */
function usePreview(draft) {
    const typed = JSON.stringify(scheduleOf(draft));
    const settled = useSettled(typed, 350);
    const live = useLive(settled, async () => {
        const schedule = JSON.parse(settled);
        if (schedule === null || schedule.at === '')
            return { runs: [] };
        return take(api.POST('/api/v1/schedules/preview', { body: { ...schedule, count: 10 } }));
    }, 0);
    const wrong = live.error !== null && live.error.details.length > 0 ? fieldErrors(live.error, 'schedule.') : {};
    return {
        runs: live.data?.runs ?? [],
        errors: wrong,
        failed: live.error === null ? null : live.error.details.length > 0 ? 'The schedule is not valid; see above.' : live.error.message,
        loading: live.loading || typed !== settled,
    };
}
