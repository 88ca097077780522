/** Entries of the audit trail: who asked for what and when, and how it ended. */
import Box from '@cloudscape-design/components/box';
import Button from '@cloudscape-design/components/button';
import Pagination from '@cloudscape-design/components/pagination';
import Popover from '@cloudscape-design/components/popover';
import StatusIndicator from '@cloudscape-design/components/status-indicator';
import Table, { type TableProps } from '@cloudscape-design/components/table';
import type { ReactNode } from 'react';

import type { Schemas } from '../api/client';
import { useMe } from '../api/session';
import { actionInWords, fieldsAsked, outcomeOf, pageOf, type Entry } from '../entries';
import { write } from '../exact';
import type { Live } from '../live';
import type { Pages } from './pages';
import { Code, Empty, Failed, To, Words } from './parts';
import { When } from './time';

function Changed({ entry }: { entry: Entry }): ReactNode {
  const page = pageOf(entry, useMe().id);
  return page === null ? (entry.object ?? '–') : <To href={page}>{entry.object}</To>;
}

/** Who changed it, and the API key that did it for them. */
function Author({ entry: { actor, actor_name: name, key } }: { entry: Pick<Entry, 'actor' | 'actor_name' | 'key'> }): ReactNode {
  return (
    <>
      <span title={actor}><Words>{name ?? actor}</Words></span>
      {key !== null && <Box color="text-body-secondary" fontSize="body-s"><Words>by the key {key}</Words></Box>}
    </>
  );
}

type Column = 'at' | 'who' | 'action' | 'object' | 'changes' | 'outcome' | 'address';

const COLUMNS: Record<Column, TableProps.ColumnDefinition<Entry>> = {
  at: { id: 'at', header: 'When', cell: (entry) => <When at={entry.at} /> },
  who: { id: 'who', header: 'Author', cell: (entry) => <Author entry={entry} />, maxWidth: 260 },
  action: { id: 'action', header: 'Change', cell: (entry) => actionInWords(entry), isRowHeader: true },
  object: {
    id: 'object',
    header: 'Object',
    cell: (entry) => <Changed entry={entry} />,
  },
  changes: {
    id: 'changes',
    header: 'Values',
    cell: (entry) =>
      Object.keys(entry.changes).length === 0 ? (
        '–'
      ) : (
        <Popover wrapTriggerText={false} size="large" header="Requested values" dismissAriaLabel="Close" content={<Code label="Requested values" text={write(entry.changes, 2)} />}>
          {fieldsAsked(entry.changes)}
        </Popover>
      ),
    maxWidth: 320,
  },
  outcome: {
    id: 'outcome',
    header: 'Result',
    cell: (entry) => {
      const { look, word } = outcomeOf(entry.status);
      return <StatusIndicator type={look}>{word}</StatusIndicator>;
    },
  },
  address: { id: 'address', header: 'IP address', cell: (entry) => entry.address || '–' },
};

interface Props extends Pick<TableProps<Entry>, 'variant' | 'header' | 'filter' | 'stickyHeader'> {
  live: Live<Schemas['AuditPage']>;
  pages: Pages;
  columns: Column[];
}

export function TrailTable({ live, pages, columns, ...rest }: Props): ReactNode {
  return (
    <Table<Entry>
      {...rest}
      contentDensity="compact"
      trackBy="id"
      items={live.data?.items ?? []}
      loading={live.loading}
      loadingText="Loading entries"
      ariaLabels={{ tableLabel: 'Audit trail', selectionGroupLabel: '' }}
      columnDefinitions={columns.map((name) => COLUMNS[name])}
      pagination={<Pagination {...pages.bar(live.data?.cursor)} ariaLabels={{ nextPageLabel: 'Next page', previousPageLabel: 'Previous page', pageLabel: (n) => `Page ${n}` }} />}
      empty={live.error !== null && live.data === null ? <Failed error={live.error} what="the audit trail" retry={live.reload} /> : <Empty title="No changes"><Box variant="p" color="inherit">Every change that a user requests is listed here. Choose a longer time or another filter to see older ones.</Box></Empty>}
    />
  );
}

export function Refresh({ live }: { live: Pick<Live<unknown>, 'reload'> }): ReactNode {
  return <Button iconName="refresh" ariaLabel="Refresh" formAction="none" onClick={live.reload} />;
}
