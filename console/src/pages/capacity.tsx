import Alert from '@cloudscape-design/components/alert';
import Container from '@cloudscape-design/components/container';
import Header from '@cloudscape-design/components/header';
import KeyValuePairs from '@cloudscape-design/components/key-value-pairs';
import LineChart, { type LineChartProps } from '@cloudscape-design/components/line-chart';
import Pagination from '@cloudscape-design/components/pagination';
import SegmentedControl from '@cloudscape-design/components/segmented-control';
import SpaceBetween from '@cloudscape-design/components/space-between';
import StatusIndicator from '@cloudscape-design/components/status-indicator';
import Table from '@cloudscape-design/components/table';
import { useState, type ReactNode } from 'react';

import { api, take, type Schemas } from '../api/client';
import { isShort, marked, points, shortages, totals, type Minute, type Shortage } from '../capacity';
import { useLive } from '../live';
import { Empty, Loaded, useTitle } from '../parts/parts';
import { ScopeChoice, useScope } from '../parts/scope';
import { Ago, clock, When } from '../parts/time';
import { span } from '../words';

type Summary = Schemas['Forecast'];
const PER_PAGE = 20;
const LISTED = 5; // shortages told one by one; the table has all of them

/** The next three hours: what is to start, what that requires, and what there may be. */
export default function Capacity(): ReactNode {
  useTitle('Capacity');
  const { scope, owner } = useScope();
  const live = useLive(`capacity ${scope} ${owner ?? ''}`, () => take(api.GET('/api/v1/forecast', { params: { query: { scope, owner } } })));
  return (
    <SpaceBetween size="l">
      <Header
        variant="h1"
        description="The next three hours, minute by minute. New jobs appear within seconds."
        actions={<ScopeChoice />}
      >
        Capacity
      </Header>
      <Loaded live={live} what="capacity">
        {(summary) => <Shown summary={summary} />}
      </Loaded>
    </SpaceBetween>
  );
}

function Shown({ summary }: { summary: Summary }): ReactNode {
  const { minutes, available_instances: available } = summary;
  const short = shortages(minutes, available);
  const { jobs, busiest, required } = totals(minutes);
  return (
    <SpaceBetween size="l">
      <Needed short={short} available={available} />
      <Container header={<Header variant="h2">Overview</Header>}>
        <KeyValuePairs
          columns={4}
          items={[
            { label: 'Jobs to start', value: jobs.toLocaleString() },
            { label: 'Busiest minute', value: busiest === null ? '–' : <>{busiest.jobs.toLocaleString()} jobs at <When at={busiest.scheduled_at} /></> },
            { label: 'Peak of executors required', value: required.toLocaleString() },
            { label: 'Executors available', value: available.toLocaleString() },
          ]}
        />
      </Container>
      <Container header={<Header variant="h2" description="Jobs and executors, by the minute in which the jobs start">Next three hours</Header>}>
        <SpaceBetween size="l">
          <Graph
            label="Executors required against available"
            title="Executors"
            minutes={minutes}
            most={Math.max(required, available)}
            series={[
              { title: 'Required', type: 'line', data: points(minutes, (minute) => minute.required_instances) },
              { title: 'Available', type: 'threshold', y: available },
              ...short.slice(0, LISTED).map((each) => ({
                title: `Scaling needed, ${clock(new Date(each.from))}`,
                type: 'line' as const,
                color: 'var(--short)',
                data: marked(minutes, each),
              })),
            ]}
          />
          <Graph
            label="Jobs per minute"
            title="Jobs per minute"
            minutes={minutes}
            most={busiest?.jobs ?? 0}
            series={[{ title: 'Jobs per minute', type: 'line', data: points(minutes, (minute) => minute.jobs) }]}
          />
        </SpaceBetween>
      </Container>
      <Minutes minutes={minutes} available={available} />
    </SpaceBetween>
  );
}

/** The moments where there is less than it takes. */
function Needed({ short, available }: { short: Shortage[]; available: number }): ReactNode {
  if (short.length === 0) return null;
  return (
    <Alert type="warning" header="Scaling is needed">
      {short.slice(0, LISTED).map((each) => (
        <div key={each.from}>
          <When at={each.from} /> to <When at={each.to} />: {each.required.toLocaleString()} executors required, {available.toLocaleString()} available
        </div>
      ))}
      {short.length > LISTED && <div>… and {short.length - LISTED} more periods; see the table.</div>}
    </Alert>
  );
}

interface GraphProps {
  label: string;
  title: string;
  minutes: readonly Minute[];
  most: number;
  series: LineChartProps<Date>['series'];
}

function Graph({ label, title, minutes, most, series }: GraphProps): ReactNode {
  const first = minutes[0];
  const last = minutes.at(-1);
  return (
    <LineChart
      height={180}
      hideFilter
      xScaleType="time"
      xDomain={first === undefined || last === undefined ? undefined : [new Date(first.scheduled_at), new Date(last.scheduled_at)]}
      yDomain={[0, Math.max(1, most) * 1.05]}
      yTitle={title}
      ariaLabel={label}
      series={series}
      i18nStrings={{ xTickFormatter: clock, yTickFormatter: (y) => (Number.isInteger(y) ? y.toLocaleString() : '') }}
      empty={<Empty title="No jobs to start" />}
      noMatch={<Empty title="No jobs to start" />}
    />
  );
}

type Which = 'some' | 'short' | 'all';

function Minutes({ minutes, available }: { minutes: readonly Minute[]; available: number }): ReactNode {
  const [which, setWhich] = useState<Which>('some');
  const [page, setPage] = useState(1);
  const rows = minutes.filter((minute) => which === 'all' || (which === 'short' ? isShort(minute, available) : minute.jobs > 0));
  const pages = Math.max(1, Math.ceil(rows.length / PER_PAGE));
  const shown = Math.min(page, pages);
  return (
    <Table<Minute>
      contentDensity="compact"
      trackBy="scheduled_at"
      items={rows.slice((shown - 1) * PER_PAGE, shown * PER_PAGE)}
      ariaLabels={{ tableLabel: 'Minutes', selectionGroupLabel: '' }}
      header={
        <Header
          variant="h2"
          counter={`(${rows.length})`}
          actions={
            <SegmentedControl
              label="Which minutes"
              selectedId={which}
              options={[{ id: 'some', text: 'With jobs' }, { id: 'short', text: 'Scaling needed' }, { id: 'all', text: 'All' }]}
              onChange={({ detail }) => {
                setWhich(detail.selectedId as Which);
                setPage(1);
              }}
            />
          }
        >
          Minutes
        </Header>
      }
      pagination={
        <Pagination
          currentPageIndex={shown}
          pagesCount={pages}
          onChange={({ detail }) => setPage(detail.currentPageIndex)}
          ariaLabels={{ nextPageLabel: 'Next page', previousPageLabel: 'Previous page', pageLabel: (n) => `Page ${n}` }}
        />
      }
      empty={<Empty title={which === 'short' ? 'Every minute has enough executors' : 'No jobs to start'} />}
      columnDefinitions={[
        { id: 'minute', header: 'Minute', cell: (minute) => <When at={minute.scheduled_at} />, isRowHeader: true },
        { id: 'away', header: 'In', cell: (minute) => <Ago at={minute.scheduled_at} /> },
        { id: 'jobs', header: 'Jobs', cell: (minute) => minute.jobs.toLocaleString() },
        { id: 'work', header: 'Work', cell: (minute) => span(minute.compute_ms) },
        { id: 'required', header: 'Required', cell: (minute) => minute.required_instances.toLocaleString() },
        { id: 'available', header: 'Available', cell: () => available.toLocaleString() },
        {
          id: 'state',
          header: 'State',
          cell: (minute) =>
            isShort(minute, available) ? <StatusIndicator type="warning">Scaling needed</StatusIndicator> : <StatusIndicator type="success">Enough</StatusIndicator>,
        },
      ]}
    />
  );
}
