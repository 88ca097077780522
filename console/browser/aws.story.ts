/** The form of an `aws` job in a real Chromium. `tests/system/test_any_action.py` deploys a stage that allows two actions, and runs this file. */
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, onTestFailed, test } from 'vitest';

import { launch, open, pick, picture, signIn } from './driver';

let browser: Browser;

beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser?.close());

test('an action is found by its words, its form is filled by keyboard, and the job runs', async () => {
  const page = await open(browser);
  onTestFailed(async () => console.log(`The page shows:\n${(await page.locator('body').innerText()).slice(0, 2_000)}`));
  await signIn(page, '/jobs/new');
  await pick(page, 'Type or named target', 'aws');
  const trigger = page.getByRole('button', { name: /^Action/ }).first();
  await trigger.focus();
  await page.keyboard.press('Enter');
  await page.getByRole('option', { name: 'dynamodb:UpdateItem' }).waitFor();
  await page.keyboard.type('s3 copy');
  await page.getByRole('option', { name: 'dynamodb:UpdateItem' }).waitFor({ state: 'hidden' });
  await picture(page, 'aws-search');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await trigger.filter({ hasText: 's3:CopyObject' }).waitFor();

  await page.getByLabel('Bucket', { exact: true }).fill('reports');
  await page.getByLabel('CopySource', { exact: true }).fill('reports/a');
  await page.getByRole('button', { name: /^Add a parameter/ }).click();
  await page.getByRole('option', { name: 'StorageClass' }).first().click();
  await pick(page, 'StorageClass', 'STANDARD');
  const post = page.getByRole('button', { name: 'Post job' });
  await post.click();
  await page.getByText('is required').first().waitFor(); // at the field Key
  await page.getByLabel('Key', { exact: true }).fill('by-form');
  await picture(page, 'aws-form');

  await page.getByText('As JSON', { exact: true }).click();
  expect(JSON.parse(await page.getByLabel('Payload', { exact: true }).inputValue())).toEqual({
    service: 's3', action: 'CopyObject', parameters: { Bucket: 'reports', CopySource: 'reports/a', StorageClass: 'STANDARD', Key: 'by-form' },
  });
  await page.getByText('As JSON', { exact: true }).click();
  expect(await page.getByLabel('Key', { exact: true }).inputValue()).toBe('by-form');
  await post.click();
  await page.getByText('Posted the job.').waitFor();
  await page.getByText('Succeeded', { exact: true }).first().waitFor();
  expect(page.complaints).toEqual([]);
});
