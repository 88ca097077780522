import Box from '@cloudscape-design/components/box';
import Button from '@cloudscape-design/components/button';
import Header from '@cloudscape-design/components/header';
import SpaceBetween from '@cloudscape-design/components/space-between';
import StatusIndicator from '@cloudscape-design/components/status-indicator';
import Table from '@cloudscape-design/components/table';
import type { ReactNode } from 'react';
import { useNavigate } from 'react-router';

import { api, take } from '../api/client';
import { useRole } from '../api/session';
import { pageOfTarget, type Target } from '../form/target';
import { pageOfDocs } from '../docs';
import { useLive } from '../live';
import { DocsLink } from '../parts/docs-link';
import { Empty, Failed, Stale, To, useTitle } from '../parts/parts';
import { Ago } from '../parts/time';
import { Refresh } from '../parts/trail';

const EVERY = 15_000;

/** What tasks and jobs may be sent to by name. */
export default function Targets(): ReactNode {
  useTitle('Named targets');
  const navigate = useNavigate();
  const administers = useRole() === 'administrator';
  const live = useLive('targets', () => take(api.GET('/api/v1/targets')), EVERY);
  return (
    <Table<Target>
      variant="full-page"
      stickyHeader
      contentDensity="compact"
      trackBy="name"
      wrapLines
      items={live.data?.items ?? []}
      loading={live.loading}
      loadingText="Loading targets"
      ariaLabels={{ tableLabel: 'Named targets', selectionGroupLabel: '' }}
      header={
        <SpaceBetween size="xs">
          <Header
            variant="awsui-h1-sticky"
            description="Reusable destinations with defaults and limits. Tasks and jobs refer to them by name."
            actions={
              <SpaceBetween direction="horizontal" size="xs">
                <Refresh live={live} />
                {administers && (
                  <Button variant="primary" onClick={() => void navigate('/targets/new')}>
                    Register target
                  </Button>
                )}
              </SpaceBetween>
            }
          >
            Named targets
          </Header>
          <Stale live={live} />
        </SpaceBetween>
      }
      empty={
        live.error !== null && live.data === null ? (
          <Failed error={live.error} what="targets" retry={live.reload} />
        ) : (
          <Empty title="No named targets yet">
            <Box variant="p" color="inherit">
              A named target stores a destination with its defaults and limits once. Tasks and jobs then refer to it by name.{administers ? '' : ' Ask an administrator to register one.'}
            </Box>
            {administers && <Button onClick={() => void navigate('/targets/new')}>Register your first target</Button>}
            <DocsLink href={pageOfDocs('reference/targets')}>Targets</DocsLink>
          </Empty>
        )
      }
      columnDefinitions={[
        { id: 'name', header: 'Name', cell: (target) => <To href={pageOfTarget(target.name)}>{target.name}</To>, isRowHeader: true },
        { id: 'kind', header: 'Type', cell: (target) => target.kind },
        { id: 'state', header: 'State', cell: (target) => <StatusIndicator type={target.enabled ? 'success' : 'stopped'}>{target.enabled ? 'Enabled' : 'Disabled'}</StatusIndicator>, minWidth: 120 },
        { id: 'rate', header: 'Starts per second', cell: (target) => target.rate?.toLocaleString() ?? 'unlimited' },
        { id: 'concurrency', header: 'Concurrent jobs', cell: (target) => target.concurrency?.toLocaleString() ?? 'unlimited' },
        { id: 'given', header: 'Fields', cell: (target) => Object.keys((target.job_payload_schema['properties'] as object | undefined) ?? {}).join(', ') || '–' },
        { id: 'description', header: 'Description', cell: (target) => target.description ?? '–' },
        { id: 'changed', header: 'Changed', cell: (target) => <Ago at={target.updated_at} /> },
      ]}
    />
  );
}
