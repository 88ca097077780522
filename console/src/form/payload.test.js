import { createElement } from 'react';
import { expect, test } from 'vitest';
import { rendered } from '../rendered';
import { PayloadForm } from './payload';
const HTTP = {
    properties: { url: { type: 'string' }, method: { type: 'string', enum: ['GET', 'POST'], default: 'GET', description: 'The HTTP method. If it is absent: POST with a body, else GET.' }, body: {} },
    required: ['url'],
};
function form(payload) {
    return rendered(createElement(PayloadForm, { schema: HTTP, payload, errors: {}, onChange: () => undefined, onBroken: () => undefined })).replace(/<[^>]+>/g, '\n');
}
test('the choice of the method says what other ways to call a URL send', () => expect(form({})).toContain('The HTTP method. If it is absent: POST with a body, else GET. The command line and the Python client send POST if they are given only a URL.'));
test('the shown method is the one that is sent', () => {
    expect(form({ url: 'https://example.com' })).toMatch(/\nGET\n/);
    expect(form({ url: 'https://example.com', body: { a: 1 } })).toMatch(/\nPOST\n/);
    expect(form({ url: 'https://example.com', body: { a: 1 }, method: 'GET' })).toMatch(/\nGET\n/);
});
test('the switch to JSON says what it does', () => expect(form({})).toContain('Write the payload as the API takes it, instead of in fields'));
