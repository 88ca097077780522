/** What a job calls, in short, and the name of its task: lists show them instead of ids. Pure. */
import type { Job, Task } from './api/client';

/** The API adds these two to each job; absent: a version that does not. */
export type Listed<T = Job> = T & { calls?: string | null; task_name?: string | null };

/** The host and path, the function, the queue or the like; of a job that calls nothing its type. */
export function callsOf(job: Listed<Pick<Job, 'type' | 'target'>>): string {
  return job.calls ?? job.target ?? job.type;
}

const RESOURCES = ['function', 'queue', 'topic', 'bus', 'state_machine'];

/** The same of the runs of a task: the API says it only of jobs. */
export function callsOfTask({ type, target, payload }: Pick<Task, 'type' | 'target' | 'payload'>): string {
  return target ?? place(payload) ?? type;
}

function place({ url, to, ...rest }: Record<string, unknown>): string | null {
  if (typeof rest.service === 'string' && typeof rest.action === 'string') return `${rest.service}:${rest.action}`;
  if (typeof url === 'string') return url.replace(/^[a-z]+:\/\//i, '').replace(/^[^/?#]*@/, '').replace(/[?#].*$/s, '') || null;
  if (Array.isArray(to) && typeof to[0] === 'string') return to[0];
  const found = RESOURCES.map((name) => rest[name]).find((value) => typeof value === 'string');
  return typeof found === 'string' ? nameOf(found) : null;
}

/** The last part of an ARN or of the URL of a queue. */
function nameOf(address: string): string {
  const arn = /^arn:(?:[^:]*:){4}(?:function:|stateMachine:|event-bus\/)?(.+)$/.exec(address)?.[1];
  return arn ?? /^https:\/\/.*\/([^/]+)$/.exec(address)?.[1] ?? address;
}
