import Box from '@cloudscape-design/components/box';
import Button from '@cloudscape-design/components/button';
import FormField from '@cloudscape-design/components/form-field';
import Header from '@cloudscape-design/components/header';
import Input from '@cloudscape-design/components/input';
import SpaceBetween from '@cloudscape-design/components/space-between';
import StatusIndicator from '@cloudscape-design/components/status-indicator';
import Table from '@cloudscape-design/components/table';
import Textarea from '@cloudscape-design/components/textarea';
import { useState, type ReactNode } from 'react';

import { api, take, type Schemas } from '../api/client';
import { pageOfDocs } from '../docs';
import { datesIn, runsOut } from '../form/calendar-dates';
import { useLive } from '../live';
import { DocsLink } from '../parts/docs-link';
import { FormDialog } from '../parts/form-dialog';
import { useNotices } from '../parts/notices';
import { Empty, Failed, NotForRole, Stale, useConfirm, useTitle, Words } from '../parts/parts';
import { useNow, When } from '../parts/time';
import { Refresh } from '../parts/trail';
import { OfWhom, useWhose, WhoseChoice } from '../parts/whose';

type Listed = Schemas['ListedCalendar'];
type Calendar = Schemas['Calendar'];

const FIELDS = ['calendar_name', 'dates', 'source', 'covers_until'];

/** Named sets of dates on which tasks do not run, or only run. */
export default function Calendars(): ReactNode {
  useTitle('Calendars');
  const { owner, mayChange } = useWhose();
  const live = useLive(`calendars ${owner ?? ''}`, () => take(api.GET('/api/v1/calendars', { params: { query: { owner } } })));
  const [edited, setEdited] = useState<Calendar | 'new' | null>(null);
  const [dialog, confirm] = useConfirm();
  const { done, failed } = useNotices();
  const params = (name: string) => ({ params: { path: { calendar_name: name }, query: { owner } } });
  const open = async ({ name }: Listed): Promise<void> => {
    try {
      setEdited(await take(api.GET('/api/v1/calendars/{calendar_name}', params(name))));
    } catch (error) {
      failed(`The dates of “${name}” could not be read`, error);
    }
  };
  const remove = async ({ name }: Listed): Promise<void> => {
    try {
      await take(api.DELETE('/api/v1/calendars/{calendar_name}', params(name)));
      done(`Deleted “${name}”.`);
    } catch (error) {
      failed(`“${name}” was not deleted`, error);
    }
    live.reload();
  };
  const stored = (name: string, replaces: boolean): void => {
    done(replaces ? `Stored “${name}”. An operation replaces the future runs of its tasks.` : `Stored “${name}”.`);
    live.reload();
  };
  if (live.error?.status === 403) return <NotForRole text={live.error.message} />;
  return (
    <SpaceBetween size="m">
      {dialog}
      {edited !== null && <CalendarDialog owner={owner} before={edited === 'new' ? null : edited} onClose={() => setEdited(null)} onStored={stored} />}
      <Table<Listed>
        variant="full-page"
        stickyHeader
        contentDensity="compact"
        wrapLines
        trackBy="name"
        items={live.data?.items ?? []}
        loading={live.loading}
        loadingText="Loading calendars"
        ariaLabels={{ tableLabel: 'Calendars', selectionGroupLabel: '' }}
        header={
          <SpaceBetween size="xs">
            <Header
              variant="awsui-h1-sticky"
              description={<><OfWhom />Dates on which tasks do not run: choose a calendar in the form of a task.</>}
              actions={
                <SpaceBetween direction="horizontal" size="xs">
                  <Refresh live={live} />
                  {mayChange && <Button variant="primary" onClick={() => setEdited('new')}>Create calendar</Button>}
                </SpaceBetween>
              }
            >
              Calendars
            </Header>
            <Stale live={live} />
          </SpaceBetween>
        }
        filter={<div className="filters"><WhoseChoice single /></div>}
        empty={live.error !== null && live.data === null ? <Failed error={live.error} what="calendars" retry={live.reload} /> : (
          <Empty title="No calendars">
            <Box variant="p" color="inherit">Public holidays and ICS files can be imported by the command line.</Box>
            {mayChange && <Button onClick={() => setEdited('new')}>Create a calendar</Button>}
            <DocsLink href={pageOfDocs('guides/calendars')}>Calendars</DocsLink>
          </Empty>
        )}
        columnDefinitions={[
          { id: 'name', header: 'Name', isRowHeader: true, cell: ({ name }) => <Words>{name}</Words>, minWidth: 140 },
          { id: 'size', header: 'Dates', cell: ({ size }) => size.toLocaleString() },
          { id: 'until', header: 'Known until', cell: ({ covers_until }) => <Until date={covers_until} /> },
          { id: 'source', header: 'Source', cell: ({ source }) => (source === null ? '–' : <Words>{source}</Words>), minWidth: 140 },
          { id: 'updated', header: 'Changed', cell: ({ updated_at }) => <When at={updated_at} /> },
          {
            id: 'action',
            header: 'Action',
            cell: (calendar) =>
              mayChange && (
                <SpaceBetween direction="horizontal" size="s">
                  <Button variant="inline-link" ariaLabel={`Change ${calendar.name}`} onClick={() => void open(calendar)}>Change</Button>
                  <Button
                    variant="inline-link"
                    ariaLabel={`Delete ${calendar.name}`}
                    onClick={() => confirm({ title: `Delete “${calendar.name}”?`, text: 'A calendar that a task names is not deleted.', yes: 'Delete', act: () => remove(calendar) })}
                  >
                    Delete
                  </Button>
                </SpaceBetween>
              ),
          },
        ]}
      />
    </SpaceBetween>
  );
}

function Until({ date }: { date: string | null }): ReactNode {
  const now = useNow();
  if (date === null) return 'Complete';
  return runsOut(date, now) ? <StatusIndicator type="warning">{date}</StatusIndicator> : date;
}

interface DialogProps {
  owner: string | undefined;
  /** Null: a new one. */
  before: Calendar | null;
  onClose: () => void;
  onStored: (name: string, replaces: boolean) => void;
}

function CalendarDialog({ owner, before, onClose, onStored }: DialogProps): ReactNode {
  const [name, setName] = useState(before?.name ?? '');
  const [dates, setDates] = useState(before?.dates.join('\n') ?? '');
  const [source, setSource] = useState(before?.source ?? '');
  const [until, setUntil] = useState(before?.covers_until ?? '');
  const body = { dates: datesIn(dates), source: source.trim() === '' ? null : source.trim(), covers_until: until.trim() === '' ? null : until.trim() };
  const act = async (): Promise<void> => {
    const put = await take(api.PUT('/api/v1/calendars/{calendar_name}', { params: { path: { calendar_name: name.trim() }, query: { owner } }, body }));
    onStored(put.name, put.operation !== null);
  };
  return (
    <FormDialog title={before === null ? 'Create a calendar' : `Change “${before.name}”`} yes={before === null ? 'Create' : 'Save'} fields={FIELDS} values={{ ...body, calendar_name: name }} disabled={name.trim() === ''} act={act} onClose={onClose}>
      {(errors) => (
        <SpaceBetween size="m">
          <OfWhom />
          <FormField label="Name" description="Tasks refer to it by this name, such as de-holidays" errorText={errors['calendar_name']}>
            <Input value={name} disabled={before !== null} spellcheck={false} autoComplete={false} autoFocus={before === null} onChange={({ detail }) => setName(detail.value)} />
          </FormField>
          <FormField label="Dates" description="Such as 2027-12-24, one a line or separated by commas" constraintText={`${body.dates.length.toLocaleString()} dates`} errorText={errors['dates']}>
            <Textarea value={dates} rows={8} spellcheck={false} onChange={({ detail }) => setDates(detail.value)} />
          </FormField>
          <FormField label="Known until" description="Tasks with later runs say so. Empty: the dates are complete" errorText={errors['covers_until']}>
            <Input value={until} placeholder="2027-12-31" spellcheck={false} onChange={({ detail }) => setUntil(detail.value)} />
          </FormField>
          <FormField label="Source" description="For people" errorText={errors['source']}>
            <Input value={source} onChange={({ detail }) => setSource(detail.value)} />
          </FormField>
        </SpaceBetween>
      )}
    </FormDialog>
  );
}
