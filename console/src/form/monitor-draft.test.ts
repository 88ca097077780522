import { expect, test } from 'vitest';

import { datesIn, runsOut } from './calendar-dates';
import { blank, fromMonitor, listed, settled, toRequest, withName, type Monitor } from './monitor-draft';

const HOOK = { url: 'https://example.com', signing_secret: 'hook', format: 'standard' };
const MONITOR = {
  key: 'backup', name: 'Backup', schedule: { cron: '30 2 * * *', time_zone: 'Europe/Berlin' }, period_seconds: null, grace_seconds: 600, max_duration_seconds: 7_200,
  notifications: { emails: ['ann@example.com'], webhooks: [HOOK], receivers: ['ops'] },
} as unknown as Monitor;

test('a monitor that is stored again unchanged is the same', () => {
  const body = { name: 'Backup', schedule: MONITOR.schedule, grace_seconds: 600, max_duration_seconds: 7_200, notifications: { emails: ['ann@example.com'], receivers: ['ops'], webhooks: [HOOK] } };
  expect(toRequest(fromMonitor(MONITOR, 'UTC'), MONITOR)).toEqual(body);
});

test('a schedule that the form cannot show stays as it is', () => {
  const monitor = { ...MONITOR, schedule: { every: '2 weeks', times: '09:00', start: '2026-12-06T23:00:00Z' } } as Monitor;
  const draft = fromMonitor(monitor, 'UTC');
  expect(draft.rhythm).toBe('kept');
  expect(toRequest(draft, monitor)).toMatchObject({ schedule: monitor.schedule });
  expect(toRequest({ ...draft, rhythm: 'period' }, monitor)).toMatchObject({ period_seconds: 3_600 });
});

test('a new monitor has a period and notifies the default receivers, if there are any', () => {
  const body = { name: 'Sync', period_seconds: 3_600, grace_seconds: 300, max_duration_seconds: 3_600 };
  const draft = { ...blank('UTC'), name: ' Sync ' };
  expect(toRequest(settled(draft, ['ops']), null)).toEqual({ ...body, notifications: {} });
  for (const none of [null, []]) expect(toRequest(settled(draft, none), null), 'the API refuses default receivers that are not there').toEqual(body);
  expect(toRequest(settled({ ...draft, byDefault: false }, ['ops']), null)).toEqual(body);
});

test('nobody named and the default receivers wanted is an empty object, and comes back', () => {
  const body = toRequest({ ...blank('UTC'), name: 'Sync', byDefault: true }, null);
  expect(body.notifications).toEqual({});
  const stored = { ...MONITOR, notifications: { emails: [], webhooks: [], receivers: [] } } as unknown as Monitor;
  expect(fromMonitor(stored, 'UTC').byDefault).toBe(true);
  expect(toRequest({ ...fromMonitor(stored, 'UTC'), emails: 'ann@example.com' }, stored).notifications).toMatchObject({ emails: ['ann@example.com'] });
  expect(fromMonitor({ ...MONITOR, notifications: null }, 'UTC').byDefault).toBe(false);
});

test('the key of a new monitor follows its name until it is typed', () => {
  const named = withName(withName(blank('UTC'), 'Nightly', null), 'Nightly backup (DB)', null);
  expect(named.key).toBe('nightly-backup-db');
  expect(withName({ ...named, key: 'backup' }, 'Other', null)).toMatchObject({ name: 'Other', key: 'backup' });
  expect(withName(fromMonitor(MONITOR, 'UTC'), 'Other', MONITOR).key).toBe('backup');
});

test('lists and dates are read as they are typed', () => {
  expect(listed(' a, ,b ')).toEqual(['a', 'b']);
  expect(datesIn('2027-12-24, 2027-12-25\n\n2027-12-26;')).toEqual(['2027-12-24', '2027-12-25', '2027-12-26']);
  expect(datesIn(' ')).toEqual([]);
});

test('a calendar runs out two months before its end', () => {
  const now = Date.parse('2026-12-01T00:00:00Z');
  expect(runsOut('2026-12-31', now)).toBe(true);
  expect(runsOut('2027-12-31', now)).toBe(false);
});
