/** A field of the API that the forms and pages of jobs and tasks do not show is named here, unless it is left out on purpose. */
import { readFileSync } from 'node:fs';
import { createElement, Fragment } from 'react';
import { expect, test } from 'vitest';
import { NEW_WORK } from './form/draft';
import { CallBacks, details, Labels, MaxAttempts, Order, Retries, Telling, TimeOut, What } from './form/fields';
import { NOBODY } from './form/notifications';
import { rendered } from './rendered';
const SCHEMAS = JSON.parse(readFileSync('../docs/reference/openapi.json', 'utf8')).components.schemas;
/** The names of all fields of a schema, over its alternatives. */
function names(part) {
    const target = part.$ref === undefined ? [] : names(SCHEMAS[part.$ref.split('/').at(-1) ?? ''] ?? {});
    const parts = [...(part.allOf ?? []), ...(part.anyOf ?? []), ...(part.oneOf ?? [])];
    return [...new Set([...Object.keys(part.properties ?? {}), ...target, ...parts.flatMap(names)])];
}
/** The fields that tasks and jobs share, but `others`. */
function shared(task, job, ...others) {
    const all = names({ $ref: job });
    return names({ $ref: task }).filter((name) => all.includes(name) && !others.includes(name));
}
/** The record, which notes each field that is read of it. */
function noting(record) {
    const read = new Set();
    return { read, record: new Proxy(record, { get: (of, name) => (read.add(String(name)), Reflect.get(of, name)) }) };
}
test('the form has each field that the requests of jobs and tasks share', () => {
    const { record: errors, read } = noting({});
    const draft = { ...NEW_WORK, callback: true, orderingKey: 'k', key: '', notifications: NOBODY };
    const part = { draft, errors, set: () => undefined, types: [], targets: [], first: draft, onBroken: () => undefined, schema: {} };
    const parts = [What, MaxAttempts, TimeOut, Retries, Order, CallBacks, Telling, Labels];
    rendered(createElement(Fragment, null, ...parts.map((shown) => createElement(shown, part))));
    const fields = [...read].map((name) => name.split('.')[0]);
    // A message is a short form of type log; the parts of a payload and of notifications have errors of their own.
    const missing = shared('TaskRequest', 'JobRequest', 'message', 'payload', 'notifications').filter((name) => !fields.includes(name));
    expect(missing, 'no input in src/form/fields.tsx').toEqual([]);
});
test('the pages show each field that jobs and tasks share', () => {
    const { record: work, read } = noting({ tags: [] });
    details(work);
    const elsewhere = ['id', 'status', 'created_at', 'type', 'target', 'payload', 'max_attempts', 'notifications', 'overlap', 'misfire', 'generation']; // on the pages themselves
    const hidden = ['retry', 'callback', 'on_failure']; // in the form only
    expect(shared('Task', 'Job', ...elsewhere, ...hidden).filter((name) => !read.has(name)), 'not in details() of src/form/fields.tsx').toEqual([]);
});
