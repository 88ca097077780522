/** The next runs of a schedule that is being typed, as the API sees them. */
import Alert from '@cloudscape-design/components/alert';
import Badge from '@cloudscape-design/components/badge';
import Box from '@cloudscape-design/components/box';
import Table from '@cloudscape-design/components/table';
import type { ReactNode } from 'react';

import type { Run } from '../api/client';
import { Ago, When } from '../parts/time';

/** A local time such as `2027-03-28T03:00:00+02:00`, without seconds if they are 0. */
const shown = (at: string): string => at.replace('T', ' ').replace(/:00(?=[+-]\d\d:\d\d$)/, '');

export function Runs({ runs, loading = false, empty }: { runs: readonly Run[]; loading?: boolean; empty: ReactNode }): ReactNode {
  return (
    <Table<Run>
      variant="embedded"
      contentDensity="compact"
      items={runs}
      loading={loading}
      loadingText="Loading the next runs"
      ariaLabels={{ tableLabel: 'Next runs', selectionGroupLabel: '' }}
      empty={<Box textAlign="center" color="inherit">{empty}</Box>}
      columnDefinitions={[
        { id: 'local', header: 'In the task’s time zone', cell: (run) => <span className="when">{shown(run.local_at)}</span>, isRowHeader: true },
        { id: 'here', header: 'In your time zone', cell: (run) => (run.at === null ? '–' : <When at={run.at} />) },
        { id: 'away', header: 'From now', cell: (run) => (run.at === null ? <Badge color="grey">skipped</Badge> : <Ago at={run.at} />) },
        { id: 'note', header: 'Note', cell: (run) => (run.dst_note === null ? '' : <Badge color="severity-medium">{run.dst_note}</Badge>) },
      ]}
    />
  );
}

export function PreviewFailed({ message }: { message: string }): ReactNode {
  return <Alert type="warning" header="No preview">{message}</Alert>;
}
