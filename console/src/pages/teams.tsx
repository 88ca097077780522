import Box from '@cloudscape-design/components/box';
import Button from '@cloudscape-design/components/button';
import FormField from '@cloudscape-design/components/form-field';
import Header from '@cloudscape-design/components/header';
import Input from '@cloudscape-design/components/input';
import Pagination from '@cloudscape-design/components/pagination';
import SegmentedControl from '@cloudscape-design/components/segmented-control';
import SpaceBetween from '@cloudscape-design/components/space-between';
import Table from '@cloudscape-design/components/table';
import { useState, type ReactNode } from 'react';
import { useNavigate } from 'react-router';

import { api, take, type Schemas } from '../api/client';
import { joined } from '../api/me';
import { mayOversee, useRole } from '../api/session';
import { pageOfDocs } from '../docs';
import { useLive } from '../live';
import { DocsLink } from '../parts/docs-link';
import { FormDialog } from '../parts/form-dialog';
import { pageOfTeam } from '../parts/links';
import { useNotices } from '../parts/notices';
import { usePages } from '../parts/pages';
import { Empty, Failed, Stale, To, useTitle, Words } from '../parts/parts';
import { useQuery } from '../parts/query';
import { When } from '../parts/time';
import { Refresh } from '../parts/trail';
import { teamRoleInWords } from '../teams';

export type Team = Schemas['Team'];

const LIMIT = 60;
const EVERY = 15_000;

/** One's own teams; for operators also all teams. */
export default function Teams(): ReactNode {
  useTitle('Teams');
  const [query, set] = useQuery();
  const oversees = mayOversee(useRole());
  const all = oversees && query.get('teams') === 'all';
  const pages = usePages(`teams ${all}`);
  const live = useLive(`teams ${all} ${pages.cursor ?? ''}`, () => take(api.GET('/api/v1/teams', { params: { query: { all: all || undefined, limit: LIMIT, cursor: pages.cursor } } })), EVERY);
  const [creating, setCreating] = useState(false);
  return (
    <SpaceBetween size="m">
      {creating && <TeamDialog onClose={() => setCreating(false)} />}
      <Table<Team>
        variant="full-page"
        stickyHeader
        contentDensity="compact"
        wrapLines
        trackBy="id"
        items={live.data?.items ?? []}
        loading={live.loading}
        loadingText="Loading teams"
        ariaLabels={{ tableLabel: 'Teams', selectionGroupLabel: '' }}
        header={
          <SpaceBetween size="xs">
            <Header
              variant="awsui-h1-sticky"
              description="A team owns tasks, jobs and API keys. Its members see the same ones, and change them by their role."
              actions={
                <SpaceBetween direction="horizontal" size="xs">
                  {oversees && (
                    <SegmentedControl
                      label="Which teams"
                      selectedId={all ? 'all' : 'own'}
                      options={[{ id: 'own', text: 'My teams' }, { id: 'all', text: 'All teams' }]}
                      onChange={({ detail }) => set({ teams: detail.selectedId === 'all' ? 'all' : '' })}
                    />
                  )}
                  <Refresh live={live} />
                  <Button variant="primary" onClick={() => setCreating(true)}>Create team</Button>
                </SpaceBetween>
              }
            >
              Teams
            </Header>
            <Stale live={live} />
          </SpaceBetween>
        }
        pagination={<Pagination {...pages.bar(live.data?.cursor)} ariaLabels={{ nextPageLabel: 'Next page', previousPageLabel: 'Previous page', pageLabel: (n) => `Page ${n}` }} />}
        empty={live.error !== null && live.data === null ? <Failed error={live.error} what="teams" retry={live.reload} /> : (
          <Empty title={all ? 'No teams' : 'You are in no team'}>
            <Box variant="p" color="inherit">In a team, several people see and change the same tasks and jobs. A person who leaves the team loses access to them, and the tasks continue to run. You join a team through an invitation from its manager.</Box>
            <Button onClick={() => setCreating(true)}>Create a team</Button>
            <DocsLink href={pageOfDocs('reference/roles')}>Roles and teams</DocsLink>
          </Empty>
        )}
        columnDefinitions={[
          { id: 'name', header: 'Name', isRowHeader: true, cell: (team) => <To href={pageOfTeam(team.id)}><Words>{team.name}</Words></To>, minWidth: 160 },
          { id: 'role', header: 'My role', cell: (team) => teamRoleInWords(team.role) },
          { id: 'tasks', header: 'Tasks', cell: (team) => <To href={`/tasks?owner=${team.id}`}>{`Tasks of ${team.name}`}</To> },
          { id: 'created', header: 'Created', cell: (team) => <When at={team.created_at} /> },
        ]}
      />
    </SpaceBetween>
  );
}

function TeamDialog({ onClose }: { onClose: () => void }): ReactNode {
  const [name, setName] = useState('');
  const navigate = useNavigate();
  const { done } = useNotices();
  const act = async (): Promise<void> => {
    const made = await take(api.POST('/api/v1/teams', { body: { name: name.trim() } }));
    joined(made);
    done(`Created the team “${made.name}”.`);
    void navigate(pageOfTeam(made.id));
  };
  return (
    <FormDialog title="Create a team" yes="Create" fields={['name']} values={{ name }} act={act} onClose={onClose}>
      {(errors) => (
        <FormField label="Name" description="You become its first manager" errorText={errors['name']}>
          <Input value={name} onChange={({ detail }) => setName(detail.value)} autoComplete={false} autoFocus />
        </FormField>
      )}
    </FormDialog>
  );
}
