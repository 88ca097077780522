import { expect, test } from 'vitest';
import { ApiError } from '../api/client';
import { errorsOf } from './mended';
const refused = (sent, ...fields) => ({ error: new ApiError(400, 'validation_failed', '', fields.map((field) => ({ field, rule: 'is wrong' }))), sent });
test.each([
    ['a field that was mended', refused({ name: '' }, 'name'), { name: 'Monthly report' }, []],
    ['a field that is as it was', refused({ name: 'x' }, 'name'), { name: 'x', tags: [] }, ['name']],
    ['one of two fields', refused({ name: '', max_attempts: 99 }, 'name', 'max_attempts'), { name: 'x', max_attempts: 99 }, ['max_attempts']],
    ['a required field that is still missing', refused({ payload: {} }, 'payload.url'), { payload: { method: 'GET' } }, ['payload.url']],
    ['a required field that is there now', refused({ payload: {} }, 'payload.url'), { payload: { url: 'https://example.com' } }, []],
    ['an item of a list', refused({ notifications: { emails: ['a', 'b'] } }, 'notifications.emails.1'), { notifications: { emails: ['a', 'b@example.com'] } }, []],
    ['a name with dots', refused({ payload: { headers: { 'X.Order': '\n' } } }, 'payload.headers.X.Order'), { payload: { headers: { 'X.Order': '7' } } }, []],
    ['a part that went', refused({ schedule: { cron: '61 * * * *' } }, 'schedule.cron'), { schedule: null }, []],
])('%s', (_, before, now, left) => expect(Object.keys(errorsOf(before, () => now))).toEqual(left));
test('nothing was refused yet', () => expect(errorsOf(null, () => ({}))).toEqual({}));
