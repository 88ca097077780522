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
import { useRef, useState, type ReactNode } from 'react';
import { useNavigate, useSearchParams } from 'react-router';

import { api, apiError, take, type Job, type TaskType } from '../api/client';
import { jobCall } from '../code';
import { CallBacks, Choice, Labels, MaxAttempts, optional, Order, Retries, schemaOf, Telling, TimeOut, What } from '../form/fields';
import { FormErrors, useFirstError } from '../form/form-errors';
import { InstantField } from '../form/instant';
import { errorsOf, type Refused } from '../form/mended';
import { fromJob, NEW_JOB, toJob, UNITS, type JobDraft, type Start } from '../form/job-draft';
import type { Target } from '../form/target';
import { useLive } from '../live';
import { CopyAs } from '../parts/copy-as';
import { ofOwner, pageOfJob } from '../parts/links';
import { useNotices } from '../parts/notices';
import { Loaded, useTitle } from '../parts/parts';
import { useUnsaved } from '../parts/unsaved';
import { OfWhom, useWhose } from '../parts/whose';

const UNIT_CHOICES = Object.keys(UNITS).map((value) => ({ value, label: value }));

export default function JobForm(): ReactNode {
  const [query] = useSearchParams();
  const { owner } = useWhose();
  const retried = query.get('retry');
  const source = retried ?? query.get('from');
  const live = useLive(
    `job form ${source ?? ''} ${owner ?? ''}`,
    async () => {
      const [types, named, job] = await Promise.all([
        take(api.GET('/api/v1/types')),
        take(api.GET('/api/v1/targets')),
        source === null ? null : take(api.GET('/api/v1/jobs/{job_id}', { params: { path: { job_id: source }, query: { owner } } })),
      ]);
      return { types: types.items, targets: named.items, job };
    },
    0,
  );
  const title = retried !== null ? 'Run again with changes' : source !== null ? 'Duplicate job' : 'Post a job';
  useTitle(title);
  return (
    <Loaded live={live} what="job">
      {({ types, targets, job }) => <Editor key={source ?? ''} types={types} targets={targets} job={job} title={title} />}
    </Loaded>
  );
}

function Editor({ types, targets, job, title }: { types: TaskType[]; targets: Target[]; job: Job | null; title: string }): ReactNode {
  const navigate = useNavigate();
  const { done } = useNotices();
  const { owner, creates } = useWhose();
  const to = creates?.owner; // who does not belong to the owner posts a job of their own
  const form = useRef<HTMLFormElement>(null);
  const [first] = useState<JobDraft>(() => (job === null ? NEW_JOB : fromJob(job)));
  const [draft, setDraft] = useState(first);
  const [refused, setRefused] = useState<Refused | null>(null);
  const [broken, setBroken] = useState(false);
  const [busy, setBusy] = useState(false);
  const saved = useRef(false);
  const key = useRef(crypto.randomUUID());
  const question = useUnsaved(JSON.stringify(draft) !== JSON.stringify(first), saved);
  useFirstError(form, refused?.error ?? null);
  const set = (changes: Partial<JobDraft>): void => setDraft((before) => ({ ...before, ...changes }));
  const errors = errorsOf(refused, () => toJob(draft));

  const submit = async (): Promise<void> => {
    setBusy(true);
    setRefused(null);
    const sent = toJob(draft);
    try {
      const made = await take(api.POST('/api/v1/jobs', { params: { header: { 'Idempotency-Key': key.current }, query: { owner: to } }, body: sent }));
      saved.current = true;
      done('Posted the job.');
      void navigate(pageOfJob(made.id, to));
    } catch (error) {
      key.current = crypto.randomUUID();
      setRefused({ error: apiError(error), sent });
      setBusy(false);
    }
  };
  return (
    <form
      ref={form}
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      <Form
        header={
          <Header variant="h1" description={<>{to === owner && <OfWhom />}{description(job, to !== owner)}</>}>
            {title}
          </Header>
        }
        actions={
          <SpaceBetween direction="horizontal" size="xs">
            <Button variant="link" formAction="none" onClick={() => void navigate(job === null ? `/jobs${ofOwner(owner)}` : pageOfJob(job.id, owner))}>
              Cancel
            </Button>
            <CopyAs disabled={broken} call={() => jobCall(toJob(draft), to)} />
            <Button variant="primary" formAction="submit" loading={busy} disabled={broken}>
              Post job
            </Button>
          </SpaceBetween>
        }
      >
        <SpaceBetween size="l">
          <FormErrors error={refused?.error ?? null} errors={errors} />
          <Container header={<Header variant="h2">What to run</Header>}>
            <What draft={draft} errors={errors} set={set} types={types} targets={targets} owner={to} first={first} onBroken={setBroken} />
          </Container>

          <Container header={<Header variant="h2">When to run</Header>}>
            <SpaceBetween size="m">
              <Tiles
                ariaLabel="When"
                value={draft.start}
                columns={3}
                onChange={({ detail }) => set({ start: detail.value as Start })}
                items={[
                  { value: 'now', label: 'Now' },
                  { value: 'after', label: 'After a delay' },
                  { value: 'at', label: 'At a time' },
                ]}
              />
              {draft.start === 'after' && (
                <FormField label="Delay" constraintText="Counted from the moment you post the job" errorText={errors['delay_seconds']}>
                  <SpaceBetween direction="horizontal" size="xs">
                    <Input type="number" value={draft.after} ariaLabel="How many" invalid={errors['delay_seconds'] !== undefined} onChange={({ detail }) => set({ after: detail.value })} />
                    <Choice value={draft.unit} options={UNIT_CHOICES} label="Unit" onChange={(unit) => set({ unit })} />
                  </SpaceBetween>
                </FormField>
              )}
              {draft.start === 'at' && <InstantField label="Time" value={draft.at} error={errors['execute_at']} onChange={(at) => set({ at })} />}
              <InstantField
                label={optional('Expires at')}
                description="From this time on, the job neither starts nor is tried again"
                value={draft.expiresAt}
                error={errors['expires_at']}
                onChange={(expiresAt) => set({ expiresAt })}
              />
            </SpaceBetween>
          </Container>

          <Container header={<Header variant="h2">How to run</Header>}>
            <SpaceBetween size="m">
              <ColumnLayout columns={2}>
                <MaxAttempts draft={draft} errors={errors} set={set} />
                <TimeOut draft={draft} errors={errors} set={set} schema={schemaOf(draft, types, targets)} />
              </ColumnLayout>
              <Retries draft={draft} errors={errors} set={set} />
              <Order draft={draft} errors={errors} set={set} />
              <CallBacks draft={draft} errors={errors} set={set} />
              <Telling draft={draft} errors={errors} set={set} owner={to} />
              <Labels draft={draft} errors={errors} set={set} />
            </SpaceBetween>
          </Container>
        </SpaceBetween>
      </Form>
      {question}
    </form>
  );
}

/** What becomes of the job that the form was filled from. */
function description(job: Job | null, becomesOwn: boolean): string | undefined {
  const whose = becomesOwn ? ' The new job belongs to you.' : '';
  if (job === null) return whose.trim() || undefined;
  return `A new job with the content of ${job.id}, which does not change.${whose}`;
}
