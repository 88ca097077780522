/** The lanes (queues, where a person reads) that are paused, or drain after a resume: each page that they concern says so. */
import type { FlashbarProps } from '@cloudscape-design/components/flashbar';
import Alert from '@cloudscape-design/components/alert';
import { createContext, useContext, useMemo, useRef, type ReactNode } from 'react';

import { readStatus, type LaneNow } from '../api/status';
import { mayOversee, useRole } from '../api/session';
import { useLive } from '../live';
import { concerned, drainingOf, jobs, pausedOf, type Backlog, type Draining } from '../problems';
import { Reason, To } from './parts';
import { Ago } from './time';

const OFTEN = 2_000; // while a lane drains
const SELDOM = 15_000;

interface Lanes extends Backlog {
  reload: () => void;
}

const NONE: Lanes = { lanes: [], late: { count: 0, at_least: false }, draining: [], reload: () => undefined };
const Context = createContext<Lanes>(NONE);

export function useLanes(): Lanes {
  return useContext(Context);
}

export function LanesProvider({ children }: { children: ReactNode }): ReactNode {
  const scope = mayOversee(useRole()) ? 'all' : 'own';
  const before = useRef<Backlog>(NONE);
  const live = useLive(
    `paused ${scope}`,
    async () => {
      const { lanes, late } = await readStatus(scope);
      before.current = { lanes, late, draining: drainingOf(before.current, lanes) };
      return before.current;
    },
    (found) => (found !== null && found.draining.length > 0 ? OFTEN : SELDOM),
  );
  const shown = useMemo<Lanes>(() => ({ ...(live.data ?? NONE), reload: live.reload }), [live.data, live.reload]);
  return <Context value={shown}>{children}</Context>;
}

function pausedInWords(lane: LaneNow): string {
  return `The queue ${lane.lane} is paused: ${jobs(lane.waiting, lane.at_least)} ${lane.waiting === 1 ? 'waits' : 'wait'}`;
}

function drainingInWords({ lane, left, at_least }: Draining): string {
  return `The queue ${lane} was resumed: ${jobs(left, at_least)} still ${left === 1 ? 'waits' : 'wait'}`;
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
  const paused = pausedOf(lanes).filter(({ lane }) => concerned(pathname, lane, true));
  const resumed = draining.filter(({ lane }) => concerned(pathname, lane, false));
  return [
    ...paused.map((lane): FlashbarProps.MessageDefinition => ({
      id: `paused-${lane.lane}`,
      type: 'warning',
      header: pausedInWords(lane),
      content: <><Pause lane={lane} /> <To href="/status" color="inverted">What is wrong now</To></>,
    })),
    ...resumed.map((each): FlashbarProps.MessageDefinition => ({ id: `resumed-${each.lane}`, type: 'in-progress', header: drainingInWords(each) })),
  ];
}

/** The same on the page of a job that waits in this lane. */
export function LaneAlert({ lane: name }: { lane: string }): ReactNode {
  const { lanes, draining } = useLanes();
  const lane = pausedOf(lanes).find((each) => each.lane === name);
  const resumed = draining.find((each) => each.lane === name);
  if (lane === undefined) return resumed === undefined ? null : <Alert type="info" header={drainingInWords(resumed)} />;
  return (
    <Alert type="warning" header={pausedInWords(lane)} action={<To href="/status">What is wrong now</To>}>
      <Pause lane={lane} />
    </Alert>
  );
}
