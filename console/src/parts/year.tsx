import Box from '@cloudscape-design/components/box';
import Button from '@cloudscape-design/components/button';
import Container from '@cloudscape-design/components/container';
import Header from '@cloudscape-design/components/header';
import SpaceBetween from '@cloudscape-design/components/space-between';
import StatusIndicator from '@cloudscape-design/components/status-indicator';
import { memo, useState, type ReactNode } from 'react';

import { api, take, type Task } from '../api/client';
import { useLive } from '../live';
import { dateInWords, daysFrom, LEVELS, MARKS, monthAfter, monthsOf, odd, totals, type Cell, type Mark, type Month, type Year } from '../year';
import { Empty, Loaded } from './parts';
import { When } from './time';
import { useWhose } from './whose';

const STEP = 6; // months of a click
const SELDOM = 300_000;
const LISTED = 20; // odd days in words; the title of each day has its own
const WEEKDAYS = ['M', 'T', 'W', 'T', 'F', 'S', 'S'];

/** The year of a task: its runs by date, and what is odd about the dates. */
export function TaskYear({ task }: { task: Task }): ReactNode {
  const { owner } = useWhose();
  const [first, setFirst] = useState(() => monthAfter(new Date().toISOString().slice(0, 10), 0));
  const live = useLive(
    `year ${task.id} ${task.generation} ${first} ${owner ?? ''}`,
    () => take(api.GET('/api/v1/tasks/{task_id}/calendar', { params: { path: { task_id: task.id }, query: { from: first, days: daysFrom(first), owner } } })),
    SELDOM,
  );
  const year = live.data;
  return (
    <Container
      header={
        <Header
          variant="h2"
          description={year === null ? undefined : inShort(year)}
          actions={
            <SpaceBetween direction="horizontal" size="xs">
              <Button ariaLabel="Earlier months" onClick={() => setFirst(monthAfter(first, -STEP))}>Earlier</Button>
              <Button ariaLabel="Later months" onClick={() => setFirst(monthAfter(first, STEP))}>Later</Button>
            </SpaceBetween>
          }
        >
          Year
        </Header>
      }
    >
      <Loaded live={live} what="year">{(found) => <YearMonths year={found} />}</Loaded>
    </Container>
  );
}

function inShort(year: Year): string {
  const { planned, due, failed } = totals(year);
  const past = due === 0 ? '' : `, ${due.toLocaleString()} already due${failed === 0 ? '' : `, ${failed.toLocaleString()} of them failed`}`;
  return `${planned.toLocaleString()} runs planned${past}. Dates in ${year.time_zone}.`;
}

/** The months, the legend and the odd days. Without runs and odd days: that there are none. */
export const YearMonths = memo(function YearMonths({ year }: { year: Year }): ReactNode {
  if (year.days.length === 0) return <Empty title="No runs in these months" />;
  const months = monthsOf(year);
  const used = new Set(months.flatMap(({ days }) => days.flatMap(({ marks }) => marks)));
  return (
    <SpaceBetween size="m">
      <div className="year">{months.map((month) => <MonthOf key={month.name} month={month} />)}</div>
      <Legend used={(Object.keys(MARKS) as Mark[]).filter((mark) => used.has(mark))} />
      {year.counted_from !== null && <StatusIndicator type="warning">Runs before <When at={year.counted_from} /> are not counted: there are too many.</StatusIndicator>}
      {year.warnings.map((warning) => <StatusIndicator key={warning} type="warning">{warning}</StatusIndicator>)}
      <OddDays year={year} />
    </SpaceBetween>
  );
});

function MonthOf({ month }: { month: Month }): ReactNode {
  return (
    <section aria-label={month.name}>
      <Box variant="h3" fontSize="body-m">{month.name}</Box>
      <div className="week" aria-hidden="true">{WEEKDAYS.map((name, place) => <span key={place}>{name}</span>)}</div>
      <ol className="days">
        {month.days.map((day, place) => <DayOf key={day.date} day={day} column={place === 0 ? month.before + 1 : undefined} />)}
      </ol>
    </section>
  );
}

function DayOf({ day, column }: { day: Cell; column: number | undefined }): ReactNode {
  const look = ['day', `level-${day.level}`, ...(day.past ? ['past'] : []), ...(day.today ? ['today'] : []), ...(day.marks.length > 0 ? ['odd'] : [])];
  return (
    <li className={look.join(' ')} title={day.label} style={column === undefined ? undefined : { gridColumnStart: column }}>
      <span aria-hidden="true">{day.number}{day.marks[0] === undefined ? null : <b>{MARKS[day.marks[0]].sign}</b>}</span>
      <span className="heard">{day.label}</span>
    </li>
  );
}

function Legend({ used }: { used: readonly Mark[] }): ReactNode {
  const levels = Array.from({ length: LEVELS }, (_, level) => level + 1);
  return (
    <div className="legend">
      <span>Planned, few to many {levels.map((level) => <i key={level} className={`day level-${level}`} />)}</span>
      <span>Already due {levels.map((level) => <i key={level} className={`day past level-${level}`} />)}</span>
      {used.map((mark) => <span key={mark}><b>{MARKS[mark].sign}</b> {MARKS[mark].told}</span>)}
    </div>
  );
}

function OddDays({ year }: { year: Year }): ReactNode {
  const found = totals(year).odd;
  if (found.length === 0) return null;
  return (
    <div>
      <Box variant="h3" fontSize="body-m">Odd days</Box>
      <ul className="wrong">
        {found.slice(0, LISTED).map((day) => <li key={day.date}>{dateInWords(day.date)}: {odd(day).join('; ')}</li>)}
        {found.length > LISTED && <li>and {found.length - LISTED} more</li>}
      </ul>
    </div>
  );
}
