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
import { useRef, useState, type ReactNode } from 'react';
import { useLocation, useNavigate, useSearchParams } from 'react-router';

import { api, apiError, take, type TaskType } from '../api/client';
import { useRole } from '../api/session';
import { write } from '../exact';
import { TypedPayload } from '../form/action';
import { FormErrors, useFirstError } from '../form/form-errors';
import { errorsOf, type Refused } from '../form/mended';
import { limitInWords } from '../form/fields';
import { Json } from '../form/payload';
import type { Schema } from '../form/schema';
import { asPayload, BLANK, fromTarget, loosened, toTarget, type Target } from '../form/target';
import { useLive } from '../live';
import { useNotices } from '../parts/notices';
import { Code, Loaded, NotForRole, useConfirm, useTitle, Words } from '../parts/parts';
import { Ago } from '../parts/time';

const OF_ALL = { scope: 'all' } as const; // the jobs of a target are checked by their owners

/** Register a named target, change it, or, for who is no administrator, see what a job gives to it. */
export default function TargetPage(): ReactNode {
  const { pathname } = useLocation();
  const [query] = useSearchParams();
  const name = pathname.endsWith('/new') ? undefined : (query.get('name') ?? '');
  const administers = useRole() === 'administrator';
  useTitle(name ?? 'Register target');
  const live = useLive(
    `target ${name ?? ''}`,
    async () => {
      const [types, target] = await Promise.all([
        take(api.GET('/api/v1/types')),
        name === undefined ? null : take(api.GET('/api/v1/targets/{name}', { params: { path: { name } } })),
      ]);
      return { types: types.items, target };
    },
    0,
  );
  return (
    <Loaded live={live} what="target">
      {({ types, target }) =>
        administers ? <Editor key={target?.version ?? 0} types={types} target={target} reload={live.reload} /> : target === null ? <NotYours /> : <Seen target={target} />
      }
    </Loaded>
  );
}

function NotYours(): ReactNode {
  return <NotForRole text="Administrators register targets." />;
}

function Trail({ name }: { name: string }): ReactNode {
  const navigate = useNavigate();
  return (
    <BreadcrumbGroup
      items={[{ text: 'Named targets', href: '/targets' }, { text: name, href: '#' }]}
      onFollow={(event) => {
        event.preventDefault();
        if (event.detail.href !== '#') void navigate(event.detail.href);
      }}
    />
  );
}

function Seen({ target }: { target: Target }): ReactNode {
  return (
    <SpaceBetween size="l">
      <Trail name={target.name} />
      <Header variant="h1" description={target.description === null ? undefined : <Words>{target.description}</Words>}>{target.name}</Header>
      <Container header={<Header variant="h2">Overview</Header>}>
        <KeyValuePairs
          columns={4}
          items={[
            { label: 'Type', value: target.kind },
            { label: 'State', value: <StatusIndicator type={target.enabled ? 'success' : 'stopped'}>{target.enabled ? 'Enabled' : 'Disabled'}</StatusIndicator> },
            { label: 'Starts per second', value: target.rate ?? 'unlimited' },
            { label: 'Concurrent jobs', value: target.concurrency ?? 'unlimited' },
            { label: 'Limit of a key', value: limitInWords(target.limit) || '–' },
            { label: 'Network', value: target.network === 'private' ? 'Private' : 'Public' },
          ]}
        />
      </Container>
      <Container header={<Header variant="h2">Payload schema</Header>}>
        <Code label="Payload schema" text={write(target.job_payload_schema, 2)} />
      </Container>
    </SpaceBetween>
  );
}

function Editor({ types, target, reload }: { types: TaskType[]; target: Target | null; reload: () => void }): ReactNode {
  const navigate = useNavigate();
  const { done, failed } = useNotices();
  const [dialog, confirm] = useConfirm();
  const form = useRef<HTMLFormElement>(null);
  const [draft, setDraft] = useState(() => (target === null ? BLANK : fromTarget(target)));
  const [refused, setRefused] = useState<Refused | null>(null);
  const [broken, setBroken] = useState(false);
  const [busy, setBusy] = useState(false);
  const set = (changes: Partial<typeof draft>): void => setDraft((before) => ({ ...before, ...changes }));
  const schema = loosened((types.find(({ type }) => type === draft.kind)?.payload_schema ?? {}) as Schema);
  const request = () => ({ ...toTarget(draft), name: draft.name });
  const errors = asPayload(errorsOf(refused, request));
  useFirstError(form, refused?.error ?? null);
  const kinds = types.map(({ type, description }) => ({ value: type, label: type, description }));

  const submit = async (): Promise<void> => {
    setBusy(true);
    setRefused(null);
    const sent = request();
    try {
      const body = toTarget(draft);
      if (target === null) {
        const made = await take(api.POST('/api/v1/targets', { body: sent }));
        done(`Registered ${made.name}.`);
        void navigate('/targets');
      } else {
        await take(api.PUT('/api/v1/targets/{name}', { params: { path: { name: target.name } }, body: { ...body, version: target.version } }));
        done(`Saved ${target.name}.`);
        reload();
      }
    } catch (error) {
      setRefused({ error: apiError(error), sent });
    } finally {
      setBusy(false);
    }
  };
  const remove = async (): Promise<void> => {
    if (target === null) return;
    try {
      await take(api.DELETE('/api/v1/targets/{name}', { params: { path: { name: target.name } } }));
      done(`Deleted ${target.name}.`);
      void navigate('/targets');
    } catch (refused) {
      failed(`${target.name} was not deleted`, refused);
    }
  };
  return (
    <SpaceBetween size="l">
      {dialog}
      <Trail name={target?.name ?? 'Register target'} />
      <form
        ref={form}
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        <Form
          header={
            <Header
              variant="h1"
              description={target === null ? undefined : <>Version {target.version}, changed <Ago at={target.updated_at} />. A change applies to jobs that start more than a second later.</>}
              actions={
                target !== null && (
                  <Button
                    formAction="none"
                    onClick={() => confirm({ title: `Delete ${target.name}?`, text: 'Jobs and runs that refer to it fail when they start.', yes: 'Delete', act: remove })}
                  >
                    Delete
                  </Button>
                )
              }
            >
              {target?.name ?? 'Register a target'}
            </Header>
          }
          actions={
            <SpaceBetween direction="horizontal" size="xs">
              <Button variant="link" formAction="none" onClick={() => void navigate('/targets')}>
                Cancel
              </Button>
              <Button variant="primary" formAction="submit" loading={busy} disabled={broken}>
                {target === null ? 'Register' : 'Save'}
              </Button>
            </SpaceBetween>
          }
        >
          <SpaceBetween size="l">
            <FormErrors error={refused?.error ?? null} errors={errors} />
            <Container header={<Header variant="h2">General</Header>}>
              <SpaceBetween size="m">
                {target === null && (
                  <FormField label="Name" description="Tasks and jobs refer to the target by it" errorText={errors['name']}>
                    <Input value={draft.name} onChange={({ detail }) => set({ name: detail.value })} autoFocus />
                  </FormField>
                )}
                <FormField label="Type" errorText={errors['kind']}>
                  <Select
                    options={kinds}
                    selectedOption={kinds.find(({ value }) => value === draft.kind) ?? null}
                    triggerVariant="option"
                    disabled={target !== null}
                    onChange={({ detail }) => set({ kind: detail.selectedOption.value ?? '', defaults: {}, locked: null })}
                  />
                </FormField>
                <FormField label={<>Description <i>– optional</i></>} errorText={errors['description']}>
                  <Textarea rows={2} value={draft.description} onChange={({ detail }) => set({ description: detail.value })} />
                </FormField>
                <Toggle checked={draft.enabled} description="If disabled, new jobs are refused and existing jobs fail when they start." onChange={({ detail }) => set({ enabled: detail.checked })}>
                  Enabled
                </Toggle>
                <ColumnLayout columns={2}>
                  <FormField label={<>Max starts per second <i>– optional</i></>} description="Of all users’ jobs together" errorText={errors['rate']}>
                    <Input type="number" value={draft.rate} placeholder="unlimited" onChange={({ detail }) => set({ rate: detail.value })} />
                  </FormField>
                  <FormField label={<>Max concurrent jobs <i>– optional</i></>} description="Of all users’ jobs together" errorText={errors['concurrency']}>
                    <Input type="number" value={draft.concurrency} placeholder="unlimited" onChange={({ detail }) => set({ concurrency: detail.value })} />
                  </FormField>
                </ColumnLayout>
                {draft.kind === 'http' && (
                  <Toggle checked={draft.isPrivate} description="Jobs call hosts of the stage’s private network, and no public ones." onChange={({ detail }) => set({ isPrivate: detail.checked })}>
                    Private network
                  </Toggle>
                )}
                {draft.kind === 'http' && (draft.isPrivate || errors['network'] !== undefined) && (
                  <FormField
                    label="Allowed hosts and ranges"
                    description="One in each line, such as *.internal.example.com or 10.0.0.0/16"
                    errorText={errors['network'] ?? Object.entries(errors).find(([field]) => /^allow(\.|$)/.test(field))?.[1]}
                  >
                    <Textarea rows={3} value={draft.allow} onChange={({ detail }) => set({ allow: detail.value })} />
                  </FormField>
                )}
              </SpaceBetween>
            </Container>
            <Container header={<Header variant="h2" description="Used for fields that a job leaves out">Defaults</Header>}>
              <TypedPayload key={draft.kind} schema={schema} payload={draft.defaults} type={draft.kind} scope={OF_ALL} errors={errors} onChange={(defaults) => set({ defaults })} onBroken={setBroken} />
            </Container>
            <Container header={<Header variant="h2">Allowed overrides</Header>}>
              <SpaceBetween size="m">
                <Toggle checked={draft.locked === null} description="Jobs can override only the content, such as the body." onChange={({ detail }) => set({ locked: detail.checked ? null : Object.keys(draft.defaults) })}>
                  Lock all but the content
                </Toggle>
                {draft.locked !== null && (
                  <FormField label="Locked defaults" errorText={errors['locked']}>
                    <Multiselect
                      options={Object.keys(draft.defaults).map((value) => ({ value, label: value }))}
                      selectedOptions={draft.locked.map((value) => ({ value, label: value }))}
                      placeholder="None"
                      deselectAriaLabel={({ label }) => `Unlock ${label ?? ''}`}
                      onChange={({ detail }) => set({ locked: detail.selectedOptions.map(({ value }) => value ?? '') })}
                    />
                  </FormField>
                )}
                <Json
                  label={<>JSON Schema of the payload <i>– optional</i></>}
                  description="Checked when a job is created. Without a schema, jobs may give every field that is not locked."
                  value={draft.payloadSchema}
                  error={errors['payload_schema']}
                  rows={8}
                  check={(value) => (value === undefined || (value !== null && typeof value === 'object' && !Array.isArray(value)) ? null : 'must be a JSON object')}
                  onChange={(payloadSchema) => set({ payloadSchema: payloadSchema as Record<string, unknown> | undefined })}
                  onBroken={setBroken}
                />
              </SpaceBetween>
            </Container>
          </SpaceBetween>
        </Form>
      </form>
    </SpaceBetween>
  );
}
