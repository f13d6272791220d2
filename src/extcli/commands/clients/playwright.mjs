// Fixtures for Playwright. Each test has a namespace of its own, and its pages use it in place of the address below.
//   extcli connect node-test > extcli.mjs                    next to this file
//   import { test, expect } from './extcli-playwright.mjs';   in place of '@playwright/test'
import { test as base } from '@playwright/test';
import { namespace } from './extcli.mjs';

export { expect } from '@playwright/test';

export const test = base.extend({
  extcli: async ({}, use, info) => {
    const extcli = namespace(`${process.pid}-${info.testId}-${info.retry}`);
    await extcli.reset(); // creates it: a page of another origin cannot
    await use(extcli);
    await extcli.drop({ failed: info.status !== info.expectedStatus });
  },
  page: async ({ page, context, extcli }, use) => {
    // Chromium counts a page that a test has changed as one from the Internet, which may not use this machine.
    await context.grantPermissions(['local-network-access']).catch(() => {}); // other browsers do not know it
    await page.route((url) => /(\/|\.html)$/.test(url.pathname), async (route) => {
      const response = await route.fetch();
      const body = (await response.text()).replaceAll('SERVICE', extcli.url);
      await route.fulfill({ response, body });
    });
    await use(page);
  },
});
