import { createElement } from 'react';
import { expect, test } from 'vitest';
import { rendered } from '../rendered';
import { JobTable } from './job-table';
const ID = '01ARZ3NDEKTSV4RRFFQ69G5FAV';
const JOB = {
    id: ID, type: 'http', target: null, status: 'succeeded', late: false, scheduled_at: '2026-11-28T08:00:00.000Z', started_at: '2026-11-28T08:00:31.000Z',
    completed_at: '2026-11-28T08:00:31.400Z', failed_at: null, killed_at: null, cancelled_at: null, skipped_at: null, start_delay_ms: 200, attempts: [], task_id: null,
};
test('a list does not show the delay of the first start as that of a retry', () => {
    const page = rendered(createElement(JobTable, { jobs: [JOB], columns: ['started', 'delay'] }));
    expect(page).toContain('first start<br/>200 ms late');
});
