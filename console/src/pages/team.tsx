/** One team: its members with their roles, and its invitations. */
import BreadcrumbGroup from '@cloudscape-design/components/breadcrumb-group';
import Button from '@cloudscape-design/components/button';
import ButtonDropdown from '@cloudscape-design/components/button-dropdown';
import FormField from '@cloudscape-design/components/form-field';
import Header from '@cloudscape-design/components/header';
import Input from '@cloudscape-design/components/input';
import Select from '@cloudscape-design/components/select';
import SpaceBetween from '@cloudscape-design/components/space-between';
import Table from '@cloudscape-design/components/table';
import { useState, type ReactNode } from 'react';
import { useNavigate, useParams } from 'react-router';

import { api, take, type Schemas } from '../api/client';
import { joined, left, readMe } from '../api/me';
import { useMe, type TeamRole } from '../api/session';
import { useLive, type Live } from '../live';
import { mayManage } from '../owners';
import { FormDialog } from '../parts/form-dialog';
import { useNotices } from '../parts/notices';
import { Empty, Failed, Loaded, Stale, To, useConfirm, useTitle, Words } from '../parts/parts';
import { ShownOnce } from '../parts/shown-once';
import { When } from '../parts/time';
import { invitationLink } from '../scopes';
import { TEAM_ROLES, teamRoleInWords } from '../teams';
import type { Team } from './teams';

type Member = Schemas['Member'];
type Invitation = Schemas['Invitation'];
type NewInvitation = Schemas['NewInvitation'];

const EVERY = 15_000;

export default function TeamPage(): ReactNode {
  const { id = '' } = useParams();
  const live = useLive(`team ${id}`, () => take(api.GET('/api/v1/teams/{team_id}', { params: { path: { team_id: id } } })), EVERY);
  useTitle(live.data?.name ?? 'Team');
  return <Loaded live={live} what="team">{(team) => <Shown team={team} reload={live.reload} />}</Loaded>;
}

type Opened = { what: 'rename' } | { what: 'invite' } | { what: 'role'; member: Member };

function Shown({ team, reload }: { team: Team; reload: () => void }): ReactNode {
  const navigate = useNavigate();
  const me = useMe();
  const manages = mayManage(team.role, me.role);
  const params = { path: { team_id: team.id } };
  const members = useLive(`members ${team.id}`, () => take(api.GET('/api/v1/teams/{team_id}/members', { params })), EVERY);
  const invitations = useLive(`invitations ${team.id} ${manages}`, async () => (manages ? (await take(api.GET('/api/v1/teams/{team_id}/invitations', { params }))).items : []), EVERY);
  const [opened, ask] = useState<Opened | null>(null);
  const [invited, setInvited] = useState<NewInvitation | null>(null);
  const [dialog, confirm] = useConfirm();
  const { done, failed } = useNotices();
  const close = (): void => ask(null);

  /** Do it, say so, and read the rights again. */
  const change = async (act: () => Promise<unknown>, said: string, not: string): Promise<boolean> => {
    try {
      await act();
      done(said);
      await readMe().catch(() => undefined);
      return true;
    } catch (error) {
      failed(not, error);
      return false;
    } finally {
      members.reload();
      invitations.reload();
    }
  };
  const remove = (member: Member): void => {
    const name = member.username ?? member.user_id;
    const own = member.user_id === me.id;
    confirm({
      title: own ? `Leave “${team.name}”?` : `Remove ${name} from “${team.name}”?`,
      text: `${own ? 'You lose' : 'They lose'} access within 30 seconds, and so do ${own ? 'your' : 'their'} API keys of the team. Tasks and jobs of the team go on.`,
      yes: own ? 'Leave' : 'Remove',
      act: async () => {
        const gone = await change(
          () => take(api.DELETE('/api/v1/teams/{team_id}/members/{user_id}', { params: { path: { team_id: team.id, user_id: member.user_id } } })),
          own ? `You left “${team.name}”.` : `Removed ${name}.`,
          own ? 'You did not leave the team' : `${name} was not removed`,
        );
        if (!gone || !own) return;
        left(team.id);
        void navigate('/teams');
      },
    });
  };
  const withdraw = (invitation: Invitation): void =>
    confirm({
      title: 'Withdraw this invitation?',
      text: 'Its link is refused from now on.',
      yes: 'Withdraw',
      act: () =>
        change(
          () => take(api.DELETE('/api/v1/teams/{team_id}/invitations/{invitation_id}', { params: { path: { team_id: team.id, invitation_id: invitation.id } } })),
          'Withdrew the invitation.',
          'The invitation was not withdrawn',
        ).then(() => undefined),
    });
  const deletion = (): void =>
    confirm({
      title: `Delete “${team.name}”?`,
      text: 'Its members, invitations, API keys and receivers are deleted. Jobs that wait are cancelled when they are due. The history stays. A team with active tasks cannot be deleted.',
      yes: 'Delete',
      act: async () => {
        if (!(await change(() => take(api.DELETE('/api/v1/teams/{team_id}', { params })), `Deleted “${team.name}”.`, `“${team.name}” was not deleted`))) return;
        left(team.id);
        void navigate('/teams');
      },
    });
  return (
    <SpaceBetween size="l">
      {dialog}
      {opened?.what === 'rename' && <RenameDialog team={team} onClose={close} onDone={reload} />}
      {opened?.what === 'role' && <RoleDialog team={team} member={opened.member} onClose={close} onDone={members.reload} />}
      {opened?.what === 'invite' && <InviteDialog team={team} onClose={close} onMade={(made) => { setInvited(made); invitations.reload(); }} />}
      {invited !== null && (
        <ShownOnce
          title={`An invitation to “${team.name}”`}
          warning="Copy the link now: it is not shown again. It makes one person a member, whoever uses it first. Send it to that person only."
          texts={[{ label: 'Link', text: invitationLink(window.location.origin, invited.token), description: `Role: ${teamRoleInWords(invited.role)}` }]}
          onClose={() => setInvited(null)}
        />
      )}
      <BreadcrumbGroup
        items={[{ text: 'Teams', href: '/teams' }, { text: team.name, href: '#' }]}
        onFollow={(event) => {
          event.preventDefault();
          if (event.detail.href !== '#') void navigate(event.detail.href);
        }}
      />
      <Header
        variant="h1"
        description={
          <SpaceBetween direction="horizontal" size="s">
            <span>My role: {teamRoleInWords(team.role)}</span>
            <To href={`/tasks?owner=${team.id}`}>Tasks</To>
            <To href={`/jobs?owner=${team.id}`}>Jobs</To>
            <To href={`/keys?owner=${team.id}`}>API keys</To>
          </SpaceBetween>
        }
        actions={
          <SpaceBetween direction="horizontal" size="xs">
            {manages && <ButtonDropdown items={[{ id: 'rename', text: 'Rename' }, { id: 'delete', text: 'Delete team' }]} onItemClick={({ detail }) => (detail.id === 'rename' ? ask({ what: 'rename' }) : deletion())}>More</ButtonDropdown>}
            {manages && <Button variant="primary" onClick={() => ask({ what: 'invite' })}>Invite</Button>}
          </SpaceBetween>
        }
      >
        {team.name}
      </Header>
      <Members live={members} me={me.id} manages={manages} onRole={(member) => ask({ what: 'role', member })} onRemove={remove} />
      {manages && <Invitations live={invitations} members={members.data?.items ?? []} onWithdraw={withdraw} />}
    </SpaceBetween>
  );
}

interface MembersProps {
  live: Live<Schemas['Members']>;
  me: string;
  manages: boolean;
  onRole: (member: Member) => void;
  onRemove: (member: Member) => void;
}

function Members({ live, me, manages, onRole, onRemove }: MembersProps): ReactNode {
  const nameOf = (member: Member): string => member.username ?? member.user_id;
  return (
    <Table<Member>
      contentDensity="compact"
      wrapLines
      trackBy="user_id"
      items={live.data?.items ?? []}
      loading={live.loading}
      loadingText="Loading members"
      ariaLabels={{ tableLabel: 'Members', selectionGroupLabel: '' }}
      header={<><Header variant="h2" counter={live.data === null ? undefined : `(${live.data.items.length})`}>Members</Header><Stale live={live} /></>}
      empty={live.error !== null && live.data === null ? <Failed error={live.error} what="members" retry={live.reload} /> : <Empty title="No members" />}
      columnDefinitions={[
        { id: 'name', header: 'Name', isRowHeader: true, cell: (member) => <span title={member.user_id}><Words>{nameOf(member)}</Words>{member.user_id === me && ' (me)'}</span> },
        { id: 'role', header: 'Role', cell: (member) => teamRoleInWords(member.role) },
        { id: 'since', header: 'Member since', cell: (member) => <When at={member.since} /> },
        {
          id: 'actions',
          header: 'Actions',
          cell: (member) => (
            <SpaceBetween direction="horizontal" size="s">
              {manages && <Button variant="inline-link" ariaLabel={`Change role of ${nameOf(member)}`} onClick={() => onRole(member)}>Change role</Button>}
              {member.user_id === me ? (
                <Button variant="inline-link" ariaLabel="Leave the team" onClick={() => onRemove(member)}>Leave</Button>
              ) : (
                manages && <Button variant="inline-link" ariaLabel={`Remove ${nameOf(member)}`} onClick={() => onRemove(member)}>Remove</Button>
              )}
            </SpaceBetween>
          ),
        },
      ]}
    />
  );
}

function Invitations({ live, members, onWithdraw }: { live: Live<Invitation[]>; members: readonly Member[]; onWithdraw: (invitation: Invitation) => void }): ReactNode {
  return (
    <Table<Invitation>
      contentDensity="compact"
      wrapLines
      trackBy="id"
      items={live.data ?? []}
      loading={live.loading}
      loadingText="Loading invitations"
      ariaLabels={{ tableLabel: 'Invitations', selectionGroupLabel: '' }}
      header={<><Header variant="h2" description="Not used yet">Invitations</Header><Stale live={live} /></>}
      empty={live.error !== null && live.data === null ? <Failed error={live.error} what="invitations" retry={live.reload} /> : <Empty title="No open invitations" />}
      columnDefinitions={[
        { id: 'id', header: 'Invitation', isRowHeader: true, cell: (each) => each.id },
        { id: 'role', header: 'Role', cell: (each) => teamRoleInWords(each.role) },
        { id: 'by', header: 'Made by', cell: (each) => <span title={each.made_by}>{members.find(({ user_id: id }) => id === each.made_by)?.username ?? each.made_by}</span> },
        { id: 'created', header: 'Created', cell: (each) => <When at={each.created_at} /> },
        { id: 'expires', header: 'Expires', cell: (each) => <When at={each.expires_at} /> },
        { id: 'actions', header: 'Action', cell: (each) => <Button variant="inline-link" ariaLabel={`Withdraw the invitation ${each.id}`} onClick={() => onWithdraw(each)}>Withdraw</Button> },
      ]}
    />
  );
}

interface DialogProps {
  team: Team;
  onClose: () => void;
}

function RenameDialog({ team, onClose, onDone }: DialogProps & { onDone: () => void }): ReactNode {
  const [name, setName] = useState(team.name);
  const { done } = useNotices();
  const act = async (): Promise<void> => {
    const renamed = await take(api.PATCH('/api/v1/teams/{team_id}', { params: { path: { team_id: team.id } }, body: { name: name.trim() } }));
    joined(renamed);
    done(`The team is now “${renamed.name}”.`);
    onDone();
  };
  return (
    <FormDialog title={`Rename “${team.name}”`} yes="Rename" fields={['name']} values={{ name }} act={act} onClose={onClose}>
      {(errors) => (
        <FormField label="Name" errorText={errors['name']}>
          <Input value={name} onChange={({ detail }) => setName(detail.value)} autoComplete={false} autoFocus />
        </FormField>
      )}
    </FormDialog>
  );
}

function RoleChoice({ role, error, onChange }: { role: TeamRole; error: string | undefined; onChange: (role: TeamRole) => void }): ReactNode {
  return (
    <FormField label="Role" errorText={error}>
      <Select options={TEAM_ROLES} selectedOption={TEAM_ROLES.find(({ value }) => value === role) ?? null} triggerVariant="option" onChange={({ detail }) => onChange(detail.selectedOption.value as TeamRole)} />
    </FormField>
  );
}

function RoleDialog({ team, member, onClose, onDone }: DialogProps & { member: Member; onDone: () => void }): ReactNode {
  const [role, setRole] = useState(member.role);
  const { done } = useNotices();
  const name = member.username ?? member.user_id;
  const act = async (): Promise<void> => {
    await take(api.PUT('/api/v1/teams/{team_id}/members/{user_id}', { params: { path: { team_id: team.id, user_id: member.user_id } }, body: { role } }));
    done(`${name} is now ${teamRoleInWords(role).toLowerCase()} of “${team.name}”.`);
    onDone();
    await readMe().catch(() => undefined);
  };
  return (
    <FormDialog title={`Change the role of ${name}`} yes="Save" fields={['role']} values={{ role }} act={act} onClose={onClose}>
      {(errors) => (
        <SpaceBetween size="s">
          <RoleChoice role={role} error={errors['role']} onChange={setRole} />
          <div>Applies within 30 seconds, also to their API keys of the team.</div>
        </SpaceBetween>
      )}
    </FormDialog>
  );
}

function InviteDialog({ team, onClose, onMade }: DialogProps & { onMade: (made: NewInvitation) => void }): ReactNode {
  const [role, setRole] = useState<TeamRole>('editor');
  const [days, setDays] = useState('7');
  const act = async (): Promise<void> => {
    onMade(await take(api.POST('/api/v1/teams/{team_id}/invitations', { params: { path: { team_id: team.id } }, body: { role, expires_in_days: Number(days) } })));
  };
  return (
    <FormDialog title={`Invite to “${team.name}”`} yes="Create the link" fields={['role', 'expires_in_days']} values={{ role, expires_in_days: days }} act={act} onClose={onClose}>
      {(errors) => (
        <SpaceBetween size="m">
          <RoleChoice role={role} error={errors['role']} onChange={setRole} />
          <FormField label="Expires after (days)" constraintText="1 to 30" errorText={errors['expires_in_days']}>
            <Input type="number" value={days} onChange={({ detail }) => setDays(detail.value)} />
          </FormField>
        </SpaceBetween>
      )}
    </FormDialog>
  );
}
