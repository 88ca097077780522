/** A real Chromium on the console, and the API beside it. */
import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';

import { chromium, type Browser, type Page } from 'playwright-core';

/** Where everything is: handed over by whoever brought the stack up. */
function given(name: string): string {
  const value = process.env[name];
  if (value === undefined || value === '') throw new Error(`${name} is not set: run these tests by tests/system/test_console.py`);
  return value;
}

export const CONSOLE = given('CONSOLE_URL');
export const USER = given('CONSOLE_USER');
export const PASSWORD = given('CONSOLE_PASSWORD');
export const RECEIVER = given('CONSOLE_RECEIVER');
export const MANY_USER = given('CONSOLE_MANY_USER');
export const MANY_PASSWORD = given('CONSOLE_MANY_PASSWORD');
const API = given('CONSOLE_API');
export const ARTEFACTS = given('CONSOLE_ARTEFACTS');
mkdirSync(ARTEFACTS, { recursive: true });

const PLACES = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome', '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome'];

export async function launch(): Promise<Browser> {
  const executablePath = process.env['CHROMIUM'] ?? PLACES.find((place) => existsSync(place));
  if (executablePath === undefined) throw new Error('Chromium is missing. Debian: apt-get install chromium; or set CHROMIUM to yours.');
  return chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-dev-shm-usage', '--no-proxy-server', '--disable-gpu'] });
}

/** A page of its own session, without motion, which costs time and shows nothing; every complaint of the browser is kept. */
export async function open(browser: Browser, options: { width?: number; height?: number; dark?: boolean } = {}): Promise<Page & { complaints: string[] }> {
  const context = await browser.newContext({
    viewport: { width: options.width ?? 1440, height: options.height ?? 900 },
    colorScheme: options.dark ? 'dark' : 'light',
    reducedMotion: 'reduce',
    timezoneId: 'Europe/Berlin',
    locale: 'en-GB',
  });
  const page = Object.assign(await context.newPage(), { complaints: [] as string[] });
  page.setDefaultTimeout(60_000);
  page.on('pageerror', (error) => page.complaints.push(`error: ${error.message}`));
  page.on('console', (message) => {
    if (message.type() === 'error' && !message.text().includes('Failed to load resource')) page.complaints.push(message.text());
  });
  return page;
}

export async function signIn(page: Page, path = '/', username = USER, password = PASSWORD): Promise<void> {
  await page.goto(`${CONSOLE}${path}`);
  await page.getByLabel('User name').fill(username);
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('button', { name: 'Account' }).waitFor();
}

export async function picture(page: Page, name: string): Promise<void> {
  await page.screenshot({ path: join(ARTEFACTS, `${name}.png`) });
}

/**
 * Choose from a list that opens: which shows the choice when it has been made.
 * Now and then (twice in some seventy) a list takes no notice of a click, supposedly since it follows the opening within
 * milliseconds, as no hand's does; then it is opened and clicked once more.
 */
export async function pick(page: Page, list: string, option: string): Promise<void> {
  const trigger = page.getByRole('button', { name: list }).first();
  await until(`${option} is chosen`, 20, async () => {
    if ((await page.getByRole('option', { name: option }).count()) === 0) await trigger.click();
    await page.getByRole('option', { name: option }).first().click();
    return trigger.filter({ hasText: option }).waitFor({ timeout: 3_000 }).then(() => true, () => false); // of several choices a second click would take it back
  });
}

let token: string | null = null;

/** The API itself, for what a test needs to be there. */
export async function call<T>(method: string, path: string, body?: unknown): Promise<T> {
  return (await send(method, path, body, await grant())) as T;
}

/** A token of the first user. */
export async function grant(): Promise<string> {
  token ??= ((await send('POST', '/auth/login', { username: USER, password: PASSWORD })) as { token: string }).token;
  return token;
}

/** What a POST may create again: it takes an idempotency key. */
const WITH_KEY = ['/jobs', '/jobs/batch', '/tasks', '/groups'];

/** The same with another token, or none. As a client does, it sends again what a busy stack did not answer. */
export async function send(method: string, path: string, body?: unknown, bearer?: string): Promise<unknown> {
  const again = method === 'GET' || method === 'PUT' || (method === 'POST' && WITH_KEY.includes(path.split('?')[0] ?? ''));
  const headers = { 'content-type': 'application/json', 'idempotency-key': randomUUID(), ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }) };
  for (let left = again ? 2 : 0; ; left -= 1) {
    const answer = await fetch(`${API}/api/v1${path}`, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
    const told = (await answer.json()) as { success: boolean; data: unknown };
    if (told.success) return told.data;
    if (left === 0 || ![502, 503, 504].includes(answer.status)) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(told)}`);
  }
}

/** Jobs and tasks change by themselves: look until it is so. */
export async function until<T>(what: string, seconds: number, look: () => Promise<T | null | undefined | false>): Promise<T> {
  const end = Date.now() + seconds * 1_000;
  for (;;) {
    const found = await look();
    if (found) return found;
    if (Date.now() > end) throw new Error(`not within ${seconds} s: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
}
