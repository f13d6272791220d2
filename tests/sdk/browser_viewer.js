// The API documentation page. An optional fourth argument is the file of a screenshot.
'use strict';

const { browse } = require('./browser');

browse(async (open) => {
  const page = await open('schema/docs', { width: 1000, height: 900 });
  const live = page.locator('.opblock', { hasText: '/_emulator/live' });
  await live.locator('.opblock-summary').click();
  await live.getByRole('button', { name: 'Try it out' }).click();
  await live.getByRole('button', { name: 'Execute' }).click();
  const status = await live.locator('.live-responses-table tbody .response-col_status').first().innerText();
  const operations = await page.locator('.opblock').count();
  if (process.argv[5]) {
    await page.screenshot({ path: process.argv[5] });
  }
  return { operations, status };
});
