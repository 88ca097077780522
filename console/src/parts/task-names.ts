/** The names of tasks, for lists of jobs, which have only their ids. Each is asked for once. */
import { useEffect, useState } from 'react';

import { api, take } from '../api/client';

const AT_ONCE = 4;
const names = new Map<string, string>();

const keyOf = (id: string, user: string | undefined): string => `${id} ${user ?? ''}`;

/** Remember a name that a page has read anyway. */
export function remember(id: string, user: string | undefined, name: string): void {
  names.set(keyOf(id, user), name);
}

/** Returns the name of a task if it is known by now; a deleted task has none. */
export function useTaskNames(tasks: readonly { id: string; user: string | undefined }[]): (id: string, user: string | undefined) => string | undefined {
  const [, setFound] = useState(0);
  const wanted = [...new Map(tasks.map((task) => [keyOf(task.id, task.user), task])).entries()].filter(([key]) => !names.has(key));
  const key = wanted.map(([each]) => each).join('|');
  useEffect(() => {
    if (key === '') return;
    let over = false;
    const left = wanted.map(([, task]) => task);
    const ask = async (): Promise<void> => {
      for (let task = left.shift(); task !== undefined && !over; task = left.shift()) {
        const { id, user } = task;
        try {
          const found = await take(api.GET('/api/v1/tasks/{task_id}', { params: { path: { task_id: id }, query: { user } } }));
          remember(id, user, found.name);
        } catch {
          remember(id, user, ''); // deleted, or not to be read: the id is shown
        }
        if (!over) setFound((before) => before + 1);
      }
    };
    void Promise.all(Array.from({ length: AT_ONCE }, ask));
    return () => {
      over = true;
    };
  }, [key]);
  return (id, user) => names.get(keyOf(id, user)) || undefined;
}
