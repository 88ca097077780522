/**
 * Single sign-on and the second factor in a real Chromium. `tests/system/test_sso.py` starts the identity provider and runs this file:
 * the provider signs in whom it was told, without a password.
 */
import { createHmac } from 'node:crypto';

import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';

import { CONSOLE, launch, open, PASSWORD, picture, until, USER } from './driver';

let browser: Browser;
let page: Page & { complaints: string[] };

beforeAll(async () => {
  browser = await launch();
});

afterAll(async () => {
  await browser.close();
});

const BY_PROVIDER = { name: 'Sign in with Example Corp' };

async function signOut(): Promise<void> {
  await page.getByRole('button', { name: 'Account' }).click();
  await page.getByRole('menuitem', { name: 'Sign out' }).click();
}

/** The code of a secret in base32, some steps of 30 seconds from now (RFC 6238). */
function code(secret: string, later = 0): string {
  const bits = [...secret.replaceAll(' ', '')].map((letter) => 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.indexOf(letter).toString(2).padStart(5, '0')).join('');
  const key = Buffer.from((bits.match(/.{8}/g) ?? []).map((byte) => parseInt(byte, 2)));
  const step = Buffer.alloc(8);
  step.writeBigUInt64BE(BigInt(Math.floor(Date.now() / 30_000) + later));
  const digest = createHmac('sha1', key).update(step).digest();
  const place = (digest.at(-1) ?? 0) & 15;
  return String((digest.readUInt32BE(place) & 0x7fffffff) % 1_000_000).padStart(6, '0');
}

test('the provider signs in to the requested page, and the sign-out ends its session', async () => {
  page = await open(browser);
  await page.goto(`${CONSOLE}/jobs?tag=one`);
  await page.getByRole('button', BY_PROVIDER).click();
  await page.getByRole('button', { name: 'Account' }).waitFor();
  expect(new URL(page.url()).pathname + new URL(page.url()).search).toBe('/jobs?tag=one');
  expect(await page.evaluate(() => sessionStorage.length)).toBe(0);

  await signOut();
  await page.getByRole('button', { name: 'Sign out' }).click(); // of the provider
  await page.goto(CONSOLE);
  await page.getByRole('button', BY_PROVIDER).waitFor();
  await picture(page, 'sign-in-with-provider');
  expect(page.complaints).toEqual([]);
});

test('an administrator links a user to the provider, and unlinks them', async () => {
  page = await open(browser);
  await page.goto(`${CONSOLE}/users`);
  await page.getByLabel('User name').fill(USER);
  await page.getByLabel('Password').fill(PASSWORD);
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  const user = process.env['CONSOLE_FACTOR_USER'] ?? USER;
  const actions = page.getByRole('button', { name: `Actions of ${user}` });
  const next = page.getByRole('button', { name: 'Next page' });
  await until('the user is on the page', 60, async () => {
    if ((await actions.count()) > 0) return true;
    if ((await page.getByText('Loading users').count()) === 0 && (await next.isEnabled())) await next.click();
    return false;
  });
  const asked = async (): Promise<void> => {
    await actions.click();
    await page.getByRole('menuitem', { name: 'Single sign-on' }).click();
  };
  await asked();
  await page.getByRole('button', { name: 'Link', exact: true }).click();
  await page.getByText('must not be empty', { exact: false }).waitFor();
  await page.getByRole('textbox', { name: 'Subject' }).fill(`at-corp-${user}`);
  await picture(page, 'link-identity');
  await page.getByRole('button', { name: 'Link', exact: true }).click();
  await page.getByText(`${user} signs in with Example Corp as at-corp-${user}, too.`).waitFor();
  await asked();
  await page.getByText(`at-corp-${user}`, { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Unlink', exact: true }).click();
  await page.getByText(`${user} no longer signs in with Example Corp.`).waitFor();
  expect(page.complaints).toEqual([]);
});

test('a planted address signs nobody in', async () => {
  page = await open(browser);
  await page.goto(`${CONSOLE}/signed-in?code=planted&state=planted`);
  await page.getByText('Start it again').first().waitFor();
  expect(await page.getByRole('button', { name: 'Account' }).count()).toBe(0);
});

test('a second factor is switched on, asked for, and switched off', async () => {
  page = await open(browser);
  await page.goto(CONSOLE);
  await page.getByLabel('User name').fill(process.env['CONSOLE_FACTOR_USER'] ?? USER);
  await page.getByLabel('Password').fill(process.env['CONSOLE_FACTOR_PASSWORD'] ?? PASSWORD);
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  await page.getByRole('button', { name: 'Account' }).click();
  await page.getByRole('menuitem', { name: 'Second factor' }).click();
  const password = process.env['CONSOLE_FACTOR_PASSWORD'] ?? PASSWORD;
  await page.getByLabel('Current password').fill(password);
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.getByRole('img', { name: 'QR code' }).waitFor();
  await picture(page, 'second-factor');
  const secret = (await page.getByText(/^([A-Z2-7]{4} )+[A-Z2-7]{1,4}$/).first().innerText()).trim();
  await page.getByRole('textbox', { name: 'Code' }).fill(code(secret));
  await page.getByRole('button', { name: 'Switch on' }).click();
  await page.getByText('Your second factor is on').waitFor();

  await signOut();
  await page.getByLabel('User name').fill(process.env['CONSOLE_FACTOR_USER'] ?? USER);
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  await page.getByRole('textbox', { name: 'Code' }).fill(code(secret, 1)); // the code of before was used
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  await page.getByRole('button', { name: 'Account' }).waitFor();
  expect(page.complaints).toEqual([]);
});
