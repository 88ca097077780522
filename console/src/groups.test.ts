import { describe, expect, test } from 'vitest';

import { ALL, cancelInWords, endInWords, filled, FILTERS, filterInWords, lookOf, paceOf, placeInWords, progressInWords, sealInWords, stateInWords, unstartedInWords, type Counts, type Group } from './groups';

const AT = '2026-11-30T08:00:00.000Z';
const NONE: Counts = { unfinished: 0, succeeded: 0, failed: 0, killed: 0, cancelled: 0, skipped: 0 };
const CALL: Group['callbacks'] = [{ kind: 'on_complete', type: 'http', job_id: null }];

test.each([
  [{ state: 'open', succeeded_at: null, cancelled_at: null }, 'Open', 'pending'],
  [{ state: 'sealed', succeeded_at: null, cancelled_at: null }, 'Sealed', 'in-progress'],
  [{ state: 'sealed', succeeded_at: null, cancelled_at: AT }, 'Sealed, cancelled', 'in-progress'],
  [{ state: 'ended', succeeded_at: AT, cancelled_at: null }, 'Ended', 'success'],
  [{ state: 'ended', succeeded_at: null, cancelled_at: null }, 'Ended', 'error'],
  [{ state: 'ended', succeeded_at: null, cancelled_at: AT }, 'Ended, cancelled', 'stopped'],
  [{ state: 'abandoned', succeeded_at: null, cancelled_at: null }, 'Abandoned', 'warning'],
] as const)('the state %j is shown as %s with the look %s', (group, words, look) => expect([stateInWords(group), lookOf(group).type]).toEqual([words, look]));

describe('the progress in words', () => {
  const group = (jobs: number, counts: Partial<Counts> | null, ended = false, succeeded = false) => ({
    jobs, counts: counts === null ? null : { ...NONE, ...counts }, ended_at: ended ? AT : null, succeeded_at: succeeded ? AT : null,
  });
  test.each([
    [group(0, {}), 'No jobs'],
    [group(50, { succeeded: 35, failed: 2, unfinished: 13 }), '37 of 50 ended, 2 failed'],
    [group(4, { failed: 1, killed: 1, cancelled: 1, skipped: 1 }, true), '4 of 4 ended, 1 failed, 1 killed, 1 cancelled, 1 skipped'],
    [group(2, { succeeded: 2 }), '2 of 2 ended'], // an open group
    [group(2_000, { succeeded: 2_000 }, true, true), 'All 2,000 jobs succeeded'],
    [group(1, { succeeded: 1 }, true, true), '1 job, succeeded'],
    [group(120, null), '120 jobs'],
    [group(120, null, true), 'All 120 jobs ended, not all succeeded'],
    [group(120, null, true, true), 'All 120 jobs succeeded'],
  ])('%j', (given, words) => expect(progressInWords(given)).toBe(words));

  test('each number has its word', () => {
    expect(endInWords('failed', { ...NONE, failed: 1_200 })).toBe('1,200 failed');
    expect(endInWords('unfinished', { ...NONE, unfinished: 3 })).toBe('3 not ended');
  });
});

test.each([
  ['on_complete', 'open', 'Has not started'],
  ['on_success', 'sealed', 'Has not started'],
  ['on_success', 'ended', 'Starts when the other jobs have run again and succeeded'],
  ['on_failure', 'ended', 'Does not start: all jobs succeeded'],
  ['on_failure', 'abandoned', 'Does not start: the group was abandoned'],
] as const)('a call-back %s of a group that is %s has no job: %s', (kind, state, words) => expect(unstartedInWords(kind, state)).toBe(words));

test('a job is a member with a number, or a call-back', () => {
  expect(placeInWords({ group_member: 0 })).toBe('Number 0, counted from 0');
  expect(placeInWords({ group_member: null })).toBe('This job is a call-back of the group');
});

describe('the questions say what follows', () => {
  test.each([
    [3, CALL, 'No other job can join. The group ends once all its jobs have ended, and the call-backs start whose condition is met.'],
    [3, [], 'No other job can join. The group ends once all its jobs have ended.'],
    [0, CALL, 'No other job can join. All its jobs have ended, so the group ends now, and the call-backs start whose condition is met.'],
  ])('before it is sealed, %i jobs not ended, call-backs %j', (unfinished, callbacks, words) => expect(sealInWords({ counts: { ...NONE, unfinished }, callbacks })).toBe(words));

  test.each([
    [1, /^1 job has not ended\. Those that have not started are cancelled/],
    [1_200, /^1,200 jobs have not ended\./],
    [0, /^No other job can join\. All its jobs have ended/],
  ])('before it is cancelled, %i jobs not ended', (unfinished, words) => expect(cancelInWords({ counts: { ...NONE, unfinished }, callbacks: [] })).toMatch(words));
});

test('each end has one filter, which says how many jobs it finds', () => {
  const { unfinished: _, ...ends } = NONE;
  expect(FILTERS.flatMap((each) => each.ends).sort()).toEqual(Object.keys(ends).sort());
  const group = { jobs: 2_000, counts: { ...NONE, failed: 2, killed: 1, succeeded: 1_500 } };
  expect(filterInWords(ALL, group)).toBe('All (2,000)');
  expect(FILTERS.slice(1).map((each) => filterInWords(each, group))).toEqual(['Failed or killed (3)', 'Cancelled or skipped (0)', 'Succeeded (1,500)']);
});

test.each([
  [null, 2_000],
  [{ state: 'open', jobs: 3, counts: NONE }, 2_000],
  [{ state: 'sealed', jobs: 100_000, counts: NONE }, 50_000],
  [{ state: 'ended', jobs: 100_000, counts: NONE }, 10_000],
  [{ state: 'abandoned', jobs: 3, counts: { ...NONE, unfinished: 1 } }, 2_000],
  [{ state: 'abandoned', jobs: 3, counts: NONE }, 10_000],
] as const)('the next look at %j is after %i ms', (group, wait) => expect(paceOf(group)).toBe(wait));

describe('a page is filled from short pages of the API', () => {
  /** An API of pages of at most `size`; the cursor is the number of the page. */
  const pages = (found: readonly (readonly number[])[]) => {
    const asked: [number, string | undefined][] = [];
    const ask = async (limit: number, cursor: string | undefined) => {
      asked.push([limit, cursor]);
      const page = Number(cursor ?? 0);
      return { items: [...(found[page] ?? [])], cursor: page + 1 < found.length ? String(page + 1) : null };
    };
    return { asked, ask };
  };

  test('until it is full', async () => {
    const { asked, ask } = pages([[1], [], [2, 3], [4]]);
    expect(await filled(3, undefined, ask)).toEqual({ items: [1, 2, 3], cursor: '3' });
    expect(asked).toEqual([[3, undefined], [2, '1'], [2, '2']]);
  });

  test('until the last one', async () => expect(await filled(3, '1', pages([[1], [2]]).ask)).toEqual({ items: [2], cursor: null }));

  test('or until it has read ten', async () => {
    const { asked, ask } = pages(Array.from({ length: 20 }, () => []));
    expect(await filled(3, undefined, ask)).toEqual({ items: [], cursor: '10' });
    expect(asked.length).toBe(10);
  });
});
