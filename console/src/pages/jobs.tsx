import Header from '@cloudscape-design/components/header';
import Input from '@cloudscape-design/components/input';
import Pagination from '@cloudscape-design/components/pagination';
import SegmentedControl from '@cloudscape-design/components/segmented-control';
import Select from '@cloudscape-design/components/select';
import SpaceBetween from '@cloudscape-design/components/space-between';
import type { ReactNode } from 'react';
import { useSearchParams } from 'react-router';

import { api, take, type Job } from '../api/client';
import { useLive, useSettled } from '../live';
import { JobTable } from '../parts/job-table';
import { usePages } from '../parts/pages';
import { Empty, Failed, Stale, useTitle } from '../parts/parts';
import { JOB_LOOKS } from '../parts/status';

const LIMIT = 50;
const ANY = { value: '', label: 'Any status' };
const STATUSES = [ANY, ...Object.keys(JOB_LOOKS).map((value) => ({ value, label: value.charAt(0).toUpperCase() + value.slice(1) }))];

export default function Jobs(): ReactNode {
  useTitle('Jobs');
  const [query, setQuery] = useSearchParams();
  const upcoming = query.get('view') === 'ahead';
  const status = query.get('status') ?? '';
  const tag = query.get('tag') ?? '';
  const settled = useSettled(tag.trim(), 300);
  const filter = JSON.stringify([upcoming, status, settled]);
  const pages = usePages(filter);
  const live = useLive(
    `${filter}${pages.cursor ?? ''}`,
    () =>
      take(
        api.GET('/api/v1/me/jobs', {
          params: { query: { upcoming: upcoming || undefined, status: (status || undefined) as Job['status'] | undefined, tag: settled || undefined, limit: LIMIT, cursor: pages.cursor } },
        }),
      ),
    2_000,
  );
  const set = (name: string, value: string): void =>
    setQuery(
      (before) => {
        const next = new URLSearchParams(before);
        if (value === '') next.delete(name);
        else next.set(name, value);
        return next;
      },
      { replace: true },
    );
  return (
    <JobTable
      variant="full-page"
      jobs={live.data?.jobs ?? []}
      loading={live.loading}
      loadingText="Loading jobs"
      ariaLabels={{ tableLabel: 'Jobs', selectionGroupLabel: '' }}
      columns={upcoming ? ['scheduled', 'job', 'status', 'type', 'task'] : ['scheduled', 'job', 'status', 'type', 'delay', 'duration', 'attempts', 'task', 'reason']}
      header={
        <SpaceBetween size="xs">
          <Header variant="awsui-h1-sticky" description={upcoming ? 'What is ahead, soonest first.' : 'What was due, latest first.'}>
            Jobs
          </Header>
          <Stale live={live} />
        </SpaceBetween>
      }
      filter={
        <SpaceBetween direction="horizontal" size="xs">
          <SegmentedControl
            label="Which jobs"
            selectedId={upcoming ? 'ahead' : 'past'}
            options={[{ id: 'past', text: 'History' }, { id: 'ahead', text: 'Ahead' }]}
            onChange={({ detail }) => set('view', detail.selectedId === 'ahead' ? 'ahead' : '')}
          />
          <Select ariaLabel="Status" options={STATUSES} selectedOption={STATUSES.find((each) => each.value === status) ?? ANY} onChange={({ detail }) => set('status', detail.selectedOption.value ?? '')} />
          <Input type="search" value={tag} placeholder="Tag" ariaLabel="Tag" onChange={({ detail }) => set('tag', detail.value)} />
        </SpaceBetween>
      }
      pagination={<Pagination {...pages.bar(live.data?.cursor)} ariaLabels={{ nextPageLabel: 'Next page', previousPageLabel: 'Previous page', pageLabel: (n) => `Page ${n}` }} />}
      empty={live.error !== null && live.data === null ? <Failed error={live.error} what="jobs" retry={live.reload} /> : <Empty title={status || settled ? 'No job fits' : upcoming ? 'Nothing is ahead' : 'Nothing was due yet'} />}
    />
  );
}
