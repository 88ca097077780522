/** Addresses of the documentation. `/docs` has the pages of this version; VITE_DOCS_URL names another site when the console is built. Pure. */
const SITE = String(import.meta.env.VITE_DOCS_URL ?? '/docs').replace(/\/+$/, '');
/** The codes that have a paragraph in reference/errors.md; tests/test_site.py compares them. */
export const CODES = [
    'validation_failed', 'malformed_json', 'unauthorized', 'forbidden', 'not_found', 'method_not_allowed', 'conflict', 'gone', 'precondition_failed',
    'payload_too_large', 'unsupported_media_type', 'too_many_requests', 'internal_error', 'unavailable', 'unreadable',
];
/** The kinds of failures of attempts, all in one table. */
const KINDS = 'failures-of-attempts';
export const PAGES = ['index', 'get-started/first-job', 'get-started/first-task', 'guides/redrive', 'guides/intake', 'guides/many-at-once', 'guides/python', 'guides/curl', 'reference/targets', 'reference/roles', 'reference/errors'];
export function pageOfDocs(page) {
    return page === 'index' ? `${SITE}/` : `${SITE}/${page}/`;
}
/** The paragraph about an error of the API. Null: the console's own errors, and codes of a newer API, have none. */
export function pageOfError(code) {
    return CODES.includes(code) ? `${pageOfDocs('reference/errors')}#${code}` : null;
}
/** The table of the kinds of failures of attempts. */
export function pageOfFailures() {
    return `${pageOfDocs('reference/errors')}#${KINDS}`;
}
