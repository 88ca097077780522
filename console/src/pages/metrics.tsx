import Box from '@cloudscape-design/components/box';
import ColumnLayout from '@cloudscape-design/components/column-layout';
import Container from '@cloudscape-design/components/container';
import Header from '@cloudscape-design/components/header';
import KeyValuePairs from '@cloudscape-design/components/key-value-pairs';
import MixedLineBarChart, { type MixedLineBarChartProps } from '@cloudscape-design/components/mixed-line-bar-chart';
import Select from '@cloudscape-design/components/select';
import SpaceBetween from '@cloudscape-design/components/space-between';
import Table from '@cloudscape-design/components/table';
import { useState, type ReactNode } from 'react';
import { useSearchParams } from 'react-router';

import { api, take, type Schemas } from '../api/client';
import { byDay, daysOf, endedOf, onTimeOf, since, slowest, slowTasks, successOf, sum, type SlowTask, type Type } from '../figures';
import { COLOURS } from '../colours';
import { useLive } from '../live';
import { Empty, Failed, Loaded, To, useTitle } from '../parts/parts';
import { pageOfTask } from '../parts/links';
import { ScopeChoice, useScope } from '../parts/scope';
import { percent, span } from '../words';

type Summary = Schemas['Statistics'];
const SPANS = [
  { value: '7', label: '7 days' },
  { value: '30', label: '30 days' },
  { value: '90', label: '90 days' },
  { value: 'year', label: 'A year' },
];
const USUAL = SPANS[1];
const EVERY = 15_000;
const NARROWEST = 7; // days of a chart
const LINE = 4; // days from which on a line is one
const LATEST = 100; // runs by which slow tasks are told

/** How jobs ended and how long they took: all in all, day by day, and by task. */
export default function Metrics(): ReactNode {
  useTitle('Metrics');
  const { scope, owner } = useScope();
  const [query, setQuery] = useSearchParams();
  const chosen = SPANS.find(({ value }) => value === query.get('span')) ?? USUAL;
  const days = chosen?.value === 'year' ? undefined : Number(chosen?.value);
  const live = useLive(`metrics ${scope} ${owner ?? ''} ${days ?? ''}`, () => take(api.GET('/api/v1/statistics', { params: { query: { scope, days, owner } } })), EVERY);
  const choose = (value: string): void =>
    setQuery(
      (before) => {
        const next = new URLSearchParams(before);
        next.set('span', value);
        return next;
      },
      { replace: true },
    );
  return (
    <SpaceBetween size="l">
      <Header
        variant="h1"
        description="Results and durations of jobs. Days are in UTC."
        actions={
          <SpaceBetween direction="horizontal" size="xs">
            <ScopeChoice />
            <Select ariaLabel="Span" options={SPANS} selectedOption={chosen ?? null} onChange={({ detail }) => choose(detail.selectedOption.value ?? 'year')} />
          </SpaceBetween>
        }
      >
        Metrics
      </Header>
      <Loaded live={live} what="metrics">
        {(summary) => <Shown summary={summary} />}
      </Loaded>
      <SlowTasks />
    </SpaceBetween>
  );
}

function Shown({ summary }: { summary: Summary }): ReactNode {
  const total = sum(summary.types);
  const days = daysOf(summary.since, summary.until);
  const share = onTimeOf(total);
  const success = successOf(total);
  return (
    <SpaceBetween size="l">
      <Container header={<Header variant="h2">Overview</Header>}>
        <KeyValuePairs
          columns={4}
          items={[
            { label: 'Jobs ended', value: endedOf(total).toLocaleString() },
            { label: 'Average per day', value: Number((endedOf(total) / days.length).toFixed(1)).toLocaleString() },
            { label: 'On time', value: share === null ? '–' : percent(share) },
            { label: 'Success rate', value: success === null ? '–' : percent(success) },
          ]}
        />
      </Container>
      {summary.daily !== null && <Daily days={days} daily={summary.daily} types={summary.types.map(({ type }) => type)} />}
      <Types types={summary.types} />
    </SpaceBetween>
  );
}

function Daily({ days: all, daily, types }: { days: string[]; daily: NonNullable<Summary['daily']>; types: string[] }): ReactNode {
  const days = since(all, daily, NARROWEST);
  const [wanted, setType] = useState<string | null>(null);
  const type = wanted !== null && types.includes(wanted) ? wanted : (types[0] ?? '');
  const average = byDay(days, daily, type, ([found]) => found?.average_ms ?? null);
  const look = average.length < LINE ? 'bar' : 'line';
  const count = (name: 'succeeded' | 'failed' | 'killed' | 'skipped' | 'cancelled') => byDay(days, daily, null, (found) => sum(found)[name]);
  const options = types.map((value) => ({ value, label: value }));
  return (
    <ColumnLayout columns={2}>
      <Container
        fitHeight
        header={
          <Header
            variant="h2"
            actions={
              <Select
                ariaLabel="Type charted"
                options={options}
                selectedOption={options.find(({ value }) => value === type) ?? null}
                onChange={({ detail }) => setType(detail.selectedOption.value ?? null)}
                disabled={options.length === 0}
              />
            }
          >
            Duration
          </Header>
        }
      >
        <Chart
          label="Average and p95 per day"
          title="Time"
          days={days}
          format={span}
          series={[
            { title: 'Average', type: look, data: average, valueFormatter: span, color: COLOURS.measure },
            { title: 'p95', type: look, data: byDay(days, daily, type, ([found]) => found?.p95_ms ?? null), valueFormatter: span, color: COLOURS.high },
          ]}
        />
      </Container>
      <Container fitHeight header={<Header variant="h2" description="Ended jobs by result">Throughput</Header>}>
        <Chart
          label="Jobs ended per day"
          title="Jobs"
          days={days}
          format={(y) => y.toLocaleString()}
          stacked
          series={[
            { title: 'Succeeded', type: 'bar', data: count('succeeded'), color: COLOURS.succeeded },
            { title: 'Failed', type: 'bar', data: count('failed'), color: COLOURS.failed },
            { title: 'Killed', type: 'bar', data: count('killed'), color: COLOURS.killed },
            { title: 'Skipped', type: 'bar', data: count('skipped'), color: COLOURS.skipped },
            { title: 'Cancelled', type: 'bar', data: count('cancelled'), color: COLOURS.cancelled },
          ]}
        />
      </Container>
    </ColumnLayout>
  );
}

interface ChartProps {
  label: string;
  title: string;
  days: string[];
  format: (y: number) => string;
  stacked?: boolean;
  series: MixedLineBarChartProps<string>['series'];
}

function Chart({ label, title, days, format, stacked = false, series }: ChartProps): ReactNode {
  return (
    <MixedLineBarChart
      height={220}
      hideFilter
      stackedBars={stacked}
      xScaleType="categorical"
      xDomain={days}
      yTitle={title}
      ariaLabel={label}
      series={series}
      i18nStrings={{ yTickFormatter: format, xTickFormatter: (day) => day.slice(5) }}
      empty={<Empty title="No job has ended yet" />}
      noMatch={<Empty title="No job has ended yet" />}
    />
  );
}

function Types({ types }: { types: Type[] }): ReactNode {
  const ran = slowest(types);
  const rows = [...ran, ...types.filter((each) => !ran.includes(each))];
  const time = (ms: number | null): string => (ms === null ? '–' : span(ms));
  return (
    <Table<Type>
      contentDensity="compact"
      trackBy="type"
      items={rows}
      ariaLabels={{ tableLabel: 'Types', selectionGroupLabel: '' }}
      header={<Header variant="h2" description="Slowest first">By type</Header>}
      empty={<Empty title="No job has ended yet" />}
      columnDefinitions={[
        { id: 'type', header: 'Type', cell: (each) => each.type, isRowHeader: true },
        { id: 'runs', header: 'Jobs ended', cell: (each) => endedOf(each).toLocaleString() },
        { id: 'average', header: 'Average', cell: (each) => time(each.average_ms) },
        { id: 'p50', header: 'p50', cell: (each) => time(each.p50_ms) },
        { id: 'p95', header: 'p95', cell: (each) => time(each.p95_ms) },
        { id: 'on-time', header: 'On time', cell: (each) => shareOf(onTimeOf(each)) },
        { id: 'success', header: 'Succeeded', cell: (each) => shareOf(successOf(each)) },
        { id: 'failed', header: 'Failed', cell: (each) => (each.failed + each.killed).toLocaleString() },
      ]}
    />
  );
}

function shareOf(share: number | null): string {
  return share === null ? '–' : percent(share);
}

/** Of one's own tasks: the API tells times by type, so these come of the latest runs. */
function SlowTasks(): ReactNode {
  const { owner } = useScope();
  const live = useLive(`slow tasks ${owner ?? ''}`, async () => {
    const [jobs, tasks] = await Promise.all([
      take(api.GET('/api/v1/jobs', { params: { query: { status: 'succeeded', limit: LATEST, owner } } })),
      take(api.GET('/api/v1/tasks', { params: { query: { limit: LATEST, owner } } })),
    ]);
    return { slow: slowTasks(jobs.items), names: new Map(tasks.items.map(({ id, name }) => [id, name])) };
  }, EVERY);
  const names = live.data?.names;
  return (
    <Table<SlowTask>
      contentDensity="compact"
      trackBy="id"
      items={(live.data?.slow ?? []).slice(0, 10)}
      loading={live.loading}
      loadingText="Loading tasks"
      ariaLabels={{ tableLabel: 'Slowest tasks', selectionGroupLabel: '' }}
      header={<Header variant="h2" description={`By the latest ${LATEST} successful jobs of ${owner === undefined ? 'yours' : 'this owner'}`}>Slowest tasks</Header>}
      empty={live.error !== null && live.data === null ? <Failed error={live.error} what="tasks" retry={live.reload} /> : <Empty title="No recent runs of tasks"><Box variant="p" color="inherit">One-time jobs are not listed here.</Box></Empty>}
      columnDefinitions={[
        { id: 'task', header: 'Task', cell: (each) => <To href={pageOfTask(each.id, owner)}>{names?.get(each.id) ?? each.id}</To>, isRowHeader: true },
        { id: 'type', header: 'Type', cell: (each) => each.type },
        { id: 'runs', header: 'Runs', cell: (each) => each.runs },
        { id: 'average', header: 'Average', cell: (each) => span(each.average) },
        { id: 'longest', header: 'Longest', cell: (each) => span(each.longest) },
      ]}
    />
  );
}
