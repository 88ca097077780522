import { expect, test } from 'vitest';

import { callsOf } from './calls';

test.each([
  [{ type: 'http', target: null, calls: 'api.example.com/orders' }, 'api.example.com/orders'],
  [{ type: 'log', target: null, calls: null }, 'log'],
  [{ type: 'http', target: 'invoices' }, 'invoices'],
])('%j calls %s', (job, words) => expect(callsOf(job)).toBe(words));
