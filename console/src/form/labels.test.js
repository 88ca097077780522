import { expect, test } from 'vitest';
import { labelOf } from './labels';
test.each([
    ['max_attempts', 'Max attempts'],
    ['schedule.cron', 'Cron'],
    ['payload.url', 'URL'],
    ['payload.headers.X-Order', 'Headers.X-Order'],
    ['defaults.url', 'URL'],
    ['notifications.emails.1', 'E-mail address 2'],
    ['notifications.webhooks.0.url', 'Webhook 1'],
    ['notifications.webhooks.0.signing_secret', 'Signing secret of webhook 1'],
    ['moon.phase', 'moon.phase'],
])('the field %s is named %s', (field, label) => expect(labelOf(field)).toBe(label));
