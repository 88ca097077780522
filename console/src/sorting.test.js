import { describe, expect, test } from 'vitest';
import { newestFirst, sorted } from './sorting';
const task = (id, name, next) => ({ id, name, status: 'active', type: 'http', target: null, schedule: null, next_run: next === null ? null : { at: next } });
const TASKS = [task('1', 'Report 10', '2027-01-02T00:00:00Z'), task('2', 'report 9', null), task('3', 'Audit', '2027-01-01T00:00:00Z')];
const ids = (tasks) => tasks.map(({ id }) => id).join('');
describe('tasks are sorted', () => {
    test('by name, as people count', () => expect(ids(sorted(TASKS, 'name', false))).toBe('321'));
    test('the other way', () => expect(ids(sorted(TASKS, 'name', true))).toBe('123'));
    test('by the next run, those without one last in both orders', () => {
        expect(ids(sorted(TASKS, 'next', false))).toBe('312');
        expect(ids(sorted(TASKS, 'next', true))).toBe('132');
    });
    test('by nothing known, not at all', () => {
        expect(ids(sorted(TASKS, 'moon', false))).toBe('123');
        expect(ids(sorted(TASKS, 'toString', false))).toBe('123');
    });
    test('the newest first, by their ids', () => expect(ids(newestFirst(TASKS))).toBe('321'));
});
