/** What is wrong now: the answer of `GET /status`, and what mends a problem. */
import { api, take } from './client';
/** Of one's own jobs and tasks, or of everybody's. Throws ApiError. */
export async function readStatus(scope) {
    return take(api.GET('/api/v1/status', { params: { query: { scope } } }));
}
/** Call what mends a problem. Throws ApiError. */
export async function mend(remedy) {
    const path = remedy.path.startsWith('/api/v1/') ? remedy.path : `/api/v1${remedy.path}`; // of this origin in any case
    const request = api.request; // the types know no path of an answer
    await take(request(remedy.method.toLowerCase(), path, { params: {}, ...(remedy.body !== null && { body: remedy.body }) }));
}
