/** Keeps what the session says of the viewer's role and teams up to date. */
import { useEffect, useState } from 'react';

import { api, apiError, take, type ApiError, type Schemas } from './client';
import { goOn, onRefusal, session, useSession, type Me, type OwnTeam } from './session';

const EVERY = 60_000;
const AFTER_A_REFUSAL = 5_000; // at most so often: a page may be refused again and again

export function meOf({ id, role, teams }: Pick<Schemas['Me'], 'id' | 'role' | 'teams'>): Me {
  return { id, role: role ?? 'user', teams };
}

/** Read the role and the teams. Throws ApiError. */
export async function readMe(): Promise<void> {
  const before = session();
  const found = meOf(await take(api.GET('/api/v1/me')));
  const now = session();
  if (now === null || now.username !== before?.username) return; // somebody else signed in meanwhile
  if (JSON.stringify(now.me) !== JSON.stringify(found)) goOn({ me: found });
}

/** The viewer joined a team, or left it: shown at once, although some servers know it half a minute later. */
export function joined({ id, name, role }: { id: string; name: string; role: OwnTeam['role'] | null }): void {
  changeTeams((teams) => (role === null ? teams : [...teams.filter((each) => each.id !== id), { id, name, role }].sort((one, other) => one.name.localeCompare(other.name))));
}

export function left(team: string): void {
  changeTeams((teams) => teams.filter(({ id }) => id !== team));
}

function changeTeams(change: (teams: OwnTeam[]) => OwnTeam[]): void {
  const me = session()?.me;
  if (me != null) goOn({ me: { ...me, teams: change(me.teams) } });
}

/** Read them at once, every minute, and when the API refuses something. Returns why the first answer is missing, and what asks again. */
export function useFreshMe(): { error: ApiError | null; again: () => void } {
  const known = useSession()?.me != null;
  const [error, setError] = useState<ApiError | null>(null);
  const [attempt, setAttempt] = useState(0);
  useEffect(() => {
    let latest = Date.now();
    const read = (): void => {
      latest = Date.now();
      readMe().then(() => setError(null), (refusal: unknown) => setError(apiError(refusal)));
    };
    read();
    const timer = setInterval(() => !document.hidden && read(), EVERY);
    const end = onRefusal(() => Date.now() - latest > AFTER_A_REFUSAL && read());
    return () => {
      clearInterval(timer);
      end();
    };
  }, [attempt]);
  return { error: known ? null : error, again: () => setAttempt((before) => before + 1) };
}
