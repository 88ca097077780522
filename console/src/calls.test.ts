import { expect, test } from 'vitest';

import { callsOf, callsOfTask } from './calls';

test.each([
  [{ type: 'http', target: null, calls: 'api.example.com/orders' }, 'api.example.com/orders'],
  [{ type: 'log', target: null, calls: null }, 'log'],
  [{ type: 'http', target: 'invoices' }, 'invoices'],
])('%j calls %s', (job, words) => expect(callsOf(job)).toBe(words));

test.each([
  [{ type: 'http', payload: { url: 'https://user:pw@api.example.com:8443/orders/7?token=x#y' } }, 'api.example.com:8443/orders/7'],
  [{ type: 'http', payload: { url: 'https://example.com' } }, 'example.com'],
  [{ type: 'http', payload: { url: 'no address' } }, 'no address'],
  [{ type: 'lambda', payload: { function: 'arn:aws:lambda:eu-west-1:123456789012:function:orders:live' } }, 'orders:live'],
  [{ type: 'sqs', payload: { queue: 'arn:aws:sqs:eu-west-1:123456789012:orders.fifo' } }, 'orders.fifo'],
  [{ type: 'sqs', payload: { queue: 'https://sqs.eu-west-1.amazonaws.com/123456789012/orders' } }, 'orders'],
  [{ type: 'sns', payload: { topic: 'arn:aws:sns:eu-west-1:123456789012:news' } }, 'news'],
  [{ type: 'aws', payload: { service: 's3', action: 'CopyObject', parameters: {} } }, 's3:CopyObject'],
  [{ type: 'stepfunctions', payload: { state_machine: 'arn:aws:states:eu-west-1:123456789012:stateMachine:nightly' } }, 'nightly'],
  [{ type: 'eventbridge', payload: { bus: 'arn:aws:events:eu-west-1:123456789012:event-bus/orders' } }, 'orders'],
  [{ type: 'email', payload: { to: ['ann@example.com', 'bob@example.com'] } }, 'ann@example.com'],
  [{ type: 'log', payload: { message: 'hello' } }, 'log'],
  [{ type: 'gone', payload: {} }, 'gone'],
])('a task %j calls %s', (task, words) => expect(callsOfTask({ target: null, ...task })).toBe(words));

test('a task of a named target calls the target', () => expect(callsOfTask({ type: 'http', target: 'invoices', payload: { url: 'https://example.com/a' } })).toBe('invoices'));
