// node local/diagrams.mjs MERMAID OUT: draws each diagram of the standard input, a JSON object of sources by name, as OUT/NAME.svg.
// MERMAID is the file mermaid.min.js. The pictures have no script, no style of the page and no font of another host.
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const require = createRequire(new URL('../console/package.json', import.meta.url));
const { chromium } = require('playwright-core');

const [mermaid, out] = process.argv.slice(2);
const sources = JSON.parse(readFileSync(0, 'utf8'));
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] });
const page = await browser.newPage();
await page.setContent('<!doctype html><body></body>');
await page.addScriptTag({ path: mermaid });
for (const [name, source] of Object.entries(sources)) {
  const drawn = await page.evaluate(async (text) => {
    const font = 'Helvetica, Arial, sans-serif';
    window.mermaid.initialize({ startOnLoad: false, theme: 'neutral', htmlLabels: false, flowchart: { htmlLabels: false }, fontFamily: font, deterministicIds: true });
    const { svg } = await window.mermaid.render('diagram', text);
    const holder = document.createElement('div');
    holder.innerHTML = svg;
    const picture = holder.firstElementChild;
    const { width, height } = picture.viewBox.baseVal;
    picture.setAttribute('width', String(Math.ceil(width)));
    picture.setAttribute('height', String(Math.ceil(height)));
    picture.setAttribute('style', 'background: white');
    return new XMLSerializer().serializeToString(picture);
  }, source);
  writeFileSync(`${out}/${name}.svg`, `${drawn}\n`);
}
await browser.close();
