import { describe, expect, test } from 'vitest';

import { fromNotifications, NOBODY, OCCASIONS, toNotifications, withOccasion, type Notifications, type Occasion } from './notifications';

const TOLD: Notifications = {
  emails: ['ann@example.com'], webhooks: [{ url: 'https://hooks.example.com/a', signing_secret: 'hook', format: 'standard' }], receivers: ['ops'], on: ['failure', 'late'], after_failures: 2, digest_seconds: 60,
};

describe('notifications', () => {
  test('is asked for as it was', () => expect(toNotifications(fromNotifications(TOLD))).toEqual(TOLD));

  test('keeps what the form does not show, of all of it and of each webhook', () => {
    const later = { ...TOLD, quiet_hours: '22-6', webhooks: [{ url: 'https://hooks.example.com/a', signing_secret: 'hook', format: 'slack' as const, moon: 'full' }] };
    const draft = fromNotifications(later);
    expect(toNotifications({ ...draft, emails: [] })).toEqual({ ...later, emails: [] });
  });

  test('a webhook without a secret has none in the request', () => {
    const slack = { ...TOLD, webhooks: [{ url: 'https://hooks.example.com/a', signing_secret: null, format: 'slack' as const }] };
    expect(JSON.parse(JSON.stringify(toNotifications(fromNotifications(slack))))).toMatchObject({ webhooks: [{ url: 'https://hooks.example.com/a', format: 'slack' }] });
    expect(JSON.stringify(toNotifications(fromNotifications(slack)))).not.toContain('signing_secret');
  });

  test('is nobody without a receiver, whatever else is set', () => {
    expect(toNotifications(NOBODY)).toBeUndefined();
    expect(toNotifications(fromNotifications(null))).toBeUndefined();
    expect(toNotifications({ ...fromNotifications(TOLD), emails: [], webhooks: [], receivers: [] })).toBeUndefined();
  });

  test('names receivers, or is for the default ones', () => {
    const nobody = { ...TOLD, emails: [], webhooks: [], receivers: [] };
    expect(toNotifications(fromNotifications(nobody))).toEqual(nobody);
    expect(toNotifications({ ...NOBODY, receivers: [' ops '] })).toMatchObject({ receivers: ['ops'] });
  });

  test('has the defaults of the API once somebody is named', () =>
    expect(toNotifications({ ...NOBODY, emails: [' ann@example.com '] })).toEqual({
      emails: ['ann@example.com'], webhooks: [], receivers: [], on: ['failure', 'recovery'], after_failures: 1, digest_seconds: 900,
    }));

  test('leaves it to the API to refuse an empty row, what is no number, and no occasion at all', () =>
    expect(toNotifications({ ...NOBODY, emails: ['', 'x'], on: [], afterFailures: 'some', digest: '' })).toEqual({
      emails: ['', 'x'], webhooks: [], receivers: [], on: [], after_failures: 'some', digest_seconds: undefined,
    }));
});

test('an occasion comes and goes in its place, and an unknown one stays', () => {
  expect(withOccasion(['recovery', 'killed'], 'failure', true)).toEqual(['failure', 'recovery', 'killed']);
  expect(withOccasion(['failure', 'recovery'], 'failure', false)).toEqual(['recovery']);
  expect(withOccasion(['early' as Occasion, 'late'], 'late', true)).toEqual(['late', 'early']);
  expect(Object.keys(OCCASIONS)).toContain('late');
});
