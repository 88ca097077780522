import { expect, test } from 'vitest';

import { callsOf } from './calls';

const job = (type: string, payload: Record<string, unknown>, more: object = {}) => ({ type, payload, target: null, ...more });

test.each([
  [job('http', { url: 'https://api.example.com/orders/7', method: 'POST' }), 'POST api.example.com/orders/7'],
  [job('http', { url: 'https://ann:secret@example.com:8443/?token=abc#x' }), 'GET example.com:8443'],
  [job('http', { body: 'x' }), 'http'],
  [job('sqs', { queue: 'arn:aws:sqs:eu-west-1:123456789012:orders' }), 'sqs orders'],
  [job('sqs', { queue: 'https://sqs.eu-west-1.amazonaws.com/123456789012/orders' }), 'sqs orders'],
  [job('lambda', { function: 'arn:aws:lambda:eu-west-1:123456789012:function:report' }), 'lambda report'],
  [job('eventbridge', { bus: 'arn:aws:events:eu-west-1:123456789012:event-bus/default' }), 'eventbridge default'],
  [job('email', { to: ['ann@example.com', 'bob@example.com'] }), 'email ann@example.com bob@example.com'],
  [job('email', { to: 'ann@example.com' }), 'email ann@example.com'],
  [job('log', { message: 'x' }), 'log'],
  [job('word_count', { text: 'x' }), 'word_count'],
  [job('http', { body: 'x' }, { target: 'invoices' }), 'invoices'],
  [job('http', { url: 'https://example.com' }, { calls: 'POST example.com/from-the-api' }), 'POST example.com/from-the-api'],
])('%j calls %s', (given, words) => expect(callsOf(given)).toBe(words));

test('a long address is cut', () => {
  const words = callsOf(job('http', { url: `https://example.com/${'a'.repeat(200)}` }));
  expect([words.length, words.endsWith('…')]).toEqual([80, true]);
});
