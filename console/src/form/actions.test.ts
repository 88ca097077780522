import { createElement } from 'react';
import { describe, expect, test } from 'vitest';

import { rendered } from '../rendered';
import { Parameters, Search, TypedPayload } from './action';
import { actionOf, parametersOf, searched, shownOf, takesParameters, type Action } from './actions';
import type { Schema } from './schema';

const action = (name: string, summary = ''): Action => {
  const [service = '', operation = ''] = name.split(':');
  return { name, service, action: operation, summary, documentation: 'https://docs.aws.amazon.com/x', reads_only: false, idempotent: false };
};
const ACTIONS = [action('dynamodb:UpdateItem', 'Edits an item.'), action('ec2:CopyImage', 'Copies an image, which is stored in S3.'), action('s3:CopyObject', 'Copies an object.'), action('s3:DeleteObject')];

const PUT: Schema = {
  type: 'object',
  properties: {
    Item: { type: 'object', description: 'The item.', additionalProperties: { $ref: '#/$defs/AttributeValue' } },
    ReturnValues: { type: 'string', enum: ['NONE', 'ALL_OLD'] },
    TableName: { type: 'string', maxLength: 1_024 },
    Data: { type: 'string', contentEncoding: 'base64' },
    Network: { $ref: '#/$defs/Network' },
    Message: { type: 'string' },
    DryRun: { type: 'boolean' },
  },
  required: ['TableName', 'Item'],
  $defs: {
    AttributeValue: { type: 'object', properties: { S: { type: 'string' }, L: { type: 'array', items: { $ref: '#/$defs/AttributeValue' } } } },
    Network: { type: 'object', properties: { subnets: { type: 'array', items: { type: 'string' } }, publicIp: { type: 'boolean' } }, required: ['subnets'] },
  },
};
const DESCRIBED = { ...action('dynamodb:PutItem'), parameters_schema: PUT as Record<string, unknown> };
const plain = (html: string): string => html.replace(/<[^>]+>/g, '\n').replaceAll('&quot;', '"');
const nothing = (): void => undefined;

describe('the search for an action', () => {
  test.each([
    ['s3 copy', ['s3:CopyObject', 'ec2:CopyImage']],
    ['COPY s3', ['s3:CopyObject', 'ec2:CopyImage']],
    ['s3:copyo', ['s3:CopyObject']],
    ['item', ['dynamodb:UpdateItem']],
    ['lambda', []],
    [' ', ACTIONS.map(({ name }) => name)],
  ])('%s', (text, found) => expect(searched(ACTIONS, text).map(({ name }) => name)).toEqual(found));

  const search = (actions: Action[] | null, name = ''): string => plain(rendered(createElement(Search, { actions, failed: undefined, name, error: 'no', onChoose: nothing })));

  test('a stage that allows none says which option to set', () => {
    expect(search([])).toMatch(/may call no action of AWS\. Operators allow actions by the option\s+allowed_actions/);
    expect(search(null)).not.toContain('may call no action');
  });
  test('the chosen action is shown with its documentation and its error', () => {
    expect(search(ACTIONS, 's3:CopyObject')).toMatch(/s3:CopyObject[^]*no[^]*Copies an object\.[^]*CopyObject in AWS’s reference/);
    expect(search(ACTIONS, 's3:Gone')).toContain('s3:Gone');
  });
});

describe('the action of a payload', () => {
  test('may be the one of the target', () => {
    expect(actionOf({ action: 'CopyObject' }, { service: 's3' })).toEqual({ service: 's3', action: 'CopyObject' });
    expect(actionOf({ service: 's3' }, {})).toBeNull();
  });
  test('has its own form unless the target has a schema of its own', () => {
    expect(takesParameters({ properties: { parameters: { type: 'object', additionalProperties: true } } })).toBe(true);
    expect(takesParameters({ properties: { parameters: { type: 'object', properties: { Key: {} } } } })).toBe(false);
    expect(takesParameters({ properties: { day: { type: 'string' } } })).toBe(false);
  });
});

describe('the form of parameters', () => {
  const fields = parametersOf(PUT);
  const form = (value: Record<string, unknown>, errors = {}): string => plain(rendered(createElement(Parameters, { described: DESCRIBED, value, errors, onChange: nothing, onBroken: nothing })));

  test('has the required ones first, by their names in AWS, with what they consist of', () => {
    expect(fields.map(({ name, widget }) => `${name} ${widget}`)).toEqual(['Item json', 'TableName text', 'ReturnValues choice', 'Data line', 'Network json', 'Message text', 'DryRun switch']);
    expect(fields.find(({ name }) => name === 'Network')?.description).toBe('An object with subnets (required), publicIp.');
    expect(fields.find(({ name }) => name === 'Item')?.description).toBe('The item. An object of objects with S, L.');
    expect(fields.find(({ name }) => name === 'Data')?.description).toBe('Bytes, as base64.');
  });
  test('shows what is required, has a value or was added', () =>
    expect(shownOf(fields, { Message: '' }, ['DryRun']).map(({ name }) => name)).toEqual(['Item', 'TableName', 'Message', 'DryRun']));
  test('shows the values of a job, also a placeholder where values are listed, and offers the others', () => {
    const shown = form({ TableName: 'orders', Item: { id: { S: '7' } }, ReturnValues: '{{job.id}}' });
    expect(shown).toContain('orders');
    expect(shown).toMatch(/"S": "7"/);
    expect(shown).toContain('{{job.id}}');
    expect(shown).toContain('Remove ReturnValues');
    expect(shown).not.toContain('Remove TableName');
    expect(shown).toContain('4 more');
  });
  test('shows an error at its field, and another one below', () => {
    const shown = form({}, { 'payload.parameters.Item.id.S': 'must be a text', 'payload.parameters.Tablename': 'is not a known parameter' });
    expect(shown).toContain('id.S: must be a text');
    expect(shown).toContain('payload.parameters.Tablename: is not a known parameter');
  });
});

test('a job of another type has the form of its payload', () => {
  const props = { schema: { properties: { parameters: { type: 'object' } } }, payload: {}, scope: {}, errors: {}, onChange: nothing, onBroken: nothing };
  expect(plain(rendered(createElement(TypedPayload, { ...props, type: 'other' })))).toContain('Parameters');
  expect(plain(rendered(createElement(TypedPayload, { ...props, schema: { properties: { ...props.schema.properties, action: {} } }, type: 'aws' })))).toContain('Choose an action');
});
