// The example extension, used as its README says. A fourth argument is a folder for pictures of the pages.
'use strict';

const path = require('path');
const { browse, service } = require('./browser');

const PANEL = { width: 318, height: 496 };
const pictures = process.argv[5];

async function picture(page, name) {
  if (pictures) {
    await page.screenshot({ path: path.join(pictures, `${name}.png`), fullPage: true });
  }
}

// What a viewer reads of the poll.
async function poll(page) {
  const options = await page.locator('.option').all();
  return {
    question: await page.locator('#question').textContent(),
    options: await Promise.all(options.map((option) => option.innerText())),
    pressed: await page.locator('.option[aria-pressed=true]').allInnerTexts(),
    open: options.length > 0 && (await options[0].isEnabled()),
    note: await page.locator('#poll .note').innerText(),
  };
}

const votes = (page, text) => page.locator('#poll .note').filter({ hasText: text }).waitFor();
const asked = (page, text) => page.locator('#question').filter({ hasText: text }).waitFor();

// The other half of a PIN: a game that shows one.
async function gamePin() {
  const body = JSON.stringify({ identifier: 'my-extension' });
  const { pin, token } = await (await fetch(`${service}/v1/e/pin`, { method: 'POST', body })).json();
  const headers = { Authorization: `my-extension ${token}` };
  return { pin, status: async () => (await fetch(`${service}/v1/e/user_info`, { headers })).status };
}

async function pins(live) {
  const { pin, status } = await gamePin();
  const before = await status();
  await live.getByLabel('PIN that the game shows').fill('WRONG9');
  await live.getByRole('button', { name: 'Link', exact: true }).click();
  await live.getByRole('alert').waitFor();
  const wrong = await live.getByRole('alert').textContent();
  await live.getByLabel('PIN that the game shows').fill(pin.toLowerCase());
  await live.getByRole('button', { name: 'Link', exact: true }).click();
  await live.getByText('The game is linked').waitFor();
  await live.getByRole('button', { name: 'Show a PIN' }).click();
  await live.getByText('Type the PIN into the game').waitFor();
  return {
    wrong,
    problem: await live.getByRole('alert').count(),
    status: [before, await status()],
    shown: await live.locator('#pin').textContent(),
  };
}

browse(async (open) => {
  const [first, second] = [await open('panel.html?user_id=5551', PANEL), await open('panel.html?user_id=5552', PANEL)];
  const live = await open('live.html');
  await Promise.all([first, second, live].map((page) => asked(page, 'No poll yet')));

  await live.getByLabel('Question').fill('Which boss is next?');
  await live.getByLabel('Options, one per line').fill('Dragon\n Golem \n\nHydra');
  await live.getByRole('button', { name: 'Start poll' }).click();
  await Promise.all([first, second].map((page) => asked(page, 'Which boss is next?')));
  await first.getByRole('button', { name: 'Dragon' }).click();
  await votes(first, '1 vote');
  await second.getByRole('button', { name: 'Hydra' }).click();
  await Promise.all([first, second, live].map((page) => votes(page, '2 votes')));
  const seen = { first: await poll(first), second: await poll(second), live: await poll(live) };

  await live.getByLabel('To all viewers').fill('A raid begins at nine');
  await live.getByRole('button', { name: 'Send' }).click();
  const banners = await Promise.all(
    [first, second].map(async (page) => {
      await page.getByRole('status').waitFor();
      return page.getByRole('status').textContent();
    }),
  );
  const late = await open('panel.html?user_id=5553', PANEL);
  await votes(late, '2 votes');
  seen.late = await poll(late);
  const linked = await pins(live);
  await picture(first, 'panel');
  await picture(live, 'live');

  await live.getByRole('button', { name: 'Stop poll' }).click();
  await Promise.all([first, second, late].map((page) => votes(page, 'closed')));
  await picture(second, 'panel-closed');
  const overflow = await first.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  return { ...seen, banners, linked, closed: await poll(late), overflow };
});
