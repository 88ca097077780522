/** What a job calls, in short, and the name of its task: lists show them instead of ids. Pure. */
import type { Job } from './api/client';

/** A job of a list: the API adds these two. Absent: a version that does not. */
export type Listed<T = Job> = T & { calls?: string | null; task_name?: string | null };

type Work = Listed<Pick<Job, 'type' | 'target' | 'payload'>>;

/** The field of the payload that names the resource of a type. */
const RESOURCES: Record<string, string> = { lambda: 'function', sqs: 'queue', sns: 'topic', eventbridge: 'bus', stepfunctions: 'state_machine' };
const LONGEST = 80;

/** `POST api.example.com/orders`, `sqs orders`, a named target, or the type alone. */
export function callsOf(job: Work): string {
  if (job.calls) return job.calls;
  if (job.target !== null) return job.target;
  return short(described(job.type, job.payload));
}

function described(type: string, payload: Record<string, unknown>): string {
  const resource = RESOURCES[type];
  if (type === 'http') return called(text(payload['url']), text(payload['method']) || 'GET');
  if (type === 'email') return ['email', ...[payload['to']].flat().map(text)].join(' ');
  if (resource !== undefined) return `${type} ${lastOf(text(payload[resource]))}`.trim();
  return type;
}

/** Without a user name, a query or a fragment: these may hold what not everybody should see. */
function called(url: string, method: string): string {
  try {
    const { host, pathname } = new URL(url);
    return `${method} ${host}${pathname === '/' ? '' : pathname}`;
  } catch {
    return 'http'; // its target has the address
  }
}

/** The name at the end of an ARN or a URL. */
function lastOf(address: string): string {
  return address.split(/[:/]/).filter(Boolean).at(-1) ?? '';
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function short(words: string): string {
  return words.length <= LONGEST ? words : `${words.slice(0, LONGEST - 1)}…`;
}
