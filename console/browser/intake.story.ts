/** A message of an intake queue that breaks a rule, in a real Chromium. `tests/system/test_intake.py` sends it and runs this file. */
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';

import { launch, open, picture, signIn } from './driver';

const MESSAGE = process.env['CONSOLE_MESSAGE'] ?? '';

let browser: Browser;

beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser?.close());

test('a wrong message is listed with its field, corrected, and gone', async () => {
  const page = await open(browser);
  await signIn(page, '/dead-letters/intake');
  const row = page.getByRole('table', { name: 'Refused messages' }).getByRole('row').filter({ hasText: MESSAGE });
  await row.getByText(/^delay: /).waitFor();
  await picture(page, 'intake');
  await row.getByRole('link').first().click();
  await page.getByRole('heading', { name: 'Errors' }).waitFor();
  const body = page.getByRole('textbox', { name: 'Body' });
  expect(await body.inputValue()).toContain('soon');
  await picture(page, 'intake-letter');
  await body.fill((await body.inputValue()).replace('soon', '1h'));
  await page.getByRole('button', { name: 'Try again with this body' }).click();
  await page.getByText('1 job is created.').waitFor();
  await page.getByRole('heading', { name: 'Intake', level: 1 }).waitFor();
  await page.getByText('Loading messages').first().waitFor({ state: 'hidden' });
  await row.waitFor({ state: 'hidden' });
  expect(page.complaints).toEqual([]);
});
