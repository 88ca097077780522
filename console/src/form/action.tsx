/** The payload of a job. That of an `aws` job has a search for its action, and a form of its parameters, drawn from the model of AWS. */
import Box from '@cloudscape-design/components/box';
import Button from '@cloudscape-design/components/button';
import FormField from '@cloudscape-design/components/form-field';
import Select from '@cloudscape-design/components/select';
import SpaceBetween from '@cloudscape-design/components/space-between';
import StatusIndicator from '@cloudscape-design/components/status-indicator';
import { useRef, useState, type ReactNode } from 'react';

import { api, take, type Schemas } from '../api/client';
import { pageOfActions } from '../docs';
import { useLive } from '../live';
import { DocsLink } from '../parts/docs-link';
import { actionOf, parametersOf, searched, shownOf, takesParameters, type Action, type Scope } from './actions';
import type { FieldErrors } from './draft';
import { errorOf, Json, One, PayloadForm, type PayloadProps } from './payload';
import { withField, type Schema } from './schema';

type Payload = Record<string, unknown>;

const CALL = ['service', 'action', 'parameters'];

interface TypedProps extends PayloadProps {
  /** The type of the job. */
  type: string;
  /** The defaults of its named target, if the viewer may read them. */
  defaults?: Payload;
  scope: Scope;
}

export function TypedPayload({ type, defaults = {}, scope, ...props }: TypedProps): ReactNode {
  const { schema, payload, errors, onChange, onBroken } = props;
  if (type !== 'aws' || !takesParameters(schema)) return <PayloadForm {...props} />;
  const chooses = schema.properties?.['action'] !== undefined;
  return <PayloadForm {...props} own={{ fields: CALL, form: <Call {...{ payload, defaults, chooses, scope, errors, onChange, onBroken }} /> }} />;
}

interface CallProps extends Omit<PayloadProps, 'schema' | 'own'> {
  defaults: Payload;
  /** Whether the payload names the action; else the target does. */
  chooses: boolean;
  scope: Scope;
}

function Call({ payload, defaults, chooses, scope, errors, onChange, onBroken }: CallProps): ReactNode {
  const before = useRef(new Map<string, unknown>()); // the parameters of each action that was chosen: they return with it
  const called = actionOf(payload, defaults);
  const name = called === null ? '' : `${called.service}:${called.action}`;
  const choose = ({ name: next, service, action }: Action): void => {
    before.current.set(name, payload['parameters']);
    onBroken(false);
    onChange({ ...payload, service, action, parameters: before.current.get(next) ?? {} });
  };
  const parameters = { value: payload['parameters'], errors, onChange: (value: unknown) => onChange(withField(payload, 'parameters', value)), onBroken };
  return (
    <SpaceBetween size="m">
      {chooses && <LoadedSearch name={name} scope={scope} error={errors['payload.action'] ?? errors['payload.service']} onChoose={choose} />}
      {called !== null && <LoadedParameters key={name} {...called} scope={scope} {...parameters} />}
      {called === null && !chooses && <AsJson {...parameters} />}
    </SpaceBetween>
  );
}

function LoadedSearch({ scope, ...props }: Omit<SearchProps, 'actions' | 'failed'> & { scope: Scope }): ReactNode {
  const live = useLive(`actions ${JSON.stringify(scope)}`, async () => (await take(api.GET('/api/v1/types/aws/actions', { params: { query: scope } }))).items, 0);
  return <Search {...props} actions={live.data} failed={live.error?.message} />;
}

interface SearchProps {
  /** Null while they are loaded. */
  actions: Action[] | null;
  failed: string | undefined;
  name: string;
  error: string | undefined;
  onChoose: (action: Action) => void;
}

export function Search({ actions, failed, name, error, onChoose }: SearchProps): ReactNode {
  const [text, setText] = useState('');
  const options = searched(actions ?? [], text).map((action) => ({ value: action.name, label: action.name, description: action.summary, labelTag: action.reads_only ? 'Only reads' : undefined }));
  const chosen = actions?.find((action) => action.name === name);
  if (actions?.length === 0) {
    return (
      <FormField label="Action" errorText={error}>
        <Box color="text-body-secondary">
          These jobs may call no action of AWS. Operators allow actions by the option <code>allowed_actions</code> of the stage.{' '}
          <DocsLink href={pageOfActions()}>About actions of AWS</DocsLink>
        </Box>
      </FormField>
    );
  }
  return (
    <FormField
      label="Action"
      description="The operation of an AWS service, of those that this stage allows"
      constraintText={chosen === undefined ? undefined : <>{chosen.summary} <DocsLink href={chosen.documentation}>{chosen.action} in AWS’s reference</DocsLink></>}
      errorText={error}
    >
      <Select
        options={options}
        selectedOption={name === '' ? null : { value: name, label: name }}
        filteringType="manual"
        filteringPlaceholder="Such as: s3 copy"
        filteringAriaLabel="Find an action"
        filteringClearAriaLabel="Clear"
        placeholder="Choose an action"
        empty="No allowed action has these words. The option allowed_actions of the stage has the list."
        statusType={failed !== undefined ? 'error' : actions === null ? 'loading' : 'finished'}
        loadingText="Loading actions"
        errorText={failed}
        onLoadItems={({ detail }) => setText(detail.filteringText)}
        onChange={({ detail }) => {
          const next = actions?.find((action) => action.name === detail.selectedOption.value);
          if (next !== undefined && next.name !== name) onChoose(next);
        }}
      />
    </FormField>
  );
}

interface ParametersProps {
  value: unknown;
  errors: FieldErrors;
  onChange: (value: unknown) => void;
  onBroken: (broken: boolean) => void;
}

function LoadedParameters({ service, action, scope, ...props }: ParametersProps & { service: string; action: string; scope: Scope }): ReactNode {
  const path = { service, action };
  const live = useLive(`action ${service} ${action} ${JSON.stringify(scope)}`, () => take(api.GET('/api/v1/types/aws/actions/{service}/{action}', { params: { path, query: scope } })), 0);
  if (live.loading) return <StatusIndicator type="loading">Loading the parameters</StatusIndicator>;
  const value = props.value ?? {};
  if (live.data === null || typeof value !== 'object' || Array.isArray(value)) return <AsJson {...props} note={live.error?.message} />;
  return <Parameters {...props} value={value as Payload} described={live.data} />;
}

/** The parameters of an action that the form does not know: one that the stage no longer allows, or one of a target that hides its defaults. */
function AsJson({ value, errors, onChange, onBroken, note }: ParametersProps & { note?: string | undefined }): ReactNode {
  return <Json label="Parameters" description={note} value={value} error={errorOf(errors, 'payload.parameters')} rows={8} onChange={onChange} onBroken={onBroken} />;
}

/** A field for each required parameter and for each one that has a value or was added. */
export function Parameters({ described, value, errors, onChange, onBroken }: ParametersProps & { value: Payload; described: Schemas['DescribedAwsAction'] }): ReactNode {
  const [added, setAdded] = useState<string[]>([]);
  const broken = useRef(new Set<string>());
  const fields = parametersOf(described.parameters_schema as Schema);
  const shown = shownOf(fields, value, added);
  const others = fields.filter((field) => !shown.includes(field));
  const isBroken = (name: string, is: boolean): void => {
    if (is) broken.current.add(name);
    else broken.current.delete(name);
    onBroken(broken.current.size > 0);
  };
  const remove = (name: string): void => {
    setAdded(added.filter((each) => each !== name));
    isBroken(name, false);
    onChange(withField(value, name, undefined));
  };
  const apart = Object.entries(errors).filter(([field]) => field === 'payload.parameters' || (field.startsWith('payload.parameters.') && !shown.some(({ name }) => isOf(field, `payload.parameters.${name}`))));
  return (
    <SpaceBetween size="m">
      {fields.length === 0 && <Box color="text-body-secondary">{described.action} has no parameters.</Box>}
      {shown.map((field) => (
        <SpaceBetween key={field.name} size="xxs">
          <One field={field} payload={value} error={errorOf(errors, `payload.parameters.${field.name}`)} rows={1} onChange={onChange} onBroken={(is) => isBroken(field.name, is)} />
          {!field.required && <Button variant="inline-link" formAction="none" onClick={() => remove(field.name)}>Remove {field.name}</Button>}
        </SpaceBetween>
      ))}
      {apart.length > 0 && <FormField errorText={apart.map(([field, rule]) => `${field}: ${rule}`).join('; ')} />}
      {others.length > 0 && (
        <FormField label={<>Add a parameter <i>– optional</i></>}>
          <Select
            options={others.map(({ name, description }) => ({ value: name, label: name, description }))}
            selectedOption={null}
            filteringType="auto"
            filteringAriaLabel="Find a parameter"
            placeholder={`${others.length} more`}
            empty="None"
            noMatch="No parameter has this text"
            onChange={({ detail }) => {
              const name = detail.selectedOption.value ?? '';
              setAdded([...added, name]);
              if (others.find((field) => field.name === name)?.widget === 'switch') onChange({ ...value, [name]: false });
            }}
          />
        </FormField>
      )}
    </SpaceBetween>
  );
}

function isOf(field: string, path: string): boolean {
  return field === path || field.startsWith(`${path}.`);
}
