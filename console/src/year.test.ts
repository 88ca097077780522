import { createElement } from 'react';
import { describe, expect, test } from 'vitest';

import { YearMonths } from './parts/year';
import { rendered } from './rendered';
import { dateInWords, daysFrom, inWords, marksOf, monthAfter, monthsOf, totals, type Day, type Year } from './year';

const PLAIN: Day = { date: '2027-01-01', planned: 0, runs: {}, clock_change: false, excluded: null, moved_to: null, moved_from: [] };
const YEAR: Year = {
  time_zone: 'Europe/Berlin', today: '2027-01-15', first_day: '2027-01-01', last_day: '2027-12-31', counted_from: null, warnings: [],
  days: [
    { ...PLAIN, date: '2027-01-14', runs: { succeeded: 20, failed: 4 } },
    { ...PLAIN, date: '2027-01-15', planned: 12, runs: { succeeded: 12 } },
    { ...PLAIN, date: '2027-01-16', planned: 96 },
    { ...PLAIN, date: '2027-03-28', planned: 23, clock_change: true },
    { ...PLAIN, date: '2027-12-25', excluded: 'excluded by de', moved_to: '2027-12-27' },
    { ...PLAIN, date: '2027-12-26', excluded: 'excluded by de' },
    { ...PLAIN, date: '2027-12-27', planned: 24, moved_from: ['2027-12-25'] },
  ],
};
const days = monthsOf(YEAR).flatMap((month) => month.days);
const of = (date: string) => days.find((day) => day.date === date);
const text = (year: Year): string => rendered(createElement(YearMonths, { year })).replace(/<[^>]+>/g, ' ').replace(/\s+/g, ' ');

describe('a year', () => {
  test('is twelve months with every day once', () => {
    expect(monthsOf(YEAR).map(({ name, before, days: all }) => [name, before, all.length])).toMatchObject({ 0: ['January 2027', 4, 31], 1: ['February 2027', 0, 28], 11: ['December 2027', 2, 31] });
    expect(days).toHaveLength(365);
  });

  test('begins with the first of a month and has the days up to that of the next year', () => {
    expect([monthAfter('2026-11-20', 0), monthAfter('2026-11-20', 2), monthAfter('2027-01-01', -6)]).toEqual(['2026-11-01', '2027-01-01', '2026-07-01']);
    expect([daysFrom('2027-01-01'), daysFrom('2027-03-01')]).toEqual([365, 366]);
  });

  test('counts what is planned, what was due and the odd days', () =>
    expect(totals(YEAR)).toMatchObject({ planned: 155, due: 36, failed: 4, odd: [{ date: '2027-03-28' }, { date: '2027-12-25' }, { date: '2027-12-26' }, { date: '2027-12-27' }] }));
});

describe('a day', () => {
  test('is the darker the more runs it has', () => expect(['2027-01-14', '2027-01-16', '2027-01-17'].map((date) => of(date)?.level)).toEqual([1, 4, 0]));

  test('is past if nothing of it is to come', () => expect(['2027-01-14', '2027-01-15', '2027-01-16', '2027-01-13'].map((date) => of(date)?.past)).toEqual([true, false, false, false]));

  test('says all that it has', () => {
    expect(of('2027-01-14')?.label).toBe('Thursday 14 January 2027: 20 succeeded; 4 failed');
    expect(of('2027-01-15')?.label).toBe('Friday 15 January 2027, today: 12 planned; 12 succeeded');
    expect(of('2027-01-17')?.label).toBe('Sunday 17 January 2027: no runs');
    expect(inWords(YEAR.days[4] ?? PLAIN)).toBe('excluded by de, moved to 2027-12-27');
    expect(inWords(YEAR.days[6] ?? PLAIN)).toBe('24 planned; has the runs of 2027-12-25');
    expect(dateInWords('2027-03-28')).toBe('Sunday 28 March 2027');
  });

  test('has a mark for each odd thing', () =>
    expect(YEAR.days.map(marksOf)).toEqual([['failed'], [], [], ['clock'], ['away'], ['excluded'], ['moved']]));
});

describe('the page', () => {
  test('shows the legend of the marks in use, and the odd days in words', () => {
    expect(text(YEAR)).toContain('The clock changes');
    expect(text(YEAR)).toContain('Sunday 28 March 2027: the clock changes');
    expect(text({ ...YEAR, days: [{ ...PLAIN, planned: 1 }] })).not.toContain('The clock changes');
  });

  test('says that there are no runs', () => expect(text({ ...YEAR, days: [] })).toBe(' No runs in these months '));

  test('lists twenty odd days and the number of the others', () => {
    const many = Array.from({ length: 25 }, (_, n) => ({ ...PLAIN, date: `2027-05-${String(n + 1).padStart(2, '0')}`, excluded: 'not in de' }));
    expect(text({ ...YEAR, days: many })).toContain('and 5 more');
  });
});
