import Button from '@cloudscape-design/components/button';
import Container from '@cloudscape-design/components/container';
import Header from '@cloudscape-design/components/header';
import KeyValuePairs from '@cloudscape-design/components/key-value-pairs';
import SpaceBetween from '@cloudscape-design/components/space-between';
import StatusIndicator from '@cloudscape-design/components/status-indicator';
import Table from '@cloudscape-design/components/table';
import { useState, type ReactNode } from 'react';

import { api, take, type Schemas } from '../api/client';
import type { LaneNow } from '../api/status';
import { useRole } from '../api/session';
import { GOES_ON } from '../colours';
import { useLive } from '../live';
import { useNotices } from '../parts/notices';
import { useLanes } from '../parts/lanes';
import { Empty, Loaded, To, useTitle, Words } from '../parts/parts';
import { ReasonDialog, type Reasoned } from '../parts/reason-dialog';
import { Ago, When } from '../parts/time';
import type { Owner } from '../owners';
import { useOwners } from '../parts/whose';
import { healthOf, jobs, type Backlog } from '../problems';
import { span } from '../words';

type Lane = Schemas['LaneState'];
type Breaker = Schemas['Breaker'];

/** For operators: how far behind the scheduler is, its lanes, and the breakers that are not closed. */
export default function System(): ReactNode {
  useTitle('System');
  const live = useLive('system', async () => {
    const [health, system, breakers] = await Promise.all([take(api.GET('/api/v1/health')), take(api.GET('/api/v1/system')), take(api.GET('/api/v1/system/breakers'))]);
    return { health, lanes: system.lanes, breakers: breakers.items };
  });
  const { done, failed } = useNotices();
  const administers = useRole() === 'administrator';
  const owners = useOwners();
  const now = useLanes();
  const here = ({ lane }: Lane): LaneNow | undefined => now.lanes.find((each) => each.lane === lane);
  const [asking, ask] = useState<Reasoned | null>(null);
  const changed = (text: string): void => {
    done(text);
    live.reload();
    now.reload();
  };
  const resume = async (lane?: Lane['lane']): Promise<void> => {
    try {
      await take(api.POST('/api/v1/system/resume', { body: lane === undefined ? { all: true } : { all: false, lane } }));
      changed(`Resumed ${lane ?? 'all queues'}.`);
    } catch (error) {
      failed('Nothing was changed', error);
    }
  };
  const pause = (lane?: Lane['lane']): void =>
    ask({
      title: lane === undefined ? 'Pause all queues?' : `Pause the queue ${lane}?`,
      text: 'New jobs are accepted and wait. Running jobs continue. After a resume the waiting jobs start, the oldest first.',
      yes: 'Pause',
      shown: 'Shown on every page that the pause concerns',
      act: async (reason) => {
        await take(api.POST('/api/v1/system/pause', { body: { ...(lane === undefined ? { all: true } : { all: false, lane }), reason } }));
        changed(`Paused ${lane ?? 'all queues'}.`);
      },
    });
  const close = (breaker: Breaker): void =>
    ask({
      title: `Close the breaker of ${breaker.circuit}?`,
      text: 'Its waiting jobs start within a second. If the target still fails, five more failures open the breaker again.',
      yes: 'Close the breaker',
      shown: 'Stored in the audit trail',
      act: async (reason) => {
        const body = { circuit: breaker.circuit, owner: breaker.owner ?? undefined, reason };
        await take(api.POST('/api/v1/system/breakers/close', { body }));
        changed(`Closed the breaker of ${breaker.circuit}.`);
      },
    });
  return (
    <Loaded live={live} what="system state">
      {({ health, lanes, breakers }) => (
        <SpaceBetween size="l">
          {asking !== null && <ReasonDialog {...asking} onClose={() => ask(null)} />}
          <Header variant="h1">System</Header>
          <Health lag={health.lag_seconds ?? 0} oldest={health.oldest_open_minute ?? null} now={now} />
          <Table<Lane>
            items={lanes}
            trackBy="lane"
            wrapLines
            ariaLabels={{ tableLabel: 'Queues', selectionGroupLabel: '' }}
            header={
              <Header
                variant="h2"
                actions={administers &&
                  <SpaceBetween direction="horizontal" size="xs">
                    <Button onClick={() => void resume()}>Resume all</Button>
                    <Button onClick={() => pause()}>Pause all</Button>
                  </SpaceBetween>
                }
              >
                Queues
              </Header>
            }
            columnDefinitions={[
              { id: 'lane', header: 'Queue', cell: (lane) => lane.lane, isRowHeader: true },
              { id: 'state', header: 'State', cell: (lane) => <StatusIndicator type={lane.paused ? 'stopped' : 'success'}>{lane.paused ? 'Paused' : 'Running'}</StatusIndicator>, minWidth: 120 },
              { id: 'since', header: 'Since', cell: (lane) => <Ago at={lane.paused ? lane.paused_at : lane.resumed_at} /> },
              { id: 'by', header: 'By', cell: (lane) => { const found = here(lane); return found?.paused_by_name ?? found?.paused_by ?? '–'; } },
              { id: 'waiting', header: 'Waiting', cell: (lane) => { const found = here(lane); return found === undefined ? '–' : jobs(found.waiting, found.at_least); } },
              { id: 'reason', header: 'Reason', cell: (lane) => <Words>{lane.reason ?? '–'}</Words> },
              ...(administers
                ? [
                    {
                      id: 'action',
                      header: 'Action',
                      cell: (lane: Lane) =>
                        lane.paused ? (
                          <Button variant="inline-link" ariaLabel={`Resume ${lane.lane}`} onClick={() => void resume(lane.lane)}>Resume</Button>
                        ) : (
                          <Button variant="inline-link" ariaLabel={`Pause ${lane.lane}`} onClick={() => pause(lane.lane)}>Pause</Button>
                        ),
                    },
                  ]
                : []),
            ]}
          />
          <Table<Breaker>
            items={breakers}
            trackBy={(breaker) => `${breaker.circuit} ${breaker.owner ?? ''}`}
            wrapLines
            ariaLabels={{ tableLabel: 'Breakers', selectionGroupLabel: '' }}
            header={
              <Header variant="h2" counter={`(${breakers.length})`} description="A target that keeps failing is not called for a while; its jobs wait.">
                Open breakers
              </Header>
            }
            empty={<Empty title="No open breakers">All targets receive their jobs.</Empty>}
            columnDefinitions={[
              { id: 'circuit', header: 'Target', cell: (breaker) => <Words>{breaker.circuit}</Words>, isRowHeader: true },
              { id: 'owner', header: 'Jobs of', cell: (breaker) => (breaker.owner === null ? 'Everyone' : <To href={`/jobs?owner=${breaker.owner}&view=ahead`}>{nameOf(breaker.owner, [...(owners.data?.users ?? []), ...(owners.data?.teams ?? [])])}</To>) },
              { id: 'state', header: 'State', cell: (breaker) => <StatusIndicator {...(breaker.state === 'open' ? { type: 'error' } : GOES_ON)}>{breaker.state === 'open' ? 'Open' : 'Testing'}</StatusIndicator>, minWidth: 120 },
              { id: 'opened', header: 'Opened', cell: (breaker) => <Ago at={breaker.opened_at} /> },
              { id: 'until', header: 'Next test', cell: (breaker) => (breaker.state === 'open' ? <Ago at={breaker.until} /> : breaker.probe_until === null ? 'with the next job' : <>until <When at={breaker.probe_until} /></>) },
              ...(administers
                ? [{ id: 'action', header: 'Action', cell: (breaker: Breaker) => <Button variant="inline-link" ariaLabel={`Close the breaker of ${breaker.circuit}`} onClick={() => close(breaker)}>Close</Button> }]
                : []),
            ]}
          />
        </SpaceBetween>
      )}
    </Loaded>
  );
}

/** Whether jobs start on time, and what keeps them from it. `lag` in seconds. */
export function Health({ lag, oldest, now }: { lag: number; oldest: string | null; now: Pick<Backlog, 'lanes' | 'late'> }): ReactNode {
  return (
    <Container header={<Header variant="h2" description={<>More on <To href="/status">What is wrong now</To>.</>}>Health</Header>}>
      <KeyValuePairs
        columns={3}
        items={[
          { label: 'Scheduler', value: healthOf(lag, now).map(({ look, word }) => <div key={word}><StatusIndicator type={look}>{word}</StatusIndicator></div>) },
          { label: 'Behind by', value: span(lag * 1_000) },
          { label: 'Oldest open minute', value: <When at={oldest} /> },
        ]}
      />
    </Container>
  );
}

function nameOf(id: string, owners: readonly Owner[]): string {
  return owners.find((each) => each.id === id)?.username ?? id;
}
