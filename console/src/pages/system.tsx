import Button from '@cloudscape-design/components/button';
import Container from '@cloudscape-design/components/container';
import FormField from '@cloudscape-design/components/form-field';
import Header from '@cloudscape-design/components/header';
import Input from '@cloudscape-design/components/input';
import KeyValuePairs from '@cloudscape-design/components/key-value-pairs';
import SpaceBetween from '@cloudscape-design/components/space-between';
import StatusIndicator from '@cloudscape-design/components/status-indicator';
import Table from '@cloudscape-design/components/table';
import { useState, type ReactNode } from 'react';

import { api, take, type Schemas } from '../api/client';
import { useRole } from '../api/session';
import { useLive } from '../live';
import { useNotices } from '../parts/notices';
import { FormDialog } from '../parts/form-dialog';
import { Empty, Loaded, To, useConfirm, useTitle, Words } from '../parts/parts';
import { Ago, When } from '../parts/time';
import { useUsers, type User } from '../parts/whose';
import { span } from '../words';

type Lane = Schemas['LaneState'];
type Breaker = Schemas['Breaker'];
const BEHIND = 180; // seconds; a healthy minute closes within two or three

/** For operators: how far behind the scheduler is, its lanes, and the breakers that are not closed. */
export default function System(): ReactNode {
  useTitle('System');
  const live = useLive('system', async () => {
    const [health, system, { breakers }] = await Promise.all([take(api.GET('/api/v1/health')), take(api.GET('/api/v1/system')), take(api.GET('/api/v1/system/breakers'))]);
    return { health, lanes: system.lanes, breakers };
  });
  const { done, failed } = useNotices();
  const [dialog, confirm] = useConfirm();
  const administers = useRole() === 'administrator';
  const users = useUsers();
  const [closing, setClosing] = useState<Breaker | null>(null);
  const set = async (what: 'pause' | 'resume', lane?: Lane['lane']): Promise<void> => {
    try {
      const body = lane === undefined ? { all: true } : { all: false, lane };
      await take(what === 'pause' ? api.POST('/api/v1/system/pause', { body }) : api.POST('/api/v1/system/resume', { body }));
      done(`${what === 'pause' ? 'Paused' : 'Resumed'} ${lane ?? 'all lanes'}.`);
      live.reload();
    } catch (error) {
      failed('Nothing was changed', error);
    }
  };
  const pause = (lane?: Lane['lane']): void =>
    confirm({
      title: lane === undefined ? 'Pause all lanes?' : `Pause the lane ${lane}?`,
      text: 'New jobs are accepted and wait. Running jobs continue. After a resume the waiting jobs start at once.',
      yes: 'Pause',
      act: () => set('pause', lane),
    });
  return (
    <Loaded live={live} what="system state">
      {({ health, lanes, breakers }) => {
        const behind = health.lag_seconds ?? 0;
        return (
          <SpaceBetween size="l">
            {dialog}
            {closing !== null && <CloseDialog breaker={closing} onClose={() => setClosing(null)} onDone={live.reload} />}
            <Header variant="h1">System</Header>
            <Container header={<Header variant="h2">Health</Header>}>
              <KeyValuePairs
                columns={3}
                items={[
                  { label: 'Scheduler', value: <StatusIndicator type={behind > BEHIND ? 'warning' : 'success'}>{behind > BEHIND ? 'Behind' : 'On time'}</StatusIndicator> },
                  { label: 'Behind by', value: span(behind * 1_000) },
                  { label: 'Oldest open minute', value: health.oldest_open_minute ?? '–' },
                ]}
              />
            </Container>
            <Table<Lane>
              items={lanes}
              trackBy="lane"
              ariaLabels={{ tableLabel: 'Lanes', selectionGroupLabel: '' }}
              header={
                <Header
                  variant="h2"
                  actions={administers &&
                    <SpaceBetween direction="horizontal" size="xs">
                      <Button onClick={() => void set('resume')}>Resume all</Button>
                      <Button onClick={() => pause()}>Pause all</Button>
                    </SpaceBetween>
                  }
                >
                  Lanes
                </Header>
              }
              columnDefinitions={[
                { id: 'lane', header: 'Lane', cell: (lane) => lane.lane, isRowHeader: true },
                { id: 'state', header: 'State', cell: (lane) => <StatusIndicator type={lane.paused ? 'stopped' : 'success'}>{lane.paused ? 'Paused' : 'Running'}</StatusIndicator> },
                { id: 'since', header: 'Since', cell: (lane) => <Ago at={lane.paused ? lane.paused_at : lane.resumed_at} /> },
                { id: 'reason', header: 'Reason', cell: (lane) => <Words>{lane.reason ?? '–'}</Words> },
                ...(administers
                  ? [
                      {
                        id: 'action',
                        header: 'Action',
                        cell: (lane: Lane) =>
                          lane.paused ? (
                            <Button variant="inline-link" ariaLabel={`Resume ${lane.lane}`} onClick={() => void set('resume', lane.lane)}>Resume</Button>
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
                { id: 'owner', header: 'Jobs of', cell: (breaker) => (breaker.owner === null ? 'Everyone' : <To href={`/jobs?user=${breaker.owner}&view=ahead`}>{nameOf(breaker.owner, users.data?.users ?? [])}</To>) },
                { id: 'state', header: 'State', cell: (breaker) => <StatusIndicator type={breaker.state === 'open' ? 'error' : 'in-progress'}>{breaker.state === 'open' ? 'Open' : 'Testing'}</StatusIndicator> },
                { id: 'opened', header: 'Opened', cell: (breaker) => <Ago at={breaker.opened_at} /> },
                { id: 'until', header: 'Next test', cell: (breaker) => (breaker.state === 'open' ? <Ago at={breaker.until} /> : <>until <When at={breaker.probe_until} /></>) },
                ...(administers
                  ? [{ id: 'action', header: 'Action', cell: (breaker: Breaker) => <Button variant="inline-link" ariaLabel={`Close the breaker of ${breaker.circuit}`} onClick={() => setClosing(breaker)}>Close</Button> }]
                  : []),
              ]}
            />
          </SpaceBetween>
        );
      }}
    </Loaded>
  );
}

function nameOf(id: string, users: readonly User[]): string {
  return users.find((user) => user.id === id)?.username ?? id;
}

/** Asks why, for the audit trail. */
function CloseDialog({ breaker, onClose, onDone }: { breaker: Breaker; onClose: () => void; onDone: () => void }): ReactNode {
  const [reason, setReason] = useState('');
  const { done } = useNotices();
  const act = async (): Promise<void> => {
    const body = { circuit: breaker.circuit, owner: breaker.owner ?? undefined, reason: reason.trim() || undefined };
    await take(api.POST('/api/v1/system/breakers/close', { body }));
    done(`Closed the breaker of ${breaker.circuit}.`);
    onDone();
  };
  return (
    <FormDialog title={`Close the breaker of ${breaker.circuit}?`} yes="Close the breaker" fields={['reason']} act={act} onClose={onClose}>
      {(errors) => (
        <SpaceBetween size="m">
          <div>Its waiting jobs start within a second. If the target still fails, five more failures open the breaker again.</div>
          <FormField label={<>Reason <i>– optional</i></>} constraintText="Stored in the audit trail" errorText={errors['reason']}>
            <Input value={reason} onChange={({ detail }) => setReason(detail.value)} autoFocus />
          </FormField>
        </SpaceBetween>
      )}
    </FormDialog>
  );
}
