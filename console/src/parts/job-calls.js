/** What jobs call, for lists that have only their ids. */
import { api, take } from '../api/client';
import { callsOf } from '../calls';
import { useAsked } from './asked';
const calls = new Map();
export function useCalls(jobs) {
    return useAsked(calls, jobs, async ({ id, owner }) => callsOf(await take(api.GET('/api/v1/jobs/{job_id}', { params: { path: { job_id: id }, query: { owner } } }))));
}
