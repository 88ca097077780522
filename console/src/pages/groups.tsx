import Box from '@cloudscape-design/components/box';
import CopyToClipboard from '@cloudscape-design/components/copy-to-clipboard';
import Header from '@cloudscape-design/components/header';
import Pagination from '@cloudscape-design/components/pagination';
import SpaceBetween from '@cloudscape-design/components/space-between';
import Table from '@cloudscape-design/components/table';
import type { ReactNode } from 'react';

import { api, take } from '../api/client';
import { curlOf } from '../code';
import { pageOfDocs } from '../docs';
import { EXAMPLE, progressInWords, type Group } from '../groups';
import { useLive } from '../live';
import { DocsLink } from '../parts/docs-link';
import { Ends, GroupState } from '../parts/group';
import { ofOwner, pageOfGroup } from '../parts/links';
import { usePages } from '../parts/pages';
import { Code, Empty, Failed, NotForRole, Stale, useTitle, To, Words } from '../parts/parts';
import { Ago } from '../parts/time';
import { Refresh } from '../parts/trail';
import { ofEach, useOwnersToMerge, useWhose, WhoseChoice, type Owned } from '../parts/whose';

type Row = Owned<Group>;

const LIMIT = 20;
const OFTEN = 5_000; // while one has not ended
const SELDOM = 15_000;

interface Found {
  items: Row[];
  cursor: string | null;
}

/** The first page of several owners, the newest first. */
async function all(owners: Parameters<typeof ofEach>[0], ask: (owner: string) => Promise<Found>): Promise<Found> {
  const { found } = await ofEach(owners, async (owner) => (await ask(owner)).items);
  found.sort((one, other) => other.created_at.localeCompare(one.created_at));
  return { items: found, cursor: null };
}

/** Sets of jobs that are counted together. */
export default function Groups(): ReactNode {
  useTitle('Groups');
  const { owner, several, creates } = useWhose();
  const merged = several !== null;
  const owners = useOwnersToMerge();
  const key = `groups ${several ?? ''} ${owner ?? ''}`;
  const pages = usePages(key);
  const ask = (owner: string | undefined, cursor: string | undefined): Promise<Found> => take(api.GET('/api/v1/groups', { params: { query: { limit: LIMIT, cursor, owner } } }));
  const live = useLive<Found>(
    `${key} ${pages.cursor ?? ''}`,
    () => (merged ? all(owners, (owner) => ask(owner, undefined)) : ask(owner, pages.cursor)),
    (found) => (!merged && found?.items.some(({ state }) => state === 'open' || state === 'sealed') ? OFTEN : SELDOM),
  );
  if (live.error?.status === 403) return <NotForRole text={live.error.message} />;
  return (
    <Table<Row>
      variant="full-page"
      stickyHeader
      contentDensity="compact"
      wrapLines
      trackBy="id"
      items={live.data?.items ?? []}
      loading={live.loading}
      loadingText="Loading groups"
      ariaLabels={{ tableLabel: 'Groups', selectionGroupLabel: '' }}
      header={
        <SpaceBetween size="xs">
          <Header
            variant="awsui-h1-sticky"
            description="Jobs that are counted together: when all of a group have ended, its call-backs start. Newest first."
            actions={<Refresh live={live} />}
          >
            Groups
          </Header>
          <Stale live={live} />
        </SpaceBetween>
      }
      filter={<div className="filters"><WhoseChoice /></div>}
      pagination={merged ? undefined : <Pagination {...pages.bar(live.data?.cursor)} ariaLabels={{ nextPageLabel: 'Next page', previousPageLabel: 'Previous page', pageLabel: (n) => `Page ${n}` }} />}
      empty={live.error !== null && live.data === null ? <Failed error={live.error} what="groups" retry={live.reload} /> : <NoGroups owner={owner} command={creates !== null} />}
      columnDefinitions={[
        { id: 'name', header: 'Group', isRowHeader: true, cell: (group) => <To href={pageOfGroup(group.id, group.owner?.id ?? owner)}><Words>{group.name ?? group.id}</Words></To>, minWidth: 150 },
        ...(merged ? [{ id: 'owner', header: 'Owner', cell: (group: Row) => group.owner?.username ?? '–' }] : []),
        { id: 'progress', header: 'Progress', cell: (group) => <>{group.counts !== null && group.jobs > 0 && <Ends counts={group.counts} />}{progressInWords(group)}</>, minWidth: 170 },
        { id: 'state', header: 'State', cell: (group) => <GroupState group={group} />, minWidth: 170 },
        { id: 'created', header: 'Created', cell: ({ created_at }) => <Ago at={created_at} /> },
        { id: 'ended', header: 'Ended', cell: ({ ended_at }) => <Ago at={ended_at} /> },
      ]}
    />
  );
}

/** What a group is, and how to make one. */
export function NoGroups({ owner, command }: { owner: string | undefined; command: boolean }): ReactNode {
  return (
    <Empty title="No groups yet">
      <Box variant="p" color="inherit">
        A group counts the ends of its jobs. When all of them have ended, it starts its call-backs: jobs of your choice. You make a group with a request{command ? ':' : '.'}
      </Box>
      {command && <Command text={curlOf(window.location.origin, { method: 'POST', path: `/groups${ofOwner(owner)}`, body: EXAMPLE })} />}
      <DocsLink href={pageOfDocs('guides/groups')}>Groups</DocsLink>
    </Empty>
  );
}

function Command({ text }: { text: string }): ReactNode {
  return (
    <Box textAlign="left">
      <Code label="Command that makes a group" text={text} />
      <Box margin={{ top: 'xs' }}><CopyToClipboard copyButtonText="Copy" textToCopy={text} copySuccessText="Copied" copyErrorText="Not copied" /></Box>
    </Box>
  );
}
