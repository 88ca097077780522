/** Messages of the intake queues of which no job was made. */
import Box from '@cloudscape-design/components/box';
import Button from '@cloudscape-design/components/button';
import Header from '@cloudscape-design/components/header';
import Pagination from '@cloudscape-design/components/pagination';
import SpaceBetween from '@cloudscape-design/components/space-between';
import Table from '@cloudscape-design/components/table';
import Toggle from '@cloudscape-design/components/toggle';
import { type ReactNode } from 'react';
import { useSearchParams } from 'react-router';

import { api, take, type Schemas } from '../api/client';
import { mayOversee, useRole } from '../api/session';
import { pageOfDocs } from '../docs';
import { useLive } from '../live';
import { DocsLink } from '../parts/docs-link';
import { pageOfIntakeLetter } from '../parts/links';
import { usePages } from '../parts/pages';
import { Empty, Failed, NotForRole, Stale, To, useTitle, Words } from '../parts/parts';
import { Ago } from '../parts/time';
import { useWhose, WhoseChoice } from '../parts/whose';

type Letter = Schemas['IntakeLetter'];

const LIMIT = 25;

/** The first broken rule, and how many others there are. */
export function rulesOf(errors: Letter['errors']): string {
  const first = errors[0];
  if (first === undefined) return '–';
  return `${first.field}: ${first.rule}${errors.length > 1 ? ` and ${errors.length - 1} more` : ''}`;
}

export default function Intake(): ReactNode {
  useTitle('Intake');
  const { owner } = useWhose();
  const [query, setQuery] = useSearchParams();
  const role = useRole();
  const unknown = query.get('unknown') === 'true';
  const filter = unknown ? 'unknown' : `of ${owner ?? ''}`;
  const pages = usePages(filter);
  const live = useLive(`intake ${filter} ${pages.cursor ?? ''}`, () =>
    take(api.GET('/api/v1/intake/dead-letters', { params: { query: { unknown: unknown || undefined, owner: unknown ? undefined : owner, limit: LIMIT, cursor: pages.cursor } } })),
  );
  const setUnknown = (checked: boolean): void =>
    setQuery(
      (before) => {
        const next = new URLSearchParams(before);
        next.delete('owner');
        if (checked) next.set('unknown', 'true');
        else next.delete('unknown');
        return next;
      },
      { replace: true },
    );
  if (live.error?.status === 403) return <NotForRole text={live.error.message} />;
  return (
    <Table<Letter>
      variant="full-page"
      stickyHeader
      contentDensity="compact"
      wrapLines
      items={live.data?.items ?? []}
      loading={live.loading}
      loadingText="Loading messages"
      ariaLabels={{ tableLabel: 'Refused messages', selectionGroupLabel: '' }}
      header={
        <SpaceBetween size="xs">
          <Header
            variant="awsui-h1-sticky"
            description="Messages of the intake queues of which no job was made, or not all jobs. They are stored for 14 days."
            actions={<Button iconName="refresh" ariaLabel="Refresh" onClick={live.reload} />}
          >
            Intake
          </Header>
          <Stale live={live} />
        </SpaceBetween>
      }
      filter={
        <div className="filters">
          <SpaceBetween direction="horizontal" size="m">
            {!unknown && <WhoseChoice single />}
            {mayOversee(role) && (
              <Toggle checked={unknown} onChange={({ detail }) => setUnknown(detail.checked)}>
                Unknown senders
              </Toggle>
            )}
          </SpaceBetween>
        </div>
      }
      pagination={<Pagination {...pages.bar(live.data?.cursor)} ariaLabels={{ nextPageLabel: 'Next page', previousPageLabel: 'Previous page', pageLabel: (n) => `Page ${n}` }} />}
      empty={live.error !== null && live.data === null ? <Failed error={live.error} what="messages" retry={live.reload} /> : (
        <Empty title="No refused messages">
          <Box variant="p" color="inherit">A message is listed here when its body, its sender or its owner breaks a rule. You correct the message, and create its jobs.</Box>
          <DocsLink href={pageOfDocs('guides/intake')}>Create jobs by a queue</DocsLink>
        </Empty>
      )}
      columnDefinitions={[
        {
          id: 'error',
          header: 'Error',
          isRowHeader: true,
          cell: (letter) => <To href={pageOfIntakeLetter(letter.message_id, unknown ? undefined : owner)}><Words>{rulesOf(letter.errors)}</Words></To>,
          minWidth: 240,
        },
        { id: 'queue', header: 'Queue', cell: (letter) => letter.queue },
        { id: 'sender', header: 'Sender', cell: (letter) => <Words>{letter.sender}</Words>, minWidth: 160 },
        { id: 'sent', header: 'Sent', cell: (letter) => <Ago at={letter.sent_at} /> },
        { id: 'message', header: 'Message', cell: (letter) => <Words>{letter.message_id}</Words>, minWidth: 160 },
      ]}
    />
  );
}
