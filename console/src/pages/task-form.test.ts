import { createElement } from 'react';
import { expect, test } from 'vitest';

import type { TaskType } from '../api/client';
import { rendered } from '../rendered';
import { Editor } from './task-form';

const text = { type: 'string' };
const HTTP = {
  type: 'http',
  description: 'Calls a URL',
  payload_schema: {
    properties: {
      url: text, method: { ...text, enum: ['GET', 'POST'], default: 'GET' }, headers: { type: 'object', additionalProperties: text }, body: {}, timeout_seconds: { type: 'number', default: 30 },
      bearer_secret: text, basic_user: text, basic_secret: text, header_secrets: { type: 'object', additionalProperties: text }, signing_secret: text,
    },
    required: ['url'],
  },
} as unknown as TaskType;

/** Without the folded parts: what `aria-controls` of a closed header names. */
function unfolded(page: string): string {
  let shown = page;
  for (const [, id] of page.matchAll(/aria-controls="([^"]*)" aria-expanded="false"/g)) {
    const from = shown.indexOf(`<div id="${id}"`);
    if (from < 0) continue;
    let depth = 0;
    for (const tag of shown.slice(from).matchAll(/<(\/?)div\b[^>]*>/g)) {
      depth += tag[1] === '' ? 1 : -1;
      if (depth > 0) continue;
      shown = shown.slice(0, from) + shown.slice(from + tag.index + tag[0].length);
      break;
    }
  }
  return shown;
}

/** The headings, labels and headers of folded parts in their order. */
function order(page: string): string[] {
  const found = unfolded(page).matchAll(/<(?:label|h[123])\b[^>]*>(.*?)<\/(?:label|h[123])>|<span id="[^"]*-trigger"[^>]*>(.*?)<\/span>/gs);
  return [...found].map(([, label, folded]) => (label === undefined ? `▸ ${folded ?? ''}` : label.replace(/<[^>]+>/g, '').trim()));
}

test('the form begins with name, call and time; credentials, retries and notifications are folded', () => {
  const page = rendered(createElement(Editor, { types: [HTTP], targets: [], task: null, editing: false }));
  expect(order(page)).toEqual([
    'Create task',
    'What to run', 'Name', 'Type or named target', 'URL', 'Method – optional', 'Body – optional', 'Call time-out (s) – optional', '▸ Headers', '▸ Authentication',
    'When to run', 'Repeats', 'At', 'Cron', 'Time zone', '▸ Holidays and excluded days', '▸ Start, end, jitter, clock changes', 'Next runs',
    'How to run', 'Max attempts', 'Attempt time-out (s)', 'If the previous run has not ended', '▸ Retries', '▸ Missed runs', '▸ Order and limit', '▸ Call-back', '▸ Notifications', '▸ Alerts', '▸ Description, key and tags',
  ]);
});
