import Alert from '@cloudscape-design/components/alert';
import Button from '@cloudscape-design/components/button';
import Header from '@cloudscape-design/components/header';
import SpaceBetween from '@cloudscape-design/components/space-between';
import Table from '@cloudscape-design/components/table';
import { useState, type ReactNode } from 'react';

import { api, take, type Schemas } from '../api/client';
import { useLive } from '../live';
import { Empty, Failed, Stale, To, useTitle } from '../parts/parts';
import { Ago } from '../parts/time';
import { RedriveDialog, RedriveProgress } from './redrive';

type Group = Schemas['GroupShape'];

export default function DeadLetters(): ReactNode {
  useTitle('Dead letters');
  const live = useLive('dead letters', () => take(api.GET('/api/v1/dead-letters')));
  const [chosen, setChosen] = useState<{ fingerprint?: string; count: number } | null>(null);
  const groups = live.data?.groups ?? [];
  const all = groups.reduce((sum, group) => sum + group.count, 0);
  return (
    <SpaceBetween size="m">
      <RedriveProgress onEnd={live.reload} />
      <RedriveDialog filter={chosen === null ? null : { fingerprint: chosen.fingerprint }} expected={chosen?.count ?? 0} onClose={() => setChosen(null)} />
      {live.data?.complete === false && <Alert type="info">There are more than one look counts: these are of the latest {live.data.read}.</Alert>}
      <Table<Group>
        variant="full-page"
        stickyHeader
        contentDensity="compact"
        wrapLines
        items={groups}
        loading={live.loading}
        loadingText="Loading dead letters"
        ariaLabels={{ tableLabel: 'Dead letters', selectionGroupLabel: '' }}
        header={
          <SpaceBetween size="xs">
            <Header
              variant="awsui-h1-sticky"
              counter={live.data === null ? undefined : `(${all})`}
              description="Jobs that failed or were killed, by error. Errors that differ in ids, numbers and times only are one."
              actions={
                <SpaceBetween direction="horizontal" size="xs">
                  <Button iconName="refresh" ariaLabel="Refresh" onClick={live.reload} />
                  <Button disabled={all === 0} onClick={() => setChosen({ count: all })}>
                    Redrive all
                  </Button>
                </SpaceBetween>
              }
            >
              Dead letters
            </Header>
            <Stale live={live} />
          </SpaceBetween>
        }
        empty={live.error !== null && live.data === null ? <Failed error={live.error} what="dead letters" retry={live.reload} /> : <Empty title="No dead letters">Everything that ran has ended well.</Empty>}
        columnDefinitions={[
          {
            id: 'error',
            header: 'Error',
            isRowHeader: true,
            cell: (group) => {
              const text = group.error === null ? '(just redriven)' : `${group.error.kind}: ${group.error.message}`;
              return group.fingerprint === null ? text : <To href={`/dead-letters/${group.fingerprint}`}>{text}</To>;
            },
            minWidth: 320,
          },
          { id: 'count', header: 'Jobs', cell: (group) => group.count },
          { id: 'types', header: 'Types', cell: (group) => group.types.join(', ') },
          { id: 'tasks', header: 'Tasks', cell: (group) => group.task_ids.length || '–' },
          { id: 'last', header: 'Last', cell: (group) => <Ago at={group.last_at} /> },
          { id: 'first', header: 'First', cell: (group) => <Ago at={group.first_at} /> },
          { id: 'sample', header: 'Latest job', cell: (group) => <To href={`/jobs/${group.job_id}`}>{group.job_id}</To> },
          {
            id: 'redrive',
            header: 'Action',
            minWidth: 110,
            cell: (group) =>
              group.fingerprint === null ? null : (
                <Button variant="inline-link" ariaLabel={`Redrive ${group.count} jobs`} onClick={() => setChosen({ fingerprint: group.fingerprint ?? undefined, count: group.count })}>
                  Redrive
                </Button>
              ),
          },
        ]}
      />
    </SpaceBetween>
  );
}
