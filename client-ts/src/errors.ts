/** The errors of this package. All of them are a `PunctualError`. */
import type { components } from './schema.js';

/** One field of a request that breaks a rule: `field` is its path, such as `payload.url`; `rule` says what is allowed. */
export type FieldError = components['schemas']['Violation'];

const KEY_SECRET = /(punctual_[a-z2-7]{16}_)[A-Za-z0-9_]+/g; // also of a key that was cut or mistyped

/** A text with each API key in it shortened to its public part, its id. */
export function withoutKeys(text: string): string {
  return text.replace(KEY_SECRET, '$1…');
}

/** The base of all errors of this package. No message contains an API key. */
export class PunctualError extends Error {
  override name = 'PunctualError';

  constructor(message: string, options?: ErrorOptions) {
    super(withoutKeys(message), options);
  }
}

/** There is no address, or the credentials can be none. The message says how to specify them. */
export class NotConfigured extends PunctualError {
  override name = 'NotConfigured';
}

/** An argument breaks a rule, so that nothing was sent. The message names it and the rule. */
export class InvalidArgument extends PunctualError {
  override name = 'InvalidArgument';
}

/** The API did not answer, after all repeats: no connection, or a broken one. A request that changes something may have been applied. */
export class NoAnswer extends PunctualError {
  override name = 'NoAnswer';
}

/** The answer is not one of this API: probably another server, or another path, is at this address. */
export class UnexpectedAnswer extends PunctualError {
  override name = 'UnexpectedAnswer';
}

/** A job has not ended within the time that the caller waits. */
export class WaitTimeout extends PunctualError {
  override name = 'WaitTimeout';
}

/** A request was not signed with the secret, its body was changed, or it is too old. Answer it with 401 and do nothing. */
export class InvalidSignature extends PunctualError {
  override name = 'InvalidSignature';
}

/** What an answer says about an error. */
export interface Refusal {
  /** The HTTP status. */
  readonly status: number;
  /** The API's name of the error, such as `validation_failed`. */
  readonly code: string;
  readonly message: string;
  /** All fields that break a rule. */
  readonly details?: readonly FieldError[];
  /** Finds the request in the logs; empty if API Gateway refused it. */
  readonly requestId?: string;
  /** The wait in seconds that the API requests. */
  readonly retryAfter?: number | undefined;
}

/** The API refused a request. `reason` is its message alone; `message` has the status, the code and the fields, too. */
export class ApiError extends PunctualError {
  override name = 'ApiError';
  readonly status: number;
  readonly code: string;
  readonly reason: string;
  readonly details: readonly FieldError[];
  readonly requestId: string;
  readonly retryAfter: number | undefined;

  constructor(refusal: Refusal) {
    const { status, code, message, details = [], requestId = '', retryAfter } = refusal;
    super(`${status} ${code}: ${message}${details.map(({ field, rule }) => `\n  ${field}: ${rule}`).join('')}`);
    this.status = status;
    this.code = code;
    this.reason = withoutKeys(message);
    this.details = details.map(({ field, rule }) => ({ field: withoutKeys(field), rule: withoutKeys(rule) }));
    this.requestId = requestId;
    this.retryAfter = retryAfter;
  }
}

/** The request breaks a rule; `details` has the fields. Statuses 400, 405, 413, 415 and 422. A repeat fails in the same way. */
export class InvalidRequest extends ApiError {
  override name = 'InvalidRequest';
}

/** The API accepts no credential of this client, or the sign-in failed. Status 401. */
export class NotAuthenticated extends ApiError {
  override name = 'NotAuthenticated';
}

/** The role or the scopes of the credential do not allow the request, or the account is disabled. Status 403. */
export class NotAllowed extends ApiError {
  override name = 'NotAllowed';
}

/** There is no such object among those of this owner, or an output has expired. Statuses 404 and 410. */
export class NotFound extends ApiError {
  override name = 'NotFound';
}

/** The object is in another state than the request needs, or was changed since. Statuses 409 and 412. */
export class Conflict extends ApiError {
  override name = 'Conflict';
}

/** Too many requests, after all repeats. Status 429. Nothing was changed. */
export class Throttled extends ApiError {
  override name = 'Throttled';
}

/** A quota of the owner is used up, or too many sign-ins failed. `retryAfter` says when to try again. Status 429. */
export class QuotaExceeded extends Throttled {
  override name = 'QuotaExceeded';
}

/** The API cannot answer now, after all repeats. Statuses of 500 and more. A change may or may not have been applied. */
export class Unavailable extends ApiError {
  override name = 'Unavailable';
}

const BY_STATUS: Readonly<Record<number, new (refusal: Refusal) => ApiError>> = {
  400: InvalidRequest,
  401: NotAuthenticated,
  403: NotAllowed,
  404: NotFound,
  405: InvalidRequest,
  409: Conflict,
  410: NotFound,
  412: Conflict,
  413: InvalidRequest,
  415: InvalidRequest,
  422: InvalidRequest,
};

const CODES: Readonly<Record<number, string>> = { 401: 'unauthorized', 403: 'forbidden', 404: 'not_found', 429: 'too_many_requests' };

/** The error for an answer with an error status. `body` is the parsed JSON, or the text if it is none. */
export function fromAnswer(status: number, body: unknown, retryAfter?: number): ApiError {
  const code = CODES[status] ?? 'unexpected_answer';
  const error = isRecord(body) ? body['error'] : undefined;
  if (!isRecord(error)) {
    // API Gateway: {"message": ...}
    const text = isRecord(body) ? (body['message'] ?? error) : body;
    const message = typeof text === 'string' && text !== '' ? text.slice(0, 500) : 'no reason given';
    return new (kind(status, false))({ status, code, message, retryAfter });
  }
  const listed = Array.isArray(error['details']) ? error['details'].filter(isRecord) : [];
  return new (kind(status, true))({
    status,
    code: String(error['code'] ?? code),
    message: String(error['message'] ?? ''),
    details: listed.map((one) => ({ field: String(one['field'] ?? ''), rule: String(one['rule'] ?? '') })),
    requestId: String(error['request_id'] ?? ''),
    retryAfter,
  });
}

function kind(status: number, enveloped: boolean): new (refusal: Refusal) => ApiError {
  if (status === 429) return enveloped ? QuotaExceeded : Throttled;
  return status >= 500 ? Unavailable : (BY_STATUS[status] ?? ApiError);
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
