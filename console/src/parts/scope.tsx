/** Whose figures a page shows: those of everybody, for who may see them, one's own, or those of a team. */
import SegmentedControl from '@cloudscape-design/components/segmented-control';
import type { ReactNode } from 'react';
import { useSearchParams } from 'react-router';

import { mayOversee, useMe, useRole } from '../api/session';
import { EVERYONE } from '../owners';
import { OfWhom, useWhose, WhoseChoice } from './whose';

export type Scope = 'own' | 'all';

export interface Scoped {
  scope: Scope;
  /** The owner that the address names, if it is not the viewer. */
  owner: string | undefined;
}

/** As the address says, so that it can be shared; else everybody's for who may see them. */
export function useScope(): Scoped {
  const [query] = useSearchParams();
  const { owner } = useWhose();
  const all = mayOversee(useRole());
  const own = owner !== undefined || (query.get('scope') === 'own' && query.get('owner') !== EVERYONE);
  return { scope: all && !own ? 'all' : 'own', owner };
}

/** Operators choose between everyone and themselves, others between themselves and their teams. */
export function ScopeChoice(): ReactNode {
  const [, setQuery] = useSearchParams();
  const { scope, owner } = useScope();
  const oversees = mayOversee(useRole());
  const teams = useMe().teams.length;
  const set = (chosen: Scope): void =>
    setQuery(
      (before) => {
        const next = new URLSearchParams(before);
        next.set('scope', chosen);
        next.delete('owner');
        return next;
      },
      { replace: true },
    );
  return (
    <>
      {oversees && (
        <SegmentedControl
          label="Owner"
          selectedId={owner === undefined ? scope : null}
          options={[{ id: 'all', text: 'Everyone' }, { id: 'own', text: 'Me' }]}
          onChange={({ detail }) => set(detail.selectedId as Scope)}
        />
      )}
      {oversees ? <OfWhom /> : teams > 0 && <WhoseChoice single />}
    </>
  );
}
