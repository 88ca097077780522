/** Requests as text to copy: a curl command, and a program with the Python package. Pure. */
import type { Schemas, TaskRequest } from './api/client';
import { Exact, writeVisible } from './exact';
import { ofOwner } from './parts/links';

type Fields = Record<string, unknown>;

/** A request that creates or changes a job or a task, and the method of the Python package that sends it. */
export interface Call {
  method: 'POST' | 'PUT';
  /** Below `/api/v1`, percent-encoded. */
  path: string;
  body: Fields;
  python: {
    /** The name of the answer. A result has its task beside what was done. */
    answer: 'job' | 'task' | 'result';
    method: string;
    /** The arguments without a name. */
    given: string[];
    named: Fields;
  };
}

/** A job is created, or the one that has the key is changed. Without an owner it is the caller's. */
export function jobCall(request: Schemas['JobRequest'], owner?: string): Call {
  const { key, ...body } = request as Fields;
  const { delay_seconds: delay, ...rest } = body;
  const named = { ...(key !== undefined && { key }), ...(delay !== undefined && { delay }), ...ownerOf(owner), ...rest };
  const python = { answer: 'job' as const, method: 'jobs.create', given: [], named };
  return key === undefined ? { method: 'POST', path: `/jobs${ofOwner(owner)}`, body, python } : { method: 'PUT', path: `${byKey('/jobs', key)}${ofOwner(owner)}`, body, python };
}

/** A task is created, or the one that has the key is replaced; an `edited` one of another owner by its id. Without an owner it is the caller's. */
export function taskCall(request: TaskRequest, owner?: string, edited?: string): Call {
  const { key, ...body } = request as Fields;
  const python = (method: string, given: string[], named: Fields): Call['python'] => ({ answer: method === 'tasks.put' ? 'result' : 'task', method, given, named });
  if (edited !== undefined && (key === undefined || owner !== undefined)) {
    const whole = request as Fields;
    return { method: 'PUT', path: `/tasks/${edited}${ofOwner(owner)}`, body: whole, python: python('tasks.replace', [edited], { ...ownerOf(owner), ...whole }) };
  }
  const named = { ...ownerOf(owner), ...body };
  if (key !== undefined) return { method: 'PUT', path: `${byKey('/tasks', key)}${ofOwner(owner)}`, body, python: python('tasks.put', [String(key)], named) };
  return { method: 'POST', path: `/tasks${ofOwner(owner)}`, body, python: python('tasks.create', [], named) };
}

function ownerOf(owner: string | undefined): { owner?: string } {
  return owner === undefined ? {} : { owner };
}

function byKey(list: string, key: unknown): string {
  return `${list}/by-key/${encodeURIComponent(String(key))}`;
}

/** The command, for a POSIX shell. It reads the token from PUNCTUAL_TOKEN. */
export function curlOf(origin: string, { method, path, body }: Pick<Call, 'method' | 'path' | 'body'>): string {
  return [
    `curl -sS --fail-with-body -X ${method} ${shell(`${origin}/api/v1${path}`)}`,
    '-H "Authorization: Bearer $PUNCTUAL_TOKEN"',
    "-H 'Content-Type: application/json'",
    `-d ${shell(writeVisible(body, 2))}`,
  ].join(' \\\n  ') + '\n';
}

function shell(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/**
 * The program. The package reads the token or API key from PUNCTUAL_TOKEN.
 * On the local stack it reads the address, too: Python does not find the console's name, which browsers take for this machine.
 */
export function pythonOf(origin: string, { python: { answer, method, given, named } }: Call): string {
  const args = [...given.map((each) => literal(each, 8)), ...Object.entries(named).map(([name, value]) => `${name}=${literal(value, 8)}`)];
  return [
    'from punctual import Punctual',
    '',
    new URL(origin).hostname.endsWith('.localhost')
      ? 'with Punctual() as client:  # reads PUNCTUAL_URL and PUNCTUAL_TOKEN, or a profile'
      : `with Punctual(${literal(origin, 0)}) as client:  # reads PUNCTUAL_TOKEN`,
    `    ${answer} = client.${method}(`,
    ...args.map((each) => `        ${each},`),
    '    )',
    `    print(${answer === 'result' ? 'result.task' : answer}.id)`,
    '',
  ].join('\n');
}

const WIDTH = 88;

/** JSON as Python writes it, broken over lines if it is too long for one. */
function literal(value: unknown, indent: number): string {
  if (value === null || value === undefined) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (typeof value !== 'object' || value instanceof Exact) return writeVisible(value);
  const [open, close] = Array.isArray(value) ? '[]' : '{}';
  const parts = (deeper: number): string[] =>
    Array.isArray(value) ? value.map((each) => literal(each, deeper)) : Object.entries(value).map(([name, each]) => `${writeVisible(name)}: ${literal(each, deeper)}`);
  const line = `${open}${parts(0).join(', ')}${close}`;
  if (line.length + indent < WIDTH && !line.includes('\n')) return line;
  const pad = ' '.repeat(indent + 4);
  return [open, ...parts(indent + 4).map((part) => `${pad}${part},`), `${' '.repeat(indent)}${close}`].join('\n');
}
