import Button from '@cloudscape-design/components/button';
import Container from '@cloudscape-design/components/container';
import Header from '@cloudscape-design/components/header';
import KeyValuePairs from '@cloudscape-design/components/key-value-pairs';
import SpaceBetween from '@cloudscape-design/components/space-between';
import StatusIndicator from '@cloudscape-design/components/status-indicator';
import Table from '@cloudscape-design/components/table';
import type { ReactNode } from 'react';

import { api, take, type Schemas } from '../api/client';
import { useLive } from '../live';
import { useNotices } from '../parts/notices';
import { Loaded, useConfirm, useTitle } from '../parts/parts';
import { Ago } from '../parts/time';
import { span } from '../words';

type Lane = Schemas['LaneShape'];
const BEHIND = 180; // seconds; a healthy minute closes within two or three

/** For administrators: how far behind the scheduler is, and its lanes. */
export default function System(): ReactNode {
  useTitle('System');
  const live = useLive('system', async () => {
    const [health, system] = await Promise.all([take(api.GET('/api/v1/health')), take(api.GET('/api/v1/system'))]);
    return { health, lanes: system.lanes };
  });
  const { done, failed } = useNotices();
  const [dialog, confirm] = useConfirm();
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
      text: 'Jobs are accepted and wait; what runs runs on. When it is resumed, what waited goes out at once.',
      yes: 'Pause',
      act: () => set('pause', lane),
    });
  return (
    <Loaded live={live} what="state of the system">
      {({ health, lanes }) => {
        const behind = health.lag_seconds ?? 0;
        return (
          <SpaceBetween size="l">
            {dialog}
            <Header variant="h1">System</Header>
            <Container header={<Header variant="h2">Health</Header>}>
              <KeyValuePairs
                columns={3}
                items={[
                  { label: 'Scheduler', value: <StatusIndicator type={behind > BEHIND ? 'warning' : 'success'}>{behind > BEHIND ? 'Behind' : 'On time'}</StatusIndicator> },
                  { label: 'Behind by', value: span(behind * 1_000) },
                  { label: 'Oldest minute that is not closed', value: health.oldest_open_minute ?? '–' },
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
                  actions={
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
                { id: 'reason', header: 'Reason', cell: (lane) => lane.reason ?? '–' },
                {
                  id: 'action',
                  header: 'Action',
                  cell: (lane) =>
                    lane.paused ? (
                      <Button variant="inline-link" ariaLabel={`Resume ${lane.lane}`} onClick={() => void set('resume', lane.lane)}>Resume</Button>
                    ) : (
                      <Button variant="inline-link" ariaLabel={`Pause ${lane.lane}`} onClick={() => pause(lane.lane)}>Pause</Button>
                    ),
                },
              ]}
            />
          </SpaceBetween>
        );
      }}
    </Loaded>
  );
}
