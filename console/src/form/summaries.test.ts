import { expect, test } from 'vitest';

import { empty } from './draft';
import { NOBODY } from './notifications';
import { alerts, authentication, bounds, callback, days, headers, labels, missed, notifications, order, retries } from './summaries';

const DRAFT = empty('UTC');

test('a new form has nothing set in its folded parts but the defaults', () => {
  expect([authentication({}), headers({}), order(DRAFT), callback(DRAFT), notifications(DRAFT), bounds(DRAFT), days(DRAFT), labels(DRAFT)]).toEqual(Array(8).fill('None'));
  expect([retries(DRAFT), missed(DRAFT)]).toEqual(['Waits from 1 s to 15 min', 'The latest runs']);
});

test.each([
  [authentication({ bearer_secret: 'api', signing_secret: 'hook' }), 'Bearer token, signed'],
  [authentication({ basic_user: 'ann', header_secrets: { 'X-Key': 'a', 'X-Other': 'b' } }), 'Basic authentication, 2 headers from secrets'],
  [headers({ headers: { 'X-Order': '7' } }), 'X-Order'],
  [retries({ ...DRAFT, maxAttempts: '1' }), 'None: a single attempt'],
  [retries({ ...DRAFT, retryElapsed: '3600', retryOnTimeout: false }), 'Waits from 1 s to 15 min, stops after 1 h, not after a time-out'],
  [retries({ ...DRAFT, retryBase: 'x', retryCap: '' }), 'Waits from x s to ? s'],
  [order({ ...DRAFT, orderingKey: 'meter-7', onFailure: 'pause' }), 'Key meter-7, pauses after a failure'],
  [order({ ...DRAFT, limitKey: 'crm', limitAtOnce: '2', limitRate: '10', limitPeriod: '1m' }), 'Limit of crm: 2 at once and 10 per 1m'],
  [callback({ ...DRAFT, callback: true }), 'A heartbeat within 5 min, 1 d in all'],
  [notifications({ notifications: { ...NOBODY, emails: ['ann@example.com'] }, events: true }), '1 receiver on failure, recovery, an event when it ends'],
  [missed({ ...DRAFT, misfire: 'run_all', maxCatchUp: '5' }), 'All run, at most 5'],
  [alerts(DRAFT), 'The default ones'],
  [alerts({ ...DRAFT, alerts: { ...DRAFT.alerts, none: true } }), 'None'],
  [alerts({ ...DRAFT, alerts: { ...DRAFT.alerts, lateAfter: '60', doneBy: '07:00', missed: true } }), 'Late after 1 min, done by 07:00, missed runs'],
  [bounds({ ...DRAFT, end: '2027-01-01T00:00:00Z', jitter: '30' }), 'An end, jitter of 30 s'],
  [days({ ...DRAFT, only: 'school', workingDays: 'MON' }), 'Only on school, working days MON'],
  [labels({ key: 'k', tags: ['a', 'b'], description: 'x' }), 'A description, key k, tags a, b'],
])('%s', (summary, words) => expect(summary).toBe(words));
