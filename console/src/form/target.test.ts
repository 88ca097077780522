import { expect, test } from 'vitest';

import { asPayload, BLANK, fromTarget, loosened, toTarget, type Target } from './target';

const TARGET = {
  name: 'invoices', kind: 'http', description: null, enabled: false, job_payload_schema: {}, rate: 20, concurrency: null, limit: { key: 'crm', concurrency: 2, rate: null, period: null }, defaults: { url: 'https://example.com', method: 'POST' },
  locked: ['url'], payload_schema: { type: 'object' }, version: 3, created_at: '', created_by: 'a', updated_at: '', updated_by: 'a',
  network: 'public', allow: [],
} satisfies Target;

test('a target that is saved as it was asks for what it was', () =>
  expect(JSON.parse(JSON.stringify(toTarget(fromTarget(TARGET))))).toEqual({
    kind: 'http', enabled: false, defaults: TARGET.defaults, locked: ['url'], payload_schema: { type: 'object' }, rate: 20,
    limit: TARGET.limit,
  }));

test('what is not said is left to the API', () => expect(JSON.parse(JSON.stringify(toTarget(BLANK)))).toEqual({ kind: 'http', enabled: true, defaults: {} }));

test('a private target keeps its hosts and ranges, and another kind has none', () => {
  const draft = fromTarget({ ...TARGET, network: 'private', allow: ['10.0.0.0/16', '*.corp.example.com'] });
  expect(toTarget(draft)).toMatchObject({ network: 'private', allow: ['10.0.0.0/16', '*.corp.example.com'] });
  expect(toTarget({ ...draft, kind: 'sqs' })).not.toHaveProperty('network');
});

test('a lock goes with its default', () => expect(toTarget({ ...BLANK, defaults: { url: 'x' }, locked: ['url', 'method'] }).locked).toEqual(['url']));

test('defaults need not be complete, and their errors stand at their fields', () => {
  expect(loosened({ properties: { url: {} }, required: ['url'] }).required).toEqual([]);
  expect(asPayload({ 'defaults.url': 'is no URL', defaults: 'is too long', rate: 'x' })).toEqual({ 'payload.url': 'is no URL', payload: 'is too long', rate: 'x' });
});
