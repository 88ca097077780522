import { expect, test } from 'vitest';

import { daysOf, errorsOfDays, listedDays } from './excluded-days';

test.each([
  [{ exclude: 'de-holidays, 2026-12-24', only: '' }, { only: false, calendars: ['de-holidays'], dates: '2026-12-24' }],
  [{ exclude: '', only: 'month-ends' }, { only: true, calendars: ['month-ends'], dates: '' }],
  [{ exclude: '', only: '' }, { only: false, calendars: [], dates: '' }],
])('%j there and back', (draft, listed) => {
  expect(listedDays(draft)).toEqual(listed);
  expect(daysOf(listed)).toEqual(draft);
});

test('a list changes its meaning as a whole, and what is no date yet stays among the dates', () => {
  expect(daysOf({ only: true, calendars: ['a'], dates: '2026-12-2 2026-12-31' })).toEqual({ exclude: '', only: 'a, 2026-12-2, 2026-12-31' });
});

test('a wrong date is told at the dates, a wrong calendar and the list itself at the calendars', () => {
  const listed = { only: false, calendars: ['a', 'b'], dates: '2026-13-40' };
  expect(errorsOfDays({ 'schedule.exclude.2': 'no date' }, listed)).toEqual({ calendars: undefined, dates: 'no date' });
  expect(errorsOfDays({ 'schedule.exclude.1': 'no calendar' }, listed)).toEqual({ calendars: 'no calendar', dates: undefined });
  expect(errorsOfDays({ 'schedule.only': 'too many', 'schedule.exclude': 'x' }, { ...listed, only: true })).toEqual({ calendars: 'too many', dates: undefined });
});
