/** The lanes (queues, where a person reads) that are paused, or drain after a resume: each page that they concern says so. */
import type { FlashbarProps } from '@cloudscape-design/components/flashbar';
import Alert from '@cloudscape-design/components/alert';
import { createContext, useContext, useMemo, useRef, type ReactNode } from 'react';

import { readStatus, type LaneNow } from '../api/status';
import { mayOversee, useRole } from '../api/session';
import { useLive } from '../live';
import { concerned, drainingOf, jobs } from '../problems';
import { Reason, To } from './parts';
import { Ago } from './time';

const OFTEN = 2_000; // while a lane drains
const SELDOM = 15_000;

interface Lanes {
  lanes: readonly LaneNow[];
  /** The resumed ones of which jobs still wait. */
  draining: readonly string[];
  reload: () => void;
}

const NONE: Lanes = { lanes: [], draining: [], reload: () => undefined };
const Context = createContext<Lanes>(NONE);

export function useLanes(): Lanes {
  return useContext(Context);
}

export function LanesProvider({ children }: { children: ReactNode }): ReactNode {
  const scope = mayOversee(useRole()) ? 'all' : 'own';
  const before = useRef<Pick<Lanes, 'lanes' | 'draining'>>(NONE);
  const live = useLive(
    `paused ${scope}`,
    async () => {
      const { lanes } = await readStatus(scope);
      before.current = { lanes, draining: drainingOf(before.current, lanes) };
      return before.current;
    },
    (found) => (found !== null && found.draining.length > 0 ? OFTEN : SELDOM),
  );
  const shown = useMemo<Lanes>(() => ({ ...(live.data ?? NONE), reload: live.reload }), [live.data, live.reload]);
  return <Context value={shown}>{children}</Context>;
}

function headerOf(lane: LaneNow): string {
  const waiting = lane.waiting === null ? '' : `: ${jobs(lane.waiting, lane.at_least)} ${lane.waiting === 1 ? 'waits' : 'wait'}`;
  return lane.paused_at === null
    ? `The queue ${lane.lane} was resumed: ${jobs(lane.waiting ?? 0, lane.at_least)} still ${lane.waiting === 1 ? 'waits' : 'wait'}`
    : `The queue ${lane.lane} is paused${waiting}`;
}

/** Who paused it, when and why. */
function Pause({ lane }: { lane: LaneNow }): ReactNode {
  return (
    <>
      Paused <Ago at={lane.paused_at} />
      {lane.paused_by !== null && <> by {lane.paused_by_name ?? lane.paused_by}</>}. {lane.reason === null ? 'No reason was given.' : <>Reason: <Reason text={lane.reason} /></>}
    </>
  );
}

/** The messages at the top of the page with this address. */
export function useLaneFlashes(pathname: string): FlashbarProps.MessageDefinition[] {
  const { lanes, draining } = useLanes();
  return lanes.flatMap((lane): FlashbarProps.MessageDefinition[] => {
    const paused = lane.paused_at !== null;
    if (!concerned(pathname, lane.lane, paused) || (!paused && !draining.includes(lane.lane))) return [];
    const content = paused ? <><Pause lane={lane} /> <To href="/status" color="inverted">What is wrong now</To></> : undefined;
    return [{ id: `paused-${lane.lane}`, type: paused ? 'warning' : 'in-progress', header: headerOf(lane), content }];
  });
}

/** The same on the page of a job that waits in this lane. */
export function LaneAlert({ lane: name }: { lane: string }): ReactNode {
  const { lanes, draining } = useLanes();
  const lane = lanes.find((each) => each.lane === name);
  if (lane === undefined) return null;
  if (lane.paused_at === null) return draining.includes(name) ? <Alert type="info" header={headerOf(lane)} /> : null;
  return (
    <Alert type="warning" header={headerOf(lane)} action={<To href="/status">What is wrong now</To>}>
      <Pause lane={lane} />
    </Alert>
  );
}
