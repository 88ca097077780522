/** Whose tasks and jobs a page shows: one's own, those of a team or a user, or of several owners. The address has it: `?owner=<id>`. */
import Box from '@cloudscape-design/components/box';
import Select, { type SelectProps } from '@cloudscape-design/components/select';
import type { ReactNode } from 'react';
import { useSearchParams } from 'react-router';

import { api, take } from '../api/client';
import { mayOversee, useMe, useSession, type Me } from '../api/session';
import { useLive, type Live } from '../live';
import { choicesOf, EVERYONE, MINE, ownersOf, whoseOf, type Owner, type Whose } from '../owners';

/** Something of a list of several owners', with its owner. */
export type Owned<T> = T & { owner?: Owner };

const PAGE = 60;
export const MOST_USERS = 300;
const AT_ONCE = 4;

export function useWhose(): Whose {
  const [query] = useSearchParams();
  return whoseOf(query.get('owner') ?? '', useMe());
}

/** The owners whose lists the page merges. */
export function useOwnersToMerge(): () => Promise<Owners> {
  const { several } = useWhose();
  const me = useMe();
  const username = useSession()?.username ?? '';
  return several === 'mine' ? async () => ({ owners: ownersOf(me, username), complete: true }) : everyone;
}

interface ChoiceProps {
  /** The page shows one owner only. */
  single?: boolean;
}

/** A choice that everybody sees who has a team, and operators and administrators. */
export function WhoseChoice({ single = false }: ChoiceProps): ReactNode {
  const me = useMe();
  if (mayOversee(me.role)) return <ChoiceOfAll single={single} me={me} />;
  return me.teams.length > 0 ? <Choice single={single} me={me} others={NO_OTHERS} /> : null;
}

const NO_OTHERS = { users: [] as Owner[], teams: [] as Owner[], status: 'finished' as SelectProps['statusType'] };

function ChoiceOfAll(props: { single: boolean; me: Me }): ReactNode {
  const found = useOwners();
  return <Choice {...props} others={{ users: found.data?.users ?? [], teams: found.data?.teams ?? [], status: found.loading ? 'loading' : found.error === null ? 'finished' : 'error' }} />;
}

function Choice({ single, me, others }: { single: boolean; me: Me; others: typeof NO_OTHERS }): ReactNode {
  const [query, setQuery] = useSearchParams();
  const named = query.get('owner') ?? '';
  const { first, teams, users, otherTeams } = choicesOf(me, others, single);
  const chosen = named === me.id || (single && (named === EVERYONE || named === MINE)) ? '' : named;
  const groups = [{ label: 'My teams', options: teams }, { label: 'Users', options: users }, { label: 'Teams', options: otherTeams }];
  return (
    <Select
      ariaLabel="Owner"
      options={[...first, ...groups.filter(({ options }) => options.length > 0)]}
      filteringType="auto"
      filteringAriaLabel="Find an owner"
      statusType={others.status}
      loadingText="Loading owners"
      errorText="The owners could not be loaded"
      selectedOption={[...first, ...teams, ...users, ...otherTeams].find(({ value }) => value === chosen) ?? { value: chosen, label: chosen }}
      onChange={({ detail }) =>
        setQuery(
          (before) => {
            const next = new URLSearchParams(before);
            const value = detail.selectedOption.value ?? '';
            if (value === '') next.delete('owner');
            else next.set('owner', value);
            for (const name of ['task', 'operation', 'redrive', 'of', 'whose']) next.delete(name); // of the owner before
            return next;
          },
          { replace: true },
        )
      }
    />
  );
}

/** The owner's name above what is not one's own. */
export function OfWhom(): ReactNode {
  const { owner } = useWhose();
  return owner === undefined ? null : <Box color="text-body-secondary">Owner: <b><OwnerName id={owner} /></b></Box>;
}

/** The name of a team, or of a user if the viewer may read it; else the id. */
export function OwnerName({ id }: { id: string }): ReactNode {
  const me = useMe();
  const own = ownersOf(me, useSession()?.username ?? '').find((each) => each.id === id);
  if (own !== undefined) return own.username;
  return mayOversee(me.role) ? <ReadName id={id} /> : id;
}

function ReadName({ id }: { id: string }): ReactNode {
  const found = useLive(`owner ${id}`, () => nameOf(id), 0);
  return found.data ?? id;
}

async function nameOf(id: string): Promise<string> {
  if (isTeam(id)) return (await take(api.GET('/api/v1/teams/{team_id}', { params: { path: { team_id: id } } }))).name;
  return (await take(api.GET('/api/v1/users/{user_id}', { params: { path: { user_id: id } } }))).username;
}

export function isTeam(id: string): boolean {
  return id.startsWith('team-');
}

interface Owners {
  owners: Owner[];
  complete: boolean;
}

interface AllOwners {
  users: Owner[];
  teams: Owner[];
  complete: boolean;
}

/** All users and teams, for operators and administrators. */
export function useOwners(): Live<AllOwners> {
  return useLive('owners', allOwners, 0);
}

async function everyone(): Promise<Owners> {
  const { users, teams, complete } = await allOwners();
  return { owners: [...users, ...teams], complete };
}

/** All users and teams by name, up to `MOST_USERS` of each. */
async function allOwners(): Promise<AllOwners> {
  const [users, teams] = await Promise.all([
    upTo(async (cursor) => {
      const page = await take(api.GET('/api/v1/users', { params: { query: { limit: PAGE, cursor } } }));
      return { items: page.items.map(({ id, username }) => ({ id, username })), cursor: page.cursor };
    }),
    upTo(async (cursor) => {
      const page = await take(api.GET('/api/v1/teams', { params: { query: { all: true, limit: PAGE, cursor } } }));
      return { items: page.items.map(({ id, name }) => ({ id, username: name })), cursor: page.cursor };
    }),
  ]);
  return { users: users.owners, teams: teams.owners, complete: users.complete && teams.complete };
}

async function upTo(ask: (cursor: string | undefined) => Promise<{ items: Owner[]; cursor: string | null }>): Promise<Owners> {
  const owners: Owner[] = [];
  let cursor: string | undefined;
  do {
    const page = await ask(cursor);
    owners.push(...page.items);
    cursor = page.cursor ?? undefined;
  } while (cursor !== undefined && owners.length < MOST_USERS);
  owners.sort((one, other) => one.username.localeCompare(other.username));
  return { owners, complete: cursor === undefined };
}

/** What each of the owners has, with its owner: the API lists one owner's at a time. */
export async function ofEach<T extends object>(list: () => Promise<Owners>, ask: (owner: string) => Promise<T[]>): Promise<{ found: Owned<T>[]; complete: boolean }> {
  const { owners, complete } = await list();
  const left = [...owners];
  const found: Owned<T>[] = [];
  const work = async (): Promise<void> => {
    for (let owner = left.shift(); owner !== undefined; owner = left.shift()) {
      const of = owner;
      found.push(...(await ask(of.id)).map((each) => ({ ...each, owner: of })));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return { found, complete };
}
