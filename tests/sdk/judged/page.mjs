// Opens a page with the lines of the README in Chromium, votes in it, moves the clock, and votes again without a reload.
// Arguments: the browser's path, and the folder of the packages.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { count } from './backend.mjs';

const [, , executablePath, packages] = process.argv;
const { chromium } = createRequire(`${packages}/`)('playwright-core');
const url = process.env.EXTCLI_URL;
const page = (helper) => `<!doctype html><link rel="icon" href="data:,">${helper}
<script src="${url}/_emulator/sdk.js"></script><script src="medkit.umd.js"></script>
<script>Muxy.setup({ clientID: 'my-extension', quiet: true }); const sdk = new Muxy.SDK();</script>`;
const HELPER = `<script src="${url}/_emulator/platform-helper.js"></script>`;
const files = { '/with-helper': page(HELPER), '/': page(''), '/medkit.umd.js': readFileSync(`${packages}/@muxy/extensions-js/dist/medkit.umd.js`) };
const server = createServer((request, answer) => answer.end(files[request.url])).listen(0, '127.0.0.1');
await new Promise((resolve) => server.on('listening', resolve));
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] });
const move = (by) => fetch(`${url}/_emulator/clock`, { method: 'POST', body: JSON.stringify({ advance: by }) });
const vote = (tab, poll) => tab.evaluate(async (id) => { await sdk.loaded(); return (await sdk.vote(id, 1)).stats.count; }, poll);
try {
  for (const [path, poll] of [['/', 'boss'], ['/with-helper', 'lunch']]) {
    const tab = await browser.newPage();
    await tab.goto(`http://127.0.0.1:${server.address().port}${path}`);
    assert.equal(await vote(tab, poll), 1);
    assert.equal(await count(url, poll), 1);
    await move(8 * 86_400_000);
    assert.equal(await vote(tab, poll), 1); // the votes of the former week are gone, and this one counts
    assert.equal(await count(url, poll), 1);
  }
} finally {
  await browser.close();
  server.close();
}
