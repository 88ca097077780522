import Box from '@cloudscape-design/components/box';
import Button from '@cloudscape-design/components/button';
import ButtonDropdown from '@cloudscape-design/components/button-dropdown';
import ColumnLayout from '@cloudscape-design/components/column-layout';
import FormField from '@cloudscape-design/components/form-field';
import Header from '@cloudscape-design/components/header';
import Input from '@cloudscape-design/components/input';
import Pagination from '@cloudscape-design/components/pagination';
import Select from '@cloudscape-design/components/select';
import SpaceBetween from '@cloudscape-design/components/space-between';
import StatusIndicator from '@cloudscape-design/components/status-indicator';
import Table from '@cloudscape-design/components/table';
import { useEffect, useState, type ReactNode } from 'react';

import { api, take, type Schemas } from '../api/client';
import { useRole } from '../api/session';
import { onWaysToSignIn, type Ways } from '../api/sso';
import { pageOfDocs } from '../docs';
import { useLive } from '../live';
import { DocsLink } from '../parts/docs-link';
import { FormDialog } from '../parts/form-dialog';
import { IdentityDialog } from '../parts/identity-dialog';
import { useNotices } from '../parts/notices';
import { usePages } from '../parts/pages';
import { Empty, Failed, Stale, useConfirm, useTitle } from '../parts/parts';
import { POLICY } from '../parts/password';
import { Refresh } from '../parts/trail';
import { When } from '../parts/time';

type User = Schemas['Account'];
type Role = Schemas['Role'];
type Asked = { what: 'create' } | { what: 'change' | 'password' | 'identity'; user: User };

const ROLES: { value: Role; label: string; description: string }[] = [
  { value: 'user', label: 'User', description: 'Owns tasks and jobs' },
  { value: 'operator', label: 'Operator', description: 'Also sees the tasks and jobs of all users and teams' },
  { value: 'administrator', label: 'Administrator', description: 'Also changes them, users, teams, targets and queues' },
];
const LIMIT = 60;
const EVERY = 15_000;

/** Who may sign in, what they may, and how much of it. */
export default function Users(): ReactNode {
  useTitle('Users');
  const administers = useRole() === 'administrator';
  const pages = usePages('users');
  const live = useLive(`users ${pages.cursor ?? ''}`, () => take(api.GET('/api/v1/users', { params: { query: { limit: LIMIT, cursor: pages.cursor } } })), EVERY);
  const [asked, ask] = useState<Asked | null>(null);
  const [sso, setSso] = useState<Ways['sso']>(null);
  useEffect(() => onWaysToSignIn((ways) => setSso(ways.sso)), []);
  const [dialog, confirm] = useConfirm();
  const { done, failed } = useNotices();
  const allow = async (user: User, enabled: boolean): Promise<void> => {
    const params = { path: { user_id: user.id } };
    try {
      await take(enabled ? api.POST('/api/v1/users/{user_id}/enable', { params }) : api.POST('/api/v1/users/{user_id}/disable', { params }));
      done(`${enabled ? 'Enabled' : 'Disabled'} ${user.username}.`);
      live.reload();
    } catch (error) {
      failed(`${user.username} was not changed`, error);
    }
  };
  const reset = async (user: User): Promise<void> => {
    try {
      await take(api.DELETE('/api/v1/users/{user_id}/totp', { params: { path: { user_id: user.id } } }));
      done(`Reset the second factor of ${user.username}.`);
    } catch (error) {
      failed('The second factor was not reset', error);
    }
  };
  const act = (user: User, what: string): void => {
    if (what === 'change' || what === 'password' || what === 'identity') ask({ what, user });
    else if (what === 'enable') void allow(user, true);
    else if (what === 'totp') confirm({ title: `Reset the second factor of ${user.username}?`, text: 'They sign in with the password alone until they switch a second factor on again.', yes: 'Reset', act: () => reset(user) });
    else confirm({ title: `Disable ${user.username}?`, text: 'Their access ends within 30 seconds. Their tasks and jobs continue.', yes: 'Disable', act: () => allow(user, false) });
  };
  const close = (): void => ask(null);
  return (
    <SpaceBetween size="l">
      {dialog}
      {asked?.what === 'create' && <UserDialog user={null} onClose={close} onDone={live.reload} />}
      {asked?.what === 'change' && <UserDialog user={asked.user} onClose={close} onDone={live.reload} />}
      {asked?.what === 'password' && <NewPassword user={asked.user} onClose={close} />}
      {asked?.what === 'identity' && sso !== null && <IdentityDialog user={asked.user} sso={sso} onClose={close} onDone={live.reload} />}
      <Table<User>
        variant="full-page"
        stickyHeader
        contentDensity="compact"
        trackBy="id"
        items={live.data?.items ?? []}
        loading={live.loading}
        loadingText="Loading users"
        ariaLabels={{ tableLabel: 'Users', selectionGroupLabel: '' }}
        header={
          <SpaceBetween size="xs">
            <Header
              variant="awsui-h1-sticky"
              description="The people who can sign in. When more jobs are due than can run, weight 2 gets twice the share of weight 1."
              actions={
                <SpaceBetween direction="horizontal" size="xs">
                  <Refresh live={live} />
                  {administers && (
                    <Button variant="primary" onClick={() => ask({ what: 'create' })}>
                      Create user
                    </Button>
                  )}
                </SpaceBetween>
              }
            >
              Users
            </Header>
            <Stale live={live} />
          </SpaceBetween>
        }
        pagination={<Pagination {...pages.bar(live.data?.cursor)} ariaLabels={{ nextPageLabel: 'Next page', previousPageLabel: 'Previous page', pageLabel: (n) => `Page ${n}` }} />}
        empty={live.error !== null && live.data === null ? <Failed error={live.error} what="users" retry={live.reload} /> : (
          <Empty title="No users">
            <Box variant="p" color="inherit">Each person who uses the console or the API needs a user with a role.</Box>
            {administers && <Button onClick={() => ask({ what: 'create' })}>Create a user</Button>}
            <DocsLink href={pageOfDocs('reference/roles')}>Roles</DocsLink>
          </Empty>
        )}
        columnDefinitions={[
          { id: 'name', header: 'Name', cell: (user) => <span title={user.id}>{user.username}</span>, isRowHeader: true },
          { id: 'role', header: 'Role', cell: (user) => <RoleOf user={user} /> },
          { id: 'state', header: 'State', cell: (user) => <StatusIndicator type={user.enabled ? 'success' : 'stopped'}>{user.enabled ? 'Enabled' : 'Disabled'}</StatusIndicator>, minWidth: 120 },
          { id: 'weight', header: 'Weight', cell: (user) => user.job_weight },
          { id: 'jobs', header: 'Max waiting jobs', cell: (user) => <Quota own={user.quotas.max_jobs} allowed={user.effective_quotas.max_jobs} /> },
          { id: 'creates', header: 'Max creates per second', cell: (user) => <Quota own={user.quotas.creates_per_second} allowed={user.effective_quotas.creates_per_second} /> },
          { id: 'created', header: 'Created', cell: (user) => <When at={user.created_at} /> },
          ...(administers
            ? [
                {
                  id: 'actions',
                  header: 'Actions',
                  cell: (user: User) => (
                    <ButtonDropdown
                      variant="inline-icon"
                      ariaLabel={`Actions of ${user.username}`}
                      expandToViewport
                      items={[
                        { id: 'change', text: 'Change' },
                        ...(user.has_password ? [{ id: 'password', text: 'Set password' }, { id: 'totp', text: 'Reset second factor' }] : []),
                        ...(sso === null ? [] : [{ id: 'identity', text: 'Single sign-on' }]),
                        user.enabled ? { id: 'disable', text: 'Disable' } : { id: 'enable', text: 'Enable' },
                      ]}
                      onItemClick={({ detail }) => act(user, detail.id)}
                    />
                  ),
                },
              ]
            : []),
        ]}
      />
    </SpaceBetween>
  );
}

/** The role that an administrator set, and the one by the groups of the identity provider: the higher one applies. */
function RoleOf({ user: { role, sso_role: sso, has_password: byPassword } }: { user: User }): ReactNode {
  return (
    <>
      {labelOf(role)}
      {sso !== null && <Box color="text-body-secondary" fontSize="body-s">{labelOf(sso)} by single sign-on</Box>}
      {!byPassword && <Box color="text-body-secondary" fontSize="body-s">no password</Box>}
    </>
  );
}

function labelOf(role: Role): string {
  return ROLES.find(({ value }) => value === role)?.label ?? role;
}

/** A limit of their own stands as it is; that of everyone is grey. */
function Quota({ own, allowed }: { own: number | null; allowed: number | null }): ReactNode {
  if (own !== null) return own.toLocaleString();
  return <Box color="text-body-secondary">{allowed === null ? 'no limit' : allowed.toLocaleString()}</Box>;
}

const FIELDS = ['username', 'password', 'role', 'job_weight', 'quotas.max_jobs', 'quotas.creates_per_second'];

/** Create one (`user` null), or change what they may. */
function UserDialog({ user, onClose, onDone }: { user: User | null; onClose: () => void; onDone: () => void }): ReactNode {
  const text = (value: number | null | undefined): string => (value === null || value === undefined ? '' : String(value));
  const [username, setUsername] = useState('');
  const [password, setPassword] = useState('');
  const [role, setRole] = useState<Role>(user?.role ?? 'user');
  const [weight, setWeight] = useState(text(user?.job_weight ?? 1));
  const [jobs, setJobs] = useState(text(user?.quotas.max_jobs));
  const [creates, setCreates] = useState(text(user?.quotas.creates_per_second));
  const { done } = useNotices();
  const act = async (): Promise<void> => {
    const may = { role, job_weight: Number(weight), quotas: { max_jobs: limit(jobs), creates_per_second: limit(creates) } };
    if (user === null) await take(api.POST('/api/v1/users', { body: { username, password, ...may } }));
    else await take(api.PATCH('/api/v1/users/{user_id}', { params: { path: { user_id: user.id } }, body: may }));
    done(user === null ? `Created ${username}.` : `Changed ${user.username}.`);
    onDone();
  };
  return (
    <FormDialog title={user === null ? 'Create a user' : `Change ${user.username}`} yes={user === null ? 'Create' : 'Save'} fields={FIELDS} values={{ username, password, role, job_weight: weight, quotas: { max_jobs: jobs, creates_per_second: creates } }} act={act} onClose={onClose}>
      {(errors) => (
        <SpaceBetween size="m">
          {user === null && (
            <SpaceBetween size="m">
              <FormField label="User name" errorText={errors['username']}>
                <Input value={username} onChange={({ detail }) => setUsername(detail.value)} autoComplete={false} autoFocus />
              </FormField>
              <FormField label="Password" description={POLICY} errorText={errors['password']}>
                <Input type="password" value={password} onChange={({ detail }) => setPassword(detail.value)} autoComplete="new-password" />
              </FormField>
            </SpaceBetween>
          )}
          <FormField label="Role" errorText={errors['role']} description={user === null ? undefined : user.sso_role !== null ? `By single sign-on: ${labelOf(user.sso_role)}. The higher role applies, within 30 seconds. A lower role ends all sessions.` : 'Applies within 30 seconds. A lower role ends all sessions.'}>
            <Select
              options={ROLES}
              selectedOption={ROLES.find(({ value }) => value === role) ?? null}
              triggerVariant="option"
              onChange={({ detail }) => setRole(detail.selectedOption.value as Role)}
            />
          </FormField>
          <FormField label="Weight" errorText={errors['job_weight']}>
            <Input type="number" value={weight} onChange={({ detail }) => setWeight(detail.value)} />
          </FormField>
          <ColumnLayout columns={2}>
            <FormField label={<>Max waiting jobs <i>– optional</i></>} errorText={errors['quotas.max_jobs']}>
              <Input type="number" value={jobs} placeholder={text(user?.effective_quotas.max_jobs) || 'default'} onChange={({ detail }) => setJobs(detail.value)} />
            </FormField>
            <FormField label={<>Max creates per second <i>– optional</i></>} errorText={errors['quotas.creates_per_second']}>
              <Input type="number" value={creates} placeholder={text(user?.effective_quotas.creates_per_second) || 'default'} onChange={({ detail }) => setCreates(detail.value)} />
            </FormField>
          </ColumnLayout>
        </SpaceBetween>
      )}
    </FormDialog>
  );
}

/** Nothing typed: as the deployment allows everyone. */
function limit(text: string): number | null {
  return text.trim() === '' ? null : Number(text);
}

function NewPassword({ user, onClose }: { user: User; onClose: () => void }): ReactNode {
  const [password, setPassword] = useState('');
  const { done } = useNotices();
  const act = async (): Promise<void> => {
    await take(api.PUT('/api/v1/users/{user_id}/password', { params: { path: { user_id: user.id } }, body: { password } }));
    done(`${user.username} has a new password. All sessions have ended.`);
  };
  return (
    <FormDialog title={`Set a password for ${user.username}`} yes="Set" fields={['password']} values={{ password }} act={act} onClose={onClose}>
      {(errors) => (
        <FormField label="New password" description={POLICY} errorText={errors['password']}>
          <Input type="password" value={password} onChange={({ detail }) => setPassword(detail.value)} autoComplete="new-password" autoFocus />
        </FormField>
      )}
    </FormDialog>
  );
}
