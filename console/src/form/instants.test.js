import { expect, test } from 'vitest';
import { instantOf, partsOf } from './instants';
test('an instant survives being shown in two inputs', () => {
    const instant = '2026-11-20T10:07:09.000Z';
    const { date, time } = partsOf(instant);
    expect(instantOf(date, time)).toBe(instant);
});
test('without a date there is none', () => {
    expect(instantOf('', '10:00:00')).toBe('');
    expect(partsOf('')).toEqual({ date: '', time: '' });
});
test('a time that is only begun counts as zeros', () => expect(instantOf('2026-11-20', '10:')).toBe(instantOf('2026-11-20', '10:00:00')));
