// node lint/site.mjs ADDRESS PATH...: opens each page of the built documentation in Chromium and prints one JSON object a finding:
// what axe calls serious or critical, a page that is wider than its window, a request to another host, an error of a script. It also
// tries the calculator of the page about cost.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const require = createRequire(new URL('../console/package.json', import.meta.url));
const { chromium } = require('playwright-core');
const AXE = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
const VIEWS = [
  { width: 1440, colorScheme: 'light' },
  { width: 1440, colorScheme: 'dark' },
  { width: 400, colorScheme: 'light' },
  { width: 400, colorScheme: 'dark' },
];

const [address, ...paths] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] });
const report = (finding) => console.log(JSON.stringify(finding));

for (const { width, colorScheme } of VIEWS) {
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme, bypassCSP: true });
  const page = await context.newPage();
  let path;
  page.on('request', (request) => {
    const url = new URL(request.url());
    if (url.protocol.startsWith('http') && url.origin !== address) report({ path, rule: 'foreign request', html: request.url() });
  });
  page.on('pageerror', (error) => report({ path, rule: 'script', html: String(error) }));
  for (path of paths) {
    await page.goto(`${address}/${path}`, { waitUntil: 'load' });
    await page.evaluate(AXE);
    const { violations } = await page.evaluate(() => window.axe.run({ resultTypes: ['violations'] }));
    for (const { id, impact, nodes } of violations) {
      if (impact === 'serious' || impact === 'critical') report({ path, width, colorScheme, rule: id, html: nodes[0].html });
    }
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    if (wide > width) report({ path, width, colorScheme, rule: 'too wide', html: `${wide} pixels` });
  }
  await context.close();
}

const page = await browser.newPage();
await page.goto(`${address}/concepts/cost/`);
const sum = page.locator('table:has(.calculator) tr:last-child td').nth(1);
for (const [jobs, dollars] of [['3', '37.08'], ['10', '107.01'], ['', '7.11']]) {
  await page.getByLabel('Number: a million jobs, sparse').fill(jobs);
  if ((await sum.textContent()) !== dollars) report({ rule: 'calculator', html: `${jobs}: ${await sum.textContent()}, not ${dollars}` });
}
await browser.close();
