import Alert from '@cloudscape-design/components/alert';
import Box from '@cloudscape-design/components/box';
import BreadcrumbGroup from '@cloudscape-design/components/breadcrumb-group';
import Button from '@cloudscape-design/components/button';
import Container from '@cloudscape-design/components/container';
import CopyToClipboard from '@cloudscape-design/components/copy-to-clipboard';
import Header from '@cloudscape-design/components/header';
import KeyValuePairs from '@cloudscape-design/components/key-value-pairs';
import Pagination from '@cloudscape-design/components/pagination';
import SegmentedControl from '@cloudscape-design/components/segmented-control';
import SpaceBetween from '@cloudscape-design/components/space-between';
import StatusIndicator from '@cloudscape-design/components/status-indicator';
import Table from '@cloudscape-design/components/table';
import { useState, type ReactNode } from 'react';
import { useNavigate, useParams } from 'react-router';

import { api, take, type Job } from '../api/client';
import { pageOfDocs } from '../docs';
import { ALL, CALLS, cancelInWords, END_LOOKS, endInWords, ENDS, filled, FILTERS, filterInWords, paceOf, progressInWords, sealInWords, unstartedInWords, type Call, type Group } from '../groups';
import { useLive } from '../live';
import { DocsLink } from '../parts/docs-link';
import { Ends, GroupState } from '../parts/group';
import { JobTable } from '../parts/job-table';
import { ofOwner, pageOfJob } from '../parts/links';
import { useNotices } from '../parts/notices';
import { usePages } from '../parts/pages';
import { Empty, Failed, Loaded, Stale, To, useConfirm, useTitle, Words } from '../parts/parts';
import { useQuery } from '../parts/query';
import { isFinal, JobStatus } from '../parts/status';
import { Ago, When } from '../parts/time';
import { Refresh } from '../parts/trail';
import { OfWhom, useWhose } from '../parts/whose';

const LIMIT = 25;
const OFTEN = 5_000;

export default function GroupPage(): ReactNode {
  const { id = '' } = useParams();
  const { owner } = useWhose();
  const live = useLive(`group ${id} ${owner ?? ''}`, () => take(api.GET('/api/v1/groups/{group_id}', { params: { path: { group_id: id }, query: { owner } } })), paceOf);
  useTitle(`Group ${live.data?.name ?? id}`);
  return (
    <Loaded live={live} what="group">
      {(group) => <Shown group={group} reload={live.reload} />}
    </Loaded>
  );
}

function Shown({ group, reload }: { group: Group; reload: () => void }): ReactNode {
  const navigate = useNavigate();
  const { owner } = useWhose();
  return (
    <SpaceBetween size="l">
      <BreadcrumbGroup
        items={[{ text: 'Groups', href: `/groups${ofOwner(owner)}` }, { text: group.id, href: '#' }]}
        onFollow={(event) => {
          event.preventDefault();
          if (event.detail.href !== '#') void navigate(event.detail.href);
        }}
      />
      <Header variant="h1" description={<><OfWhom /><CopyToClipboard variant="inline" textToCopy={group.id} copyButtonAriaLabel="Copy the id" copySuccessText="Copied" copyErrorText="Not copied" /></>} actions={<Actions group={group} reload={reload} />}>
        <Words>{group.name ?? 'Group without a name'}</Words>
      </Header>
      <Note group={group} />
      <Overview group={group} />
      {group.callbacks.length > 0 && <Calls group={group} />}
      <Jobs group={group} />
    </SpaceBetween>
  );
}

function Actions({ group, reload }: { group: Group; reload: () => void }): ReactNode {
  const { owner, mayChange } = useWhose();
  const { done, failed } = useNotices();
  const [dialog, confirm] = useConfirm();
  const [busy, setBusy] = useState(false);
  const act = async (what: 'seal' | 'cancel'): Promise<void> => {
    setBusy(true);
    try {
      const params = { path: { group_id: group.id }, query: { owner } };
      if (what === 'seal') await take(api.POST('/api/v1/groups/{group_id}/seal', { params }));
      else await take(api.POST('/api/v1/groups/{group_id}/cancel', { params }));
      done(what === 'seal' ? 'Sealed the group.' : 'Cancelled the group.');
    } catch (error) {
      failed(what === 'seal' ? 'Not sealed' : 'Not cancelled', error);
    } finally {
      setBusy(false);
      reload();
    }
  };
  const open = group.state === 'open';
  return (
    <SpaceBetween direction="horizontal" size="xs">
      {dialog}
      <Refresh live={{ reload }} />
      {mayChange && (open || group.state === 'sealed') && (
        <Button
          loading={busy}
          disabled={group.cancelled_at !== null}
          onClick={() => confirm({ title: 'Cancel this group?', text: cancelInWords(group), yes: 'Cancel the group', act: () => act('cancel') })}
        >
          Cancel group
        </Button>
      )}
      {mayChange && open && (
        <Button variant="primary" loading={busy} onClick={() => confirm({ title: 'Seal this group?', text: sealInWords(group), yes: 'Seal the group', act: () => act('seal') })}>
          Seal group
        </Button>
      )}
    </SpaceBetween>
  );
}

/** What an open group waits for, and what became of an abandoned one. */
export function Note({ group }: { group: Pick<Group, 'state' | 'seal_by' | 'callbacks'> }): ReactNode {
  const calls = group.callbacks.length > 0;
  if (group.state === 'open') {
    return (
      <Alert type="info" header="Jobs may join">
        Seal the group when all its jobs have joined. {calls && 'Its call-backs start after that. '}If it is not sealed by <When at={group.seal_by} />, it is abandoned.
      </Alert>
    );
  }
  if (group.state !== 'abandoned') return null;
  return (
    <Alert type="warning" header="This group was abandoned">
      It was not sealed by <When at={group.seal_by} />. Its jobs run, but {calls ? 'none of its call-backs starts, and ' : ''}no other job can join. {calls && 'If you need what a call-back does, post that job yourself. '}Seal the next group in time, or
      give it more time: <code>seal_within</code>.
      <div><DocsLink href={pageOfDocs('guides/groups')}>About groups</DocsLink></div>
    </Alert>
  );
}

export function Overview({ group }: { group: Group }): ReactNode {
  const { counts } = group;
  return (
    <Container header={<Header variant="h2" description="A job that runs again counts by its former end until it ends again.">Overview</Header>}>
      <SpaceBetween size="m">
        <div>
          <SpaceBetween direction="horizontal" size="m"><GroupState group={group} /><Box variant="strong">{progressInWords(group)}</Box></SpaceBetween>
          {counts !== null && group.jobs > 0 && (
            <>
              <Box padding={{ vertical: 'xs' }}><Ends counts={counts} /></Box>
              <SpaceBetween direction="horizontal" size="m">
                {([...ENDS, 'unfinished'] as const).map((end) => counts[end] > 0 && <StatusIndicator key={end} {...END_LOOKS[end]}>{endInWords(end, counts)}</StatusIndicator>)}
              </SpaceBetween>
            </>
          )}
        </div>
        <KeyValuePairs
          columns={4}
          items={[
            { label: 'Created', value: <When at={group.created_at} exact /> },
            group.sealed_at === null ? { label: 'Seal by', value: <Ago at={group.seal_by} /> } : { label: 'Sealed', value: <When at={group.sealed_at} exact /> },
            ...(group.cancelled_at === null ? [] : [{ label: 'Cancelled', value: <When at={group.cancelled_at} exact /> }]),
            ...(group.abandoned_at === null ? [] : [{ label: 'Abandoned', value: <When at={group.abandoned_at} exact /> }]),
            { label: 'Ended', value: <When at={group.ended_at} exact /> },
            ...(group.succeeded_at === null ? [] : [{ label: 'All succeeded', value: <When at={group.succeeded_at} exact /> }]),
          ]}
        />
      </SpaceBetween>
    </Container>
  );
}

function Calls({ group }: { group: Group }): ReactNode {
  const { owner } = useWhose();
  const ids = group.callbacks.flatMap(({ job_id }) => job_id ?? []);
  const live = useLive<(Job | null)[]>(
    `call-backs ${ids.join(' ')} ${owner ?? ''}`,
    () => Promise.all(ids.map((id) => take(api.GET('/api/v1/jobs/{job_id}', { params: { path: { job_id: id }, query: { owner } } })).catch(() => null))),
    (jobs) => (jobs?.every((job) => job !== null && isFinal(job)) ? 0 : OFTEN),
  );
  const jobOf = (call: Call): Job | undefined => live.data?.find((job) => job?.id === call.job_id) ?? undefined;
  return (
    <Table<Call>
      contentDensity="compact"
      wrapLines
      trackBy="kind"
      items={group.callbacks}
      ariaLabels={{ tableLabel: 'Call-backs', selectionGroupLabel: '' }}
      header={<Header variant="h2" description="Jobs that start when the jobs of the group have ended.">Call-backs</Header>}
      columnDefinitions={[
        { id: 'when', header: 'Starts when', isRowHeader: true, cell: ({ kind }) => <>{CALLS[kind]}<Box color="text-body-secondary" fontSize="body-s">{kind}</Box></>, minWidth: 160 },
        {
          id: 'status',
          header: 'Status',
          cell: (call) => {
            const job = jobOf(call);
            return call.job_id === null ? unstartedInWords(call.kind, group.state) : job === undefined ? '–' : <JobStatus job={job} />;
          },
          minWidth: 140,
        },
        { id: 'type', header: 'Type', cell: ({ type }) => type },
        { id: 'job', header: 'Job', cell: ({ job_id: id }) => (id === null ? '–' : <To href={pageOfJob(id, owner)}><Words>{id}</Words></To>), minWidth: 150 },
      ]}
    />
  );
}

/** Its jobs, in the order in which they joined. */
function Jobs({ group }: { group: Group }): ReactNode {
  const { owner } = useWhose();
  const [query, set] = useQuery();
  const filter = FILTERS.find(({ id }) => id === query.get('end')) ?? ALL;
  const key = `jobs of ${group.id} ${owner ?? ''} ${filter.id}`;
  const pages = usePages(key);
  const live = useLive(
    `${key} ${pages.cursor ?? ''}`,
    () =>
      filled(LIMIT, pages.cursor, (limit, cursor) =>
        take(api.GET('/api/v1/groups/{group_id}/jobs', { params: { path: { group_id: group.id }, query: { status: filter.ends.length === 0 ? undefined : [...filter.ends], limit, cursor, owner } } })),
      ),
    () => paceOf(group),
  );
  const empty =
    live.error !== null && live.data === null ? (
      <Failed error={live.error} what="jobs" retry={live.reload} />
    ) : live.data?.cursor ? (
      <Empty title="None on this page">The next page searches the jobs that follow.</Empty>
    ) : filter === ALL ? (
      <Empty title="No jobs yet">
        <Box variant="p" color="inherit">A job joins when it is created with the id of the group: <code>&quot;group&quot;: &quot;{group.id}&quot;</code></Box>
      </Empty>
    ) : (
      <Empty title="No matching jobs">
        <Button onClick={() => set({ end: '' })}>Clear filters</Button>
      </Empty>
    );
  return (
    <JobTable
      jobs={live.data?.items ?? []}
      loading={live.loading}
      loadingText="Loading jobs"
      ariaLabels={{ tableLabel: 'Jobs', selectionGroupLabel: '' }}
      columns={['status', 'calls', 'number', 'scheduled', 'delay', 'duration', 'attempts', 'reason', 'job']}
      header={
        <SpaceBetween size="xs">
          <Header variant="h2" description="In the order in which they joined. A failed job is run again on its page.">Jobs</Header>
          <Stale live={live} />
        </SpaceBetween>
      }
      filter={<SegmentedControl label="How they ended" selectedId={filter.id} options={FILTERS.map((each) => ({ id: each.id, text: filterInWords(each, group) }))} onChange={({ detail }) => set({ end: detail.selectedId === ALL.id ? '' : detail.selectedId })} />}
      pagination={<Pagination {...pages.bar(live.data?.cursor)} ariaLabels={{ nextPageLabel: 'Next page', previousPageLabel: 'Previous page', pageLabel: (n) => `Page ${n}` }} />}
      empty={empty}
    />
  );
}
