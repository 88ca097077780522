/** Whose objects a page shows, by what its address says (`?owner=`). Pure. */
import type { Me, OwnTeam, Role } from './api/session';

/** A person or a team, with its name. */
export interface Owner {
  id: string;
  username: string;
}

/** In the address, for several owners at once. No owner has such an id: they are longer. */
export const EVERYONE = 'all';
export const MINE = 'mine';

export interface Whose {
  /** The owner that each call names. Undefined: the viewer. */
  owner: string | undefined;
  /** The page merges the lists of several owners; null: it shows those of one. */
  several: 'mine' | 'everyone' | null;
  /** Whether the viewer may change the objects of the owner; of several owners: of at least one. */
  mayChange: boolean;
  mayChangeOf: (owner: string | undefined) => boolean;
  /** For whom the viewer creates objects on the page: the owner, or undefined for the viewer. Null: it shows those of an owner for whom the viewer creates none. */
  creates: { owner: string | undefined } | null;
}

/** Whether the viewer may create objects for the owner: for nobody to whom they do not belong. Undefined: the viewer. */
function mayCreateFor(owner: string | undefined, me: Me): boolean {
  if (owner === undefined || owner === me.id) return true;
  const team = me.teams.find(({ id }) => id === owner);
  return team !== undefined && team.role !== 'viewer';
}

/** Whether the viewer may change what the owner has: administrators change it of everybody. */
export function mayChangeOf(owner: string | undefined, me: Me): boolean {
  return me.role === 'administrator' || mayCreateFor(owner, me);
}

/** Whether the viewer may manage a team: its members, its name and the keys of others. */
export function mayManage(role: OwnTeam['role'] | null, stage: Role): boolean {
  return role === 'manager' || stage === 'administrator';
}

export function whoseOf(named: string, me: Me): Whose {
  const of = (owner: string | undefined): boolean => mayChangeOf(owner, me);
  if (named === EVERYONE) return { owner: undefined, several: 'everyone', mayChange: me.role === 'administrator', mayChangeOf: of, creates: { owner: undefined } };
  if (named === MINE) return { owner: undefined, several: 'mine', mayChange: true, mayChangeOf: of, creates: { owner: undefined } };
  const owner = named === '' || named === me.id ? undefined : named;
  return { owner, several: null, mayChange: of(owner), mayChangeOf: of, creates: mayCreateFor(owner, me) ? { owner } : null };
}

/** The viewer and the viewer's teams. */
export function ownersOf(me: Me, username: string): Owner[] {
  return [{ id: me.id, username }, ...me.teams.map(({ id, name }) => ({ id, username: name }))];
}

interface Choice {
  value: string;
  label: string;
}

export interface Choices {
  first: Choice[];
  teams: Choice[];
  users: Choice[];
  otherTeams: Choice[];
}

/** The owners to choose from. `others`: those that operators see besides; `single`: the page shows one owner only. */
export function choicesOf(me: Me, others: { users: readonly Owner[]; teams: readonly Owner[] }, single: boolean): Choices {
  const own = new Set([me.id, ...me.teams.map(({ id }) => id)]);
  const named = (owners: readonly Owner[]): Choice[] => owners.filter(({ id }) => !own.has(id)).map(({ id, username }) => ({ value: id, label: username }));
  const oversees = me.role !== 'user';
  return {
    first: [
      { value: '', label: 'Me' },
      ...(!single && me.teams.length > 0 ? [{ value: MINE, label: 'Me and my teams' }] : []),
      ...(!single && oversees ? [{ value: EVERYONE, label: 'Everyone' }] : []),
    ],
    teams: me.teams.map(({ id, name }) => ({ value: id, label: name })),
    users: oversees ? named(others.users) : [],
    otherTeams: oversees ? named(others.teams) : [],
  };
}
