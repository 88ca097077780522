import { describe, expect, test } from 'vitest';
import { timeOuts } from './timeouts';
const HTTP = { properties: { timeout_seconds: { type: 'number', default: 30 } } };
describe('the two time-outs', () => {
    test('are explained with the default of the call', () => expect(timeOuts(HTTP, {}, '300')).toEqual({ text: 'The call times out after 30 s (see the payload). The attempt is killed after 300 s.', useless: false }));
    test('a longer one of the call never applies', () => expect(timeOuts(HTTP, { timeout_seconds: 60 }, '60')).toMatchObject({ useless: true }));
    test('half typed are not compared', () => expect(timeOuts(HTTP, {}, '')).toMatchObject({ useless: false }));
    test('a type without one has nothing to explain', () => expect(timeOuts({ properties: {} }, {}, '300')).toBeNull());
});
