import { readFileSync } from 'node:fs';

import { expect, test } from 'vitest';

import { COLOURS } from './colours';

const CSS = readFileSync(new URL('styles.css', import.meta.url), 'utf8');
const defined = (rule: string): Record<string, string> =>
  Object.fromEntries([...(new RegExp(`^${rule} \\{([^}]*)\\}`, 'm').exec(CSS)?.[1] ?? '').matchAll(/(--[\w-]+): #(\w{6});/g)].map((found) => [found[1], found[2]]));

/** Which of red, green and blue is the strongest. */
function strongest(hex: string): string {
  const parts = [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16));
  return ['red', 'green', 'blue'][parts.indexOf(Math.max(...parts))] ?? '';
}

test.each([':root', '\\.awsui-dark-mode'])('green is a success, reds are failures, and a measure is neither: %s', (rule) => {
  const names = defined(rule);
  const hues = Object.fromEntries(Object.entries(COLOURS).map(([name, value]) => [name, strongest(names[value.slice(4, -1)] ?? 'no colour')]));
  expect(hues).toMatchObject({ succeeded: 'green', failed: 'red', killed: 'red', measure: 'blue', high: 'blue' });
  const used = Object.values(COLOURS).map((value) => names[value.slice(4, -1)]);
  expect(new Set(used).size, 'each has its own').toBe(used.length);
});
