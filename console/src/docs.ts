/** Addresses of the documentation. `/docs` has the pages of this version; VITE_DOCS_URL names another site when the console is built. Pure. */
const SITE = String(import.meta.env.VITE_DOCS_URL ?? '/docs').replace(/\/+$/, '');

/** The codes that have a paragraph in reference/errors.md; tests/test_site.py compares them. */
export const CODES = [
  'validation_failed', 'malformed_json', 'unauthorized', 'forbidden', 'not_found', 'method_not_allowed', 'conflict', 'gone', 'precondition_failed',
  'payload_too_large', 'unsupported_media_type', 'too_many_requests', 'internal_error', 'unavailable', 'unreadable',
] as const;

/** The kinds of failures of attempts, all in one table. */
const KINDS = 'failures-of-attempts';

export const PAGES = ['index', 'get-started/first-job', 'get-started/first-task', 'guides/redrive', 'guides/groups', 'guides/intake', 'guides/keys', 'guides/notifications', 'guides/monitors', 'guides/calendars', 'guides/aws-identity', 'guides/many-at-once', 'guides/python', 'guides/curl', 'reference/targets', 'reference/roles', 'reference/errors'] as const;
export type Page = (typeof PAGES)[number];

export function pageOfDocs(page: Page): string {
  return page === 'index' ? `${SITE}/` : `${SITE}/${page}/`;
}

/** The paragraph about an error of the API. Null: the console's own errors, and codes of a newer API, have none. */
export function pageOfError(code: string): string | null {
  return (CODES as readonly string[]).includes(code) ? `${pageOfDocs('reference/errors')}#${code}` : null;
}

/** What an `aws` job may call. */
export function pageOfActions(): string {
  return `${pageOfDocs('reference/targets')}#any-aws-action`;
}

/** The table of the kinds of failures of attempts. */
export function pageOfFailures(): string {
  return `${pageOfDocs('reference/errors')}#${KINDS}`;
}
