// The API documentation page. An optional fourth argument is the file of a screenshot.
'use strict';

const { browse } = require('./browser');

// The page renders operations as they come into view. Scrolls down until `isFound`, and returns how many there were.
async function scrollThrough(page, isFound = () => false) {
  const found = new Set();
  await page.evaluate(() => window.scrollTo(0, 0));
  for (let isMore = true; isMore && !(await isFound()); ) {
    const shown = await page.locator('.opblock').evaluateAll((all) => all.map((each) => each.id));
    shown.forEach((id) => found.add(id));
    isMore = await page.evaluate(async () => {
      const before = window.scrollY;
      window.scrollBy(0, 300);
      await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
      return window.scrollY > before;
    });
  }
  return found.size;
}

browse(async (open) => {
  const page = await open('schema/docs', { width: 1000, height: 900 });
  await page.locator('.opblock').first().waitFor();
  const operations = await scrollThrough(page);
  const live = page.locator('.opblock', { hasText: '/_emulator/live' });
  await scrollThrough(page, async () => (await live.count()) > 0);
  await live.locator('.opblock-summary').click();
  await live.getByRole('button', { name: 'Try it out' }).click();
  await live.getByRole('button', { name: 'Execute' }).click();
  const status = await live.locator('.live-responses-table tbody .response-col_status').first().innerText();
  if (process.argv[5]) {
    await page.screenshot({ path: process.argv[5] });
  }
  return { operations, status };
});
