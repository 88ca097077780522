import Box from '@cloudscape-design/components/box';
import Button from '@cloudscape-design/components/button';
import Checkbox from '@cloudscape-design/components/checkbox';
import FormField from '@cloudscape-design/components/form-field';
import Header from '@cloudscape-design/components/header';
import Input from '@cloudscape-design/components/input';
import Select from '@cloudscape-design/components/select';
import SpaceBetween from '@cloudscape-design/components/space-between';
import StatusIndicator from '@cloudscape-design/components/status-indicator';
import Table from '@cloudscape-design/components/table';
import { useState, type ReactNode } from 'react';

import { api, take, type Schemas } from '../api/client';
import { pageOfDocs } from '../docs';
import { useLive } from '../live';
import { DefaultAlerts } from '../parts/default-alerts';
import { DocsLink } from '../parts/docs-link';
import { FormDialog } from '../parts/form-dialog';
import { useNotices } from '../parts/notices';
import { Empty, Failed, NotForRole, Stale, useConfirm, useTitle, Words } from '../parts/parts';
import { When } from '../parts/time';
import { Refresh } from '../parts/trail';
import { OfWhom, useWhose, WhoseChoice } from '../parts/whose';

type Receiver = Schemas['Receiver'];
type Kind = Receiver['kind'];

const EVERY = 5_000; // the result of a test comes within seconds
const KINDS: { value: Kind; label: string; address: string }[] = [
  { value: 'email', label: 'E-mail', address: 'E-mail address' },
  { value: 'slack', label: 'Slack', address: 'URL of the incoming webhook' },
  { value: 'teams', label: 'Teams', address: 'URL of the workflow' },
  { value: 'pagerduty', label: 'PagerDuty', address: 'Routing key of the service' },
  { value: 'webhook', label: 'Signed webhook', address: 'URL' },
];
const REGIONS = [
  { value: 'us', label: 'United States' },
  { value: 'eu', label: 'Europe' },
] as const;
const FIELDS = ['receiver', 'kind', 'address', 'signing_secret', 'region', 'default'];

/** The named places to which notices of the owner's tasks are sent. */
export default function Receivers(): ReactNode {
  useTitle('Receivers');
  const { owner, mayChange } = useWhose();
  const live = useLive(`receivers ${owner ?? ''}`, () => take(api.GET('/api/v1/receivers', { params: { query: { owner } } })), EVERY);
  const [edited, setEdited] = useState<Receiver | 'new' | null>(null);
  const [dialog, confirm] = useConfirm();
  const { done, failed } = useNotices();
  const test = async ({ name }: Receiver): Promise<void> => {
    try {
      await take(api.POST('/api/v1/receivers/{receiver}/test', { params: { path: { receiver: name }, query: { owner } } }));
      done(`A test of “${name}” was sent. Its result appears in the list.`);
    } catch (error) {
      failed(`“${name}” was not tested`, error);
    }
    live.reload();
  };
  const remove = async ({ name }: Receiver): Promise<void> => {
    try {
      await take(api.DELETE('/api/v1/receivers/{receiver}', { params: { path: { receiver: name }, query: { owner } } }));
      done(`Deleted “${name}”.`);
    } catch (error) {
      failed(`“${name}” was not deleted`, error);
    }
    live.reload();
  };
  if (live.error?.status === 403) return <NotForRole text={live.error.message} />;
  return (
    <SpaceBetween size="m">
      {dialog}
      {edited !== null && <ReceiverDialog owner={owner} before={edited === 'new' ? null : edited} onClose={() => setEdited(null)} onStored={live.reload} />}
      <Table<Receiver>
        variant="full-page"
        stickyHeader
        contentDensity="compact"
        wrapLines
        trackBy="name"
        items={live.data?.items ?? []}
        loading={live.loading}
        loadingText="Loading receivers"
        ariaLabels={{ tableLabel: 'Receivers', selectionGroupLabel: '' }}
        header={
          <SpaceBetween size="xs">
            <Header
              variant="awsui-h1-sticky"
              description={<><OfWhom />Tasks and jobs name a receiver, so that its address is in one place.</>}
              actions={
                <SpaceBetween direction="horizontal" size="xs">
                  <Refresh live={live} />
                  {mayChange && <Button variant="primary" onClick={() => setEdited('new')}>Create receiver</Button>}
                </SpaceBetween>
              }
            >
              Receivers
            </Header>
            <Stale live={live} />
          </SpaceBetween>
        }
        filter={<div className="filters"><WhoseChoice single /></div>}
        empty={live.error !== null && live.data === null ? <Failed error={live.error} what="receivers" retry={live.reload} /> : (
          <Empty title="No receivers">
            <Box variant="p" color="inherit">A receiver is an e-mail address, a channel in Slack or Teams, a service of PagerDuty or a webhook.</Box>
            {mayChange && <Button onClick={() => setEdited('new')}>Create a receiver</Button>}
            <DocsLink href={pageOfDocs('guides/notifications')}>Notifications</DocsLink>
          </Empty>
        )}
        columnDefinitions={[
          { id: 'name', header: 'Name', isRowHeader: true, cell: ({ name }) => <Words>{name}</Words>, minWidth: 120 },
          { id: 'kind', header: 'Kind', cell: ({ kind }) => KINDS.find(({ value }) => value === kind)?.label ?? kind },
          { id: 'address', header: 'Address', cell: ({ address }) => <Words>{address}</Words>, minWidth: 160 },
          { id: 'default', header: 'Default', cell: (receiver) => (receiver.default ? 'Yes' : 'No') },
          { id: 'state', header: 'State', cell: (receiver) => <State receiver={receiver} />, minWidth: 180 },
          { id: 'tested', header: 'Test arrived', cell: ({ tested_at }) => (tested_at === null ? 'Never' : <When at={tested_at} />) },
          {
            id: 'action',
            header: 'Action',
            cell: (receiver) =>
              mayChange && (
                <SpaceBetween direction="horizontal" size="s">
                  <Button variant="inline-link" ariaLabel={`Test ${receiver.name}`} onClick={() => void test(receiver)}>Test</Button>
                  <Button variant="inline-link" ariaLabel={`Change ${receiver.name}`} onClick={() => setEdited(receiver)}>Change</Button>
                  <Button
                    variant="inline-link"
                    ariaLabel={`Delete ${receiver.name}`}
                    onClick={() => confirm({ title: `Delete “${receiver.name}”?`, text: 'Tasks that name it keep it: change them first.', yes: 'Delete', act: () => remove(receiver) })}
                  >
                    Delete
                  </Button>
                </SpaceBetween>
              ),
          },
        ]}
      />
      <DefaultAlerts owner={owner} mayChange={mayChange} />
    </SpaceBetween>
  );
}

function State({ receiver: { off, error, failed_at } }: { receiver: Receiver }): ReactNode {
  if (error === null) return <StatusIndicator type="success">Accepts notices</StatusIndicator>;
  return (
    <>
      <StatusIndicator type="error">{off ? 'Off: it gets no notices' : 'Failed'}</StatusIndicator>
      <Box color="text-body-secondary" fontSize="body-s"><Words>{error}</Words>{failed_at !== null && <>, <When at={failed_at} /></>}</Box>
    </>
  );
}

interface DialogProps {
  owner: string | undefined;
  /** Null: a new one. */
  before: Receiver | null;
  onClose: () => void;
  onStored: () => void;
}

function ReceiverDialog({ owner, before, onClose, onStored }: DialogProps): ReactNode {
  const [name, setName] = useState(before?.name ?? '');
  const [kind, setKind] = useState<Kind>(before?.kind ?? 'slack');
  const [address, setAddress] = useState('');
  const [secret, setSecret] = useState(before?.signing_secret ?? '');
  const [region, setRegion] = useState(before?.region ?? 'us');
  const [byDefault, setByDefault] = useState(before?.default ?? false);
  const chosen = KINDS.find(({ value }) => value === kind);
  const signs = kind !== 'email' && kind !== 'pagerduty';
  const values = {
    kind,
    address: address.trim() === '' ? null : address.trim(),
    signing_secret: signs && secret.trim() !== '' ? secret.trim() : null,
    region: kind === 'pagerduty' ? region : ('us' as const),
    default: byDefault,
  };
  const act = async (): Promise<void> => {
    await take(api.PUT('/api/v1/receivers/{receiver}', { params: { path: { receiver: name.trim() }, query: { owner } }, body: values }));
    onStored();
  };
  return (
    <FormDialog title={before === null ? 'Create a receiver' : `Change “${before.name}”`} yes={before === null ? 'Create' : 'Save'} fields={FIELDS} values={{ ...values, receiver: name }} disabled={name.trim() === ''} act={act} onClose={onClose}>
      {(errors) => (
        <SpaceBetween size="m">
          <OfWhom />
          <FormField label="Name" description="Tasks refer to it by this name" errorText={errors['receiver']}>
            <Input value={name} disabled={before !== null} spellcheck={false} autoComplete={false} autoFocus={before === null} onChange={({ detail }) => setName(detail.value)} />
          </FormField>
          <FormField label="Kind" errorText={errors['kind']}>
            <Select options={KINDS} selectedOption={chosen ?? null} onChange={({ detail }) => setKind(detail.selectedOption.value as Kind)} />
          </FormField>
          <FormField label={chosen?.address ?? 'Address'} description={before === null ? 'It is not shown again' : `Leave it empty to keep ${before.address}`} errorText={errors['address']}>
            <Input value={address} spellcheck={false} autoComplete={false} onChange={({ detail }) => setAddress(detail.value)} />
          </FormField>
          {signs && (
            <FormField label="Signing secret" constraintText={kind === 'webhook' ? 'The name of a stored secret, not its value' : 'Optional: the name of a stored secret'} errorText={errors['signing_secret']}>
              <Input value={secret} spellcheck={false} onChange={({ detail }) => setSecret(detail.value)} />
            </FormField>
          )}
          {kind === 'pagerduty' && (
            <FormField label="Region" errorText={errors['region']}>
              <Select options={REGIONS} selectedOption={REGIONS.find(({ value }) => value === region) ?? null} onChange={({ detail }) => setRegion(detail.selectedOption.value as typeof region)} />
            </FormField>
          )}
          <Checkbox checked={byDefault} description="It gets the notices of tasks and monitors that notify the default receivers" onChange={({ detail }) => setByDefault(detail.checked)}>
            Default receiver
          </Checkbox>
        </SpaceBetween>
      )}
    </FormDialog>
  );
}
