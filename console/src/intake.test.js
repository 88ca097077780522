import { describe, expect, it } from 'vitest';
import { rulesOf } from './pages/intake';
import { bodyOf } from './pages/intake-letter';
describe('a refused message', () => {
    it('is named by its first broken rule and the number of the others', () => {
        const delay = { field: 'delay', rule: 'must be a duration' };
        expect(rulesOf([delay])).toBe('delay: must be a duration');
        expect(rulesOf([delay, delay, delay])).toBe('delay: must be a duration and 2 more');
        expect(rulesOf([])).toBe('–');
    });
    it('is tried again only with a JSON object', () => {
        expect(bodyOf('{"message": "x"}')).toEqual({ message: 'x' });
        expect([bodyOf('[1]'), bodyOf('{'), bodyOf('null'), bodyOf('')]).toEqual([null, null, null, null]);
    });
});
