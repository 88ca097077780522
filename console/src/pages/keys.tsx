import Box from '@cloudscape-design/components/box';
import Button from '@cloudscape-design/components/button';
import FormField from '@cloudscape-design/components/form-field';
import Header from '@cloudscape-design/components/header';
import Input from '@cloudscape-design/components/input';
import Select from '@cloudscape-design/components/select';
import SpaceBetween from '@cloudscape-design/components/space-between';
import StatusIndicator from '@cloudscape-design/components/status-indicator';
import Table from '@cloudscape-design/components/table';
import { useState, type ReactNode } from 'react';

import { api, take, type Schemas } from '../api/client';
import { useMe, useSession, type Me } from '../api/session';
import { pageOfDocs } from '../docs';
import { useLive } from '../live';
import { mayManage } from '../owners';
import { DocsLink } from '../parts/docs-link';
import { FormDialog } from '../parts/form-dialog';
import { useNotices } from '../parts/notices';
import { Empty, Failed, NotForRole, Stale, useConfirm, useTitle, Words } from '../parts/parts';
import { ScopesField } from '../parts/scopes';
import { ShownOnce } from '../parts/shown-once';
import { useNow, When } from '../parts/time';
import { Refresh } from '../parts/trail';
import { isTeam, OfWhom, useWhose, WhoseChoice } from '../parts/whose';
import { firstCall, hasExpired, LIFETIMES, SCOPES, scopesInWords, type Scope } from '../scopes';

type Key = Schemas['Key'];
type NewKey = Schemas['NewKey'];

const EVERY = 15_000;

/** What the viewer may grant to a key of the owner: no more than they have. */
export function offeredOf(owner: string | undefined, me: Me): Scope[] {
  const all = SCOPES.map(({ value }) => value);
  const viewer = me.teams.some(({ id, role }) => id === owner && role === 'viewer');
  return all.filter((scope) => (scope === 'admin' ? me.role === 'administrator' : !viewer || scope.endsWith(':read')));
}

/** The maker of a key, the managers of its team and administrators revoke it; one's own keys one revokes oneself. */
export function mayRevoke({ maker, owner }: Pick<Key, 'maker' | 'owner'>, me: Me): boolean {
  return maker === me.id || owner === me.id || mayManage(me.teams.find(({ id }) => id === owner)?.role ?? null, me.role);
}

/** The keys by which programs act for the owner. */
export default function Keys(): ReactNode {
  useTitle('API keys');
  const { owner } = useWhose();
  const me = useMe();
  const makes = owner === undefined || me.teams.some(({ id }) => id === owner);
  const live = useLive(`keys ${owner ?? ''}`, () => take(api.GET('/api/v1/keys', { params: { query: { owner } } })), EVERY);
  const nameOf = useMakers(owner);
  const now = useNow();
  const [asking, setAsking] = useState(false);
  const [made, setMade] = useState<NewKey | null>(null);
  const [dialog, confirm] = useConfirm();
  const { done, failed } = useNotices();
  const revoke = async (key: Key): Promise<void> => {
    try {
      await take(api.DELETE('/api/v1/keys/{key_id}', { params: { path: { key_id: key.id }, query: { owner } } }));
      done(`Revoked “${key.name}”.`);
    } catch (error) {
      failed(`“${key.name}” was not revoked`, error);
    }
    live.reload();
  };
  if (live.error?.status === 403) return <NotForRole text={live.error.message} />;
  const create = <Button onClick={() => setAsking(true)}>Create an API key</Button>;
  return (
    <SpaceBetween size="m">
      {dialog}
      {asking && <KeyDialog owner={owner} onClose={() => setAsking(false)} onMade={(key) => { setMade(key); live.reload(); }} />}
      {made !== null && (
        <ShownOnce
          title={`The API key “${made.name}”`}
          warning="Copy the key now: it is not shown again. A program that has the key can do everything that its permissions allow. Store it as a secret."
          texts={[{ label: 'Key', text: made.key }, { label: 'A first call', text: firstCall(window.location.origin, made.key, made.scopes) }]}
          onClose={() => setMade(null)}
        />
      )}
      <Table<Key>
        variant="full-page"
        stickyHeader
        contentDensity="compact"
        wrapLines
        trackBy="id"
        items={live.data?.items ?? []}
        loading={live.loading}
        loadingText="Loading API keys"
        ariaLabels={{ tableLabel: 'API keys', selectionGroupLabel: '' }}
        header={
          <SpaceBetween size="xs">
            <Header
              variant="awsui-h1-sticky"
              description={<><OfWhom />A program sends a key instead of a sign-in. It may do what its maker may do at present, within its permissions.</>}
              actions={
                <SpaceBetween direction="horizontal" size="xs">
                  <Refresh live={live} />
                  {makes && <Button variant="primary" onClick={() => setAsking(true)}>Create API key</Button>}
                </SpaceBetween>
              }
            >
              API keys
            </Header>
            <Stale live={live} />
          </SpaceBetween>
        }
        filter={<div className="filters"><WhoseChoice single /></div>}
        empty={live.error !== null && live.data === null ? <Failed error={live.error} what="API keys" retry={live.reload} /> : (
          <Empty title="No API keys">
            <Box variant="p" color="inherit">Scripts, services and the command line use a key to create jobs and tasks without your password. Give each program its own key, with only the permissions that it needs.</Box>
            {makes && create}
            <DocsLink href={pageOfDocs('guides/keys')}>API keys</DocsLink>
          </Empty>
        )}
        columnDefinitions={[
          { id: 'name', header: 'Name', isRowHeader: true, cell: (key) => <span title={key.id}><Words>{key.name}</Words></span>, minWidth: 140 },
          { id: 'scopes', header: 'Permissions', cell: (key) => <span title={key.scopes.join(' ')}>{scopesInWords(key.scopes)}</span>, minWidth: 180 },
          { id: 'maker', header: 'Made by', cell: (key) => <span title={key.maker}><Words>{nameOf(key.maker)}</Words></span>, minWidth: 110 },
          { id: 'created', header: 'Created', cell: (key) => <When at={key.created_at} /> },
          { id: 'expires', header: 'Expires', cell: (key) => <Expiry at={key.expires_at} now={now} /> },
          { id: 'used', header: 'Last used', cell: (key) => (key.used_at === null ? 'Never' : <When at={key.used_at} />) },
          {
            id: 'action',
            header: 'Action',
            cell: (key) =>
              mayRevoke(key, me) && (
                <Button
                  variant="inline-link"
                  ariaLabel={`Revoke ${key.name}`}
                  onClick={() => confirm({ title: `Revoke “${key.name}”?`, text: 'Programs with this key are refused within 30 seconds. This cannot be undone.', yes: 'Revoke', act: () => revoke(key) })}
                >
                  Revoke
                </Button>
              ),
          },
        ]}
      />
    </SpaceBetween>
  );
}

function Expiry({ at, now }: { at: string | null; now: number }): ReactNode {
  if (at === null) return 'Never';
  return hasExpired(at, now) ? <StatusIndicator type="stopped">Expired <When at={at} /></StatusIndicator> : <When at={at} />;
}

/** The names of the makers: one's own, and those of the members of a team; of others the id. */
function useMakers(owner: string | undefined): (id: string) => string {
  const me = useMe();
  const username = useSession()?.username ?? '';
  const team = owner !== undefined && isTeam(owner) ? owner : null;
  const members = useLive(`makers ${team ?? ''}`, async () => (team === null ? [] : (await take(api.GET('/api/v1/teams/{team_id}/members', { params: { path: { team_id: team } } }))).items), 0);
  return (id) => (id === me.id ? username : (members.data?.find(({ user_id: each }) => each === id)?.username ?? id));
}

const FIELDS = ['name', 'scopes', 'expires_in_days'];

function KeyDialog({ owner, onClose, onMade }: { owner: string | undefined; onClose: () => void; onMade: (key: NewKey) => void }): ReactNode {
  const offered = offeredOf(owner, useMe());
  const [name, setName] = useState('');
  const [scopes, setScopes] = useState<Scope[]>(offered.filter((scope) => scope.endsWith(':read')));
  const [days, setDays] = useState('90');
  const act = async (): Promise<void> => {
    const body = { name: name.trim(), scopes, expires_in_days: days === '' ? null : Number(days) };
    onMade(await take(api.POST('/api/v1/keys', { params: { query: { owner } }, body })));
  };
  return (
    <FormDialog title="Create an API key" yes="Create" fields={FIELDS} values={{ name, scopes, expires_in_days: days }} act={act} onClose={onClose}>
      {(errors) => (
        <SpaceBetween size="m">
          <OfWhom />
          <FormField label="Name" description="Of the program that uses the key" errorText={errors['name']}>
            <Input value={name} onChange={({ detail }) => setName(detail.value)} autoComplete={false} autoFocus />
          </FormField>
          <ScopesField chosen={scopes} offered={offered} error={errors['scopes']} onChange={setScopes} />
          <FormField label="Expires after" errorText={errors['expires_in_days']}>
            <Select options={LIFETIMES} selectedOption={LIFETIMES.find(({ value }) => value === days) ?? null} onChange={({ detail }) => setDays(detail.selectedOption.value ?? '')} />
          </FormField>
        </SpaceBetween>
      )}
    </FormDialog>
  );
}
