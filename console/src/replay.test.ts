import { expect, test } from 'vitest';

import { read } from './exact';
import { toReplay } from './replay';

const JOB = { payload: read('{"order": 12345678901234567890}') as Record<string, unknown> };

test('a replay asks only for what differs from the job as it was', () => {
  const same = { payload: JOB.payload, delay: ' ', keepOrdering: false };
  expect(toReplay(JOB, same)).toEqual({});
  expect(toReplay(JOB, { ...same, delay: ' 5m ' })).toEqual({ delay: '5m' });
  expect(toReplay(JOB, { ...same, payload: { order: 7 }, keepOrdering: true })).toEqual({ payload: { order: 7 }, keep_ordering: true });
});
