/** The API: one typed client, one kind of error, a new token when the old one has expired. */
import createClient from 'openapi-fetch';

import { readAnswer, write } from '../exact';
import type { components, paths } from './schema';
import { end, goOn, refused, session } from './session';

export type Schemas = components['schemas'];
export type Job = Schemas['Job'];
export type Task = Schemas['Task'];
export type ListedTask = Schemas['ListedTask'];
export type TaskType = Schemas['TaskType'];
export type Run = Schemas['Run'];
export type TaskRequest = Schemas['TaskRequest'];
export type ScheduleRequest = Schemas['ScheduleRequest'];

export interface Violation {
  field: string;
  rule: string;
}

/** The API said no, or nothing (`status` 0). */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly details: Violation[] = [],
    readonly requestId: string | null = null,
  ) {
    super(message);
  }
}

/** Nobody is signed in yet: a 401 there is the answer, and no reason to renew a token. */
const OPEN = ['/auth/login', '/auth/challenge', '/auth/sso'];

/** `over`: only another sign-in helps. A Response: the API cannot renew the token now, and the session goes on. */
type Renewal = 'renewed' | 'over' | Response;

let renewing: Promise<Renewal> | null = null;

/** One refresh at a time, however many calls found the token expired. */
function renew(): Promise<Renewal> {
  renewing ??= refreshed().finally(() => {
    renewing = null;
  });
  return renewing;
}

async function refreshed(): Promise<Renewal> {
  if (session() === null) return 'over';
  const answer = await fetch('/api/v1/auth/refresh', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{}',
  });
  if (answer.status === 429 || answer.status >= 500) return answer;
  if (!answer.ok) return 'over';
  const { data } = (await answer.json()) as { data: Schemas['RefreshedSession'] };
  goOn({ token: data.token });
  return 'renewed';
}

async function send(request: Request): Promise<Response> {
  const open = OPEN.some((path) => request.url.endsWith(path));
  const again = request.clone();
  const first = await fetch(authorized(request, open));
  if (first.ok && request.url.endsWith('/auth/password')) await goOnAfterPassword(first.clone());
  if (first.status !== 401 || open) return first;
  const renewal = await renew();
  if (renewal instanceof Response) return renewal.clone(); // each call that waited reads its own
  if (renewal === 'renewed') {
    const second = await fetch(authorized(again, open));
    if (second.status !== 401) return second;
  }
  end('expired');
  return first;
}

/** A changed password ended all sessions; the answer has the token of a new one. */
async function goOnAfterPassword(answer: Response): Promise<void> {
  const { data } = (await answer.json()) as { data: Schemas['Confirmation'] };
  if (data.token !== null) goOn({ token: data.token });
}

function authorized(request: Request, open: boolean): Request {
  const token = session()?.token;
  if (!open && token !== undefined) request.headers.set('authorization', `Bearer ${token}`);
  return request;
}

/** The answer with the numbers of users as they are written. With its length it is read by `json`, and not by JSON.parse. */
async function exactly(request: Request): Promise<Response> {
  const answer = await send(request);
  if (answer.status === 403 && !request.url.endsWith('/me')) refused();
  const text = await answer.text();
  const headers = new Headers(answer.headers);
  headers.set('content-length', String(text.length));
  const read = new Response(text === '' ? null : text, { status: answer.status, statusText: answer.statusText, headers });
  return Object.assign(read, { json: () => Promise.resolve(readAnswer(text)) });
}

export const api = createClient<paths>({ baseUrl: '', fetch: exactly, bodySerializer: (body: unknown) => write(body) });

interface Answered<T> {
  data?: { success: true; data: T } | undefined;
  error?: unknown;
  response: Response;
}

/** The `data` of an answer. Throws ApiError for everything else. */
export async function take<T>(call: Promise<Answered<T>>): Promise<T> {
  let answered: Answered<T>;
  try {
    answered = await call;
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw new ApiError(0, 'no_answer', 'The server does not answer. Check your network connection.');
  }
  if (answered.data !== undefined) return answered.data.data;
  throw refusal(answered.response.status, answered.error);
}

/** What an answer that is no success says; it may be of the gateway and not of the API. */
export function refusal(status: number, body: unknown): ApiError {
  const error = (body as { error?: Partial<Schemas['ErrorObject']> } | undefined)?.error;
  if (error?.message === undefined) {
    const words = status === 401 ? 'Your session has expired.' : `The server answered ${status}.`;
    return new ApiError(status, 'unexpected_answer', words);
  }
  return new ApiError(status, error.code ?? 'unknown', error.message, error.details ?? [], error.request_id ?? null);
}

/** Any error as one of the API's. */
export function apiError(error: unknown): ApiError {
  return error instanceof ApiError ? error : new ApiError(0, 'unexpected', String(error));
}
