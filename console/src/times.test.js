import { describe, expect, test } from 'vitest';
import { bounds, spanOptions } from './times';
const NOW = Date.UTC(2027, 0, 2);
const at = (query, ahead = false) => bounds(new URLSearchParams(query), ahead, NOW);
describe('the time of a filter', () => {
    test('of the past begins a span ago', () => expect(at('time=day')).toEqual({ from: '2027-01-01T00:00:00.000Z' }));
    test('of what is ahead ends after the span', () => expect(at('time=hour', true)).toEqual({ to: '2027-01-02T01:00:00.000Z' }));
    test('between two instants takes those that are there', () => {
        expect(at('time=between&from=2027-01-01T00:00:00.000Z')).toEqual({ from: '2027-01-01T00:00:00.000Z' });
        expect(at('time=between&from=a&to=b')).toEqual({ from: 'a', to: 'b' });
    });
    test('is none without one, or with one that is not known', () => {
        expect(at('')).toEqual({});
        expect(at('from=2027-01-01T00:00:00.000Z')).toEqual({});
        expect(at('time=toString')).toEqual({});
    });
    test('is named by its direction', () => expect(spanOptions(true)[1]?.label).toBe('The next hour'));
});
