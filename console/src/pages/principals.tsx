import Box from '@cloudscape-design/components/box';
import Button from '@cloudscape-design/components/button';
import ButtonDropdown from '@cloudscape-design/components/button-dropdown';
import FormField from '@cloudscape-design/components/form-field';
import Header from '@cloudscape-design/components/header';
import Input from '@cloudscape-design/components/input';
import Select from '@cloudscape-design/components/select';
import SpaceBetween from '@cloudscape-design/components/space-between';
import Table from '@cloudscape-design/components/table';
import { useState, type ReactNode } from 'react';

import { api, take, type Schemas } from '../api/client';
import { useRole } from '../api/session';
import { pageOfDocs } from '../docs';
import { optional } from '../form/fields';
import { useLive } from '../live';
import type { Owner } from '../owners';
import { DocsLink } from '../parts/docs-link';
import { FormDialog } from '../parts/form-dialog';
import { useNotices } from '../parts/notices';
import { Empty, Failed, Stale, useConfirm, useTitle, Words } from '../parts/parts';
import { ScopesField } from '../parts/scopes';
import { When } from '../parts/time';
import { Refresh } from '../parts/trail';
import { useOwners } from '../parts/whose';
import { SCOPES, scopesInWords, type Scope } from '../scopes';

type Principal = Schemas['Principal'];

const EVERY = 15_000;

/** The AWS roles that act for an owner without a key. */
export default function Principals(): ReactNode {
  useTitle('AWS roles');
  const administers = useRole() === 'administrator';
  const live = useLive('principals', () => take(api.GET('/api/v1/principals')), EVERY);
  const owners = useOwners();
  const [opened, ask] = useState<Principal | 'new' | null>(null);
  const [dialog, confirm] = useConfirm();
  const { done, failed } = useNotices();
  const users = owners.data?.users ?? [];
  const teams = owners.data?.teams ?? [];
  const nameOf = (id: string): string => [...users, ...teams].find((each) => each.id === id)?.username ?? id;
  const remove = async ({ id, arn }: Principal): Promise<void> => {
    try {
      await take(api.DELETE('/api/v1/principals/{principal_id}', { params: { path: { principal_id: id } } }));
      done(`Deleted ${arn}.`);
    } catch (error) {
      failed(`${arn} was not deleted`, error);
    }
    live.reload();
  };
  const act = (principal: Principal, what: string): void => {
    if (what === 'change') ask(principal);
    else confirm({ title: 'Delete this AWS role?', text: <Words>The API refuses {principal.arn} within 30 seconds. Tasks and jobs of {nameOf(principal.owner)} go on.</Words>, yes: 'Delete', act: () => remove(principal) });
  };
  return (
    <SpaceBetween size="m">
      {dialog}
      {opened !== null && <PrincipalDialog principal={opened === 'new' ? null : opened} users={users} teams={teams} onClose={() => ask(null)} onDone={live.reload} />}
      <Table<Principal>
        variant="full-page"
        stickyHeader
        contentDensity="compact"
        wrapLines
        trackBy="id"
        items={live.data?.items ?? []}
        loading={live.loading}
        loadingText="Loading AWS roles"
        ariaLabels={{ tableLabel: 'AWS roles', selectionGroupLabel: '' }}
        header={
          <SpaceBetween size="xs">
            <Header
              variant="awsui-h1-sticky"
              description="Programs with one of these roles call the API, and send to the intake queues, for an owner. They need no key."
              actions={
                <SpaceBetween direction="horizontal" size="xs">
                  <Refresh live={live} />
                  {administers && <Button variant="primary" onClick={() => ask('new')}>Add AWS role</Button>}
                </SpaceBetween>
              }
            >
              AWS roles
            </Header>
            <Stale live={live} />
          </SpaceBetween>
        }
        empty={live.error !== null && live.data === null ? <Failed error={live.error} what="AWS roles" retry={live.reload} /> : (
          <Empty title="No AWS roles">
            <Box variant="p" color="inherit">A service on AWS proves who it is by its role, so it needs no secret of the scheduler. An administrator names the owner for whom it acts.</Box>
            {administers && <Button onClick={() => ask('new')}>Add an AWS role</Button>}
            <DocsLink href={pageOfDocs('guides/aws-identity')}>Sign in with an AWS role</DocsLink>
          </Empty>
        )}
        columnDefinitions={[
          { id: 'arn', header: 'Role', isRowHeader: true, cell: ({ arn, unique_id: unique }) => <><Words>{arn}</Words>{unique !== null && <Box color="text-body-secondary" fontSize="body-s"><Words>{unique}</Words></Box>}</>, minWidth: 220 },
          { id: 'owner', header: 'Acts for', cell: ({ owner }) => <span title={owner}><Words>{nameOf(owner)}</Words></span>, minWidth: 120 },
          { id: 'scopes', header: 'Permissions', cell: ({ scopes }) => <span title={scopes.join(' ')}>{scopesInWords(scopes)}</span>, minWidth: 180 },
          { id: 'by', header: 'Made by', cell: ({ made_by: by }) => <span title={by}><Words>{nameOf(by)}</Words></span> },
          { id: 'created', header: 'Created', cell: ({ created_at: at }) => <When at={at} /> },
          ...(administers
            ? [
                {
                  id: 'actions',
                  header: 'Actions',
                  cell: (principal: Principal) => (
                    <ButtonDropdown
                      variant="inline-icon"
                      ariaLabel={`Actions of ${principal.arn}`}
                      expandToViewport
                      items={[{ id: 'change', text: 'Change' }, { id: 'delete', text: 'Delete' }]}
                      onItemClick={({ detail }) => act(principal, detail.id)}
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

const FIELDS = ['arn', 'owner', 'scopes', 'unique_id'];
const ALL = SCOPES.map(({ value }) => value);

interface DialogProps {
  principal: Principal | null;
  users: readonly Owner[];
  teams: readonly Owner[];
  onClose: () => void;
  onDone: () => void;
}

/** Add one (`principal` null), or change for whom and what it may act. */
function PrincipalDialog({ principal, users, teams, onClose, onDone }: DialogProps): ReactNode {
  const [arn, setArn] = useState('');
  const [owner, setOwner] = useState(principal?.owner ?? '');
  const [scopes, setScopes] = useState<Scope[]>(principal?.scopes ?? ['jobs:read', 'jobs:write']);
  const [unique, setUnique] = useState(principal?.unique_id ?? '');
  const { done } = useNotices();
  const optionsOf = (owners: readonly Owner[]): { value: string; label: string }[] => owners.map(({ id, username }) => ({ value: id, label: username }));
  const all = [...optionsOf(teams), ...optionsOf(users)];
  const act = async (): Promise<void> => {
    const unique_id = unique.trim() || undefined;
    if (principal === null) await take(api.POST('/api/v1/principals', { body: { arn: arn.trim(), owner, scopes, unique_id } }));
    else await take(api.PATCH('/api/v1/principals/{principal_id}', { params: { path: { principal_id: principal.id } }, body: { owner, scopes, unique_id } }));
    done(principal === null ? `Added ${arn.trim()}.` : `Changed ${principal.arn}.`);
    onDone();
  };
  return (
    <FormDialog title={principal === null ? 'Add an AWS role' : 'Change an AWS role'} yes={principal === null ? 'Add' : 'Save'} fields={FIELDS} values={{ arn, owner, scopes, unique_id: unique }} act={act} onClose={onClose}>
      {(errors) => (
        <SpaceBetween size="m">
          {principal === null ? (
            <FormField label="ARN of the role" description="Its name may contain *, its account may not" errorText={errors['arn']}>
              <Input value={arn} placeholder="arn:aws:iam::123456789012:role/orders" onChange={({ detail }) => setArn(detail.value)} autoComplete={false} autoFocus />
            </FormField>
          ) : (
            <Box><Words>{principal.arn}</Words></Box>
          )}
          <FormField label="Acts for" errorText={errors['owner']}>
            <Select
              options={[{ label: 'Teams', options: optionsOf(teams) }, { label: 'Users', options: optionsOf(users) }].filter(({ options }) => options.length > 0)}
              filteringType="auto"
              filteringAriaLabel="Find an owner"
              placeholder="Choose a team or a user"
              selectedOption={all.find(({ value }) => value === owner) ?? (owner === '' ? null : { value: owner, label: owner })}
              onChange={({ detail }) => setOwner(detail.selectedOption.value ?? '')}
            />
          </FormField>
          <ScopesField chosen={scopes} offered={ALL} error={errors['scopes']} onChange={setScopes} />
          <FormField label={optional('Unique id')} description="AROA…, by which the intake queues know the sender" errorText={errors['unique_id']}>
            <Input value={unique} onChange={({ detail }) => setUnique(detail.value)} autoComplete={false} />
          </FormField>
        </SpaceBetween>
      )}
    </FormDialog>
  );
}
