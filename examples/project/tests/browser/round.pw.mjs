import { expect } from '@playwright/test';
import { closeRound } from '../../backend.mjs';
import { test } from './pages.mjs';

async function close(extcli) {
  const { Authorization } = await extcli.backend.headers();
  await closeRound(extcli.url, Authorization);
}

test('a viewer votes', async ({ page, pages, extcli }) => {
  await page.goto(`${pages}/page/index.html`);
  await page.getByRole('button', { name: 'Golem' }).click();

  await extcli.wait('poll', 'boss', { value: '1==1' });
});

test('a viewer votes again', async ({ page, pages, extcli }) => {
  await page.goto(`${pages}/page/index.html`);
  await page.getByRole('button', { name: 'Golem' }).click();
  await extcli.wait('poll', 'boss', { value: '1==1' });
  await page.getByRole('button', { name: 'Hydra' }).click();

  await extcli.wait('poll', 'boss', { value: '1==0,2==1' });
});

test('viewers see the winner', async ({ page, pages, extcli }) => {
  await page.goto(`${pages}/page/index.html`);
  await page.getByRole('button', { name: 'Golem' }).click();
  await extcli.wait('poll', 'boss', { count: 1 });

  await close(extcli);

  await expect(page.getByRole('status')).toHaveText('Golem wins');
});

test('viewers see a tie', async ({ page, pages, extcli }) => {
  await page.goto(`${pages}/page/index.html`);
  await page.getByRole('button', { name: 'Golem' }).click();
  await extcli.viewer('U2').vote('boss', 0);
  await extcli.wait('poll', 'boss', { count: 2 });

  await close(extcli);

  await expect(page.getByRole('status')).toHaveText('A tie');
});
