import { defineConfig } from '@playwright/test';

// CHROMIUM names an installed browser, in place of the one of `npx playwright install chromium`.
const { CHROMIUM } = process.env;

export default defineConfig({
  testDir: 'tests/browser',
  testMatch: '*.pw.mjs',
  fullyParallel: true,
  workers: 4,
  reporter: 'list',
  use: { launchOptions: CHROMIUM ? { executablePath: CHROMIUM, args: ['--no-sandbox'] } : {} },
});
