/** The names of tasks, for lists that have only their ids. */
import { api, take } from '../api/client';
import { keyOf, useAsked } from './asked';
const names = new Map();
/** Remember a name that a page has read anyway. */
export function remember(id, owner, name) {
    names.set(keyOf(id, owner), name);
}
/** Returns the name of a task if it is known by now; a deleted task has none. */
export function useTaskNames(tasks) {
    return useAsked(names, tasks, async ({ id, owner }) => (await take(api.GET('/api/v1/tasks/{task_id}', { params: { path: { task_id: id }, query: { owner } } }))).name);
}
