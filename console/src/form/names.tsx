/** Names of what an owner has, chosen from a list: calendars and receivers. */
import Alert from '@cloudscape-design/components/alert';
import Checkbox from '@cloudscape-design/components/checkbox';
import Multiselect, { type MultiselectProps } from '@cloudscape-design/components/multiselect';
import SpaceBetween from '@cloudscape-design/components/space-between';
import type { ReactNode } from 'react';

import { api, take, type Schemas } from '../api/client';
import { useLive } from '../live';

interface Props {
  /** The owner of the job, task or monitor; undefined: the viewer. */
  owner: string | undefined;
  names: string[];
  onChange: (names: string[]) => void;
}

export function CalendarNames(props: Props): ReactNode {
  const ask = async (): Promise<MultiselectProps.Option[]> =>
    (await take(api.GET('/api/v1/calendars', { params: { query: { owner: props.owner } } }))).items.map(({ name, size, covers_until: until }) => ({
      value: name,
      label: name,
      description: `${size.toLocaleString()} dates${until === null ? '' : `, known until ${until}`}`,
    }));
  return <Names {...props} what="calendars" ask={ask} />;
}

export function ReceiverNames(props: Props): ReactNode {
  const ask = async (): Promise<MultiselectProps.Option[]> => (await receiversOf(props.owner)).map(({ name, kind }) => ({ value: name, label: name, description: kind }));
  return <Names {...props} what="receivers" ask={ask} />;
}

const receiversOf = async (owner: string | undefined): Promise<Schemas['Receiver'][]> => (await take(api.GET('/api/v1/receivers', { params: { query: { owner } } }))).items;

interface DefaultReceiversProps {
  /** Null: not known yet. */
  names: readonly string[] | null;
  checked: boolean;
  onChange: (checked: boolean) => void;
}

/** The names of the default receivers of an owner; null until they are known. */
export function useDefaultReceivers(owner: string | undefined): string[] | null {
  const found = useLive(`default receivers of ${owner ?? ''}`, () => receiversOf(owner), 0);
  return found.data?.filter((each) => each.default).map(({ name }) => name) ?? null;
}

/** Whether the default receivers are notified, and who they are. */
export function DefaultReceivers({ names, checked, onChange }: DefaultReceiversProps): ReactNode {
  return (
    <SpaceBetween size="xs">
      <Checkbox checked={checked} description={names === null || names.length === 0 ? 'The receivers that are marked as default' : names.join(', ')} onChange={({ detail }) => onChange(detail.checked)}>
        Notify the default receivers
      </Checkbox>
      {checked && names?.length === 0 && <Alert type="warning">No receiver is marked as default. Mark one under Receivers.</Alert>}
    </SpaceBetween>
  );
}

interface NamesProps extends Props {
  what: string;
  ask: () => Promise<MultiselectProps.Option[]>;
}

/** A name that is chosen and not in the list stays, as one of a calendar that was deleted: the API says what is wrong with it. */
function Names({ owner, names, onChange, what, ask }: NamesProps): ReactNode {
  const found = useLive(`${what} to choose from ${owner ?? ''}`, ask, 0);
  return (
    <Multiselect
      options={found.data ?? []}
      selectedOptions={names.map((value) => ({ value, label: value }))}
      placeholder={`Choose ${what}`}
      filteringType="auto"
      statusType={found.loading ? 'loading' : found.error === null ? 'finished' : 'error'}
      loadingText={`Loading ${what}`}
      errorText={found.error?.message}
      recoveryText="Try again"
      onLoadItems={({ detail }) => detail.samePage && found.error !== null && found.reload()}
      empty={`No ${what} yet. Create them under ${what.charAt(0).toUpperCase()}${what.slice(1)}.`}
      noMatch={`No ${what} with this text`}
      deselectAriaLabel={({ value }) => `Remove ${value ?? ''}`}
      onChange={({ detail }) => onChange(detail.selectedOptions.map(({ value }) => value ?? ''))}
    />
  );
}
