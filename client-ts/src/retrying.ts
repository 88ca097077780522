/** Repeats of failed requests: which ones, and when. */

const BASE_SECONDS = 0.25;
const CAP_SECONDS = 10;
const REPEATED = new Set([429, 502, 503, 504]);
const NEVER_SENT = new Set([
  'EAI_AGAIN',
  'ECONNREFUSED',
  'EHOSTDOWN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'UND_ERR_CONNECT_TIMEOUT',
]);

/**
 * Whether a request may be sent again after this status.
 *
 * A 429 changed nothing: every request may be repeated. After a 502, 503 or 504 the change may have been applied: only an
 * idempotent request is repeated.
 */
export function isRepeated(status: number, idempotent: boolean): boolean {
  return status === 429 || (idempotent && REPEATED.has(status));
}

/** Whether a request never left this machine, so that it may be repeated. `error` is what `fetch` threw. */
export function wasNeverSent(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error && 'code' in cause && NEVER_SENT.has(String(cause.code));
}

/** The seconds to wait after the failed `attempt` (from 1): full jitter, and at least what `Retry-After` asks for. */
export function pause(attempt: number, chance: number, requested: number | undefined): number {
  return (requested ?? 0) + chance * Math.min(CAP_SECONDS, BASE_SECONDS * 2 ** (attempt - 1));
}

/** The seconds that an answer asks to wait, by its header `Retry-After`: seconds, or a date. `now` is in milliseconds. */
export function retryAfter(header: string | null, now: number): number | undefined {
  const text = header?.trim() ?? '';
  if (/^\d+$/.test(text)) return Number(text.slice(0, 30));
  if (!/^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/.test(text)) return undefined;
  const moment = Date.parse(text);
  return Number.isNaN(moment) ? undefined : Math.max(0, (moment - now) / 1000);
}
