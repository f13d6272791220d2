// The example extension, used as its README says. An optional fourth argument is a folder for screenshots.
'use strict';

const path = require('path');
const { browse, service } = require('./browser');

const PANEL = { width: 318, height: 496 };
const screenshots = process.argv[5];

async function screenshot(page, name) {
  if (screenshots) {
    await page.screenshot({ path: path.join(screenshots, `${name}.png`), fullPage: true });
  }
}

// Reads the poll as the page shows it.
async function readPoll(page) {
  const options = await page.locator('.option').all();
  return {
    question: await page.locator('#question').textContent(),
    options: await Promise.all(options.map((option) => option.innerText())),
    pressed: await page.locator('.option[aria-pressed=true]').allInnerTexts(),
    isOpen: options.length > 0 && (await options[0].isEnabled()),
    note: await page.locator('#poll .note').innerText(),
  };
}

const waitForNote = (page, text) => page.locator('#poll .note').filter({ hasText: text }).waitFor();
const waitForQuestion = (page, text) => page.locator('#question').filter({ hasText: text }).waitFor();

// Requests a PIN as a game does.
async function requestPin() {
  const body = JSON.stringify({ identifier: 'my-extension' });
  const { pin, token } = await (await fetch(`${service}/v1/e/pin`, { method: 'POST', body })).json();
  const headers = { Authorization: `my-extension ${token}` };
  return { pin, status: async () => (await fetch(`${service}/v1/e/user_info`, { headers })).status };
}

async function linkGame(live) {
  const { pin, status } = await requestPin();
  const before = await status();
  await live.getByLabel('PIN that the game shows').fill('WRONG9');
  await live.getByRole('button', { name: 'Link', exact: true }).click();
  await live.getByRole('alert').waitFor();
  const error = await live.getByRole('alert').textContent();
  await live.getByLabel('PIN that the game shows').fill(pin.toLowerCase());
  await live.getByRole('button', { name: 'Link', exact: true }).click();
  await live.getByText('The game is linked').waitFor();
  await live.getByRole('button', { name: 'Show a PIN' }).click();
  await live.getByText('Type the PIN into the game').waitFor();
  return {
    error,
    errorsLeft: await live.getByRole('alert').count(),
    status: [before, await status()],
    pin: await live.locator('#pin').textContent(),
  };
}

browse(async (open) => {
  const [first, second] = [await open('panel.html', PANEL), await open('panel.html?extcli_user=5552', PANEL)];
  const live = await open('live.html');
  await Promise.all([first, second, live].map((page) => waitForQuestion(page, 'No poll yet')));

  await live.getByLabel('Question').fill('Which boss is next?');
  await live.getByLabel('Options, one per line').fill('Dragon\n Golem \n\nHydra');
  await live.getByRole('button', { name: 'Start poll' }).click();
  await Promise.all([first, second].map((page) => waitForQuestion(page, 'Which boss is next?')));
  await first.getByRole('button', { name: 'Dragon' }).click();
  await waitForNote(first, '1 vote');
  await second.getByRole('button', { name: 'Hydra' }).click();
  await Promise.all([first, second, live].map((page) => waitForNote(page, '2 votes')));
  const result = { first: await readPoll(first), second: await readPoll(second), live: await readPoll(live) };

  await live.getByLabel('To all viewers').fill('A raid begins at nine');
  await live.getByRole('button', { name: 'Send' }).click();
  const banners = await Promise.all(
    [first, second].map(async (page) => {
      await page.getByRole('status').waitFor();
      return page.getByRole('status').textContent();
    }),
  );
  const late = await open('panel.html', PANEL);
  await waitForNote(late, '2 votes');
  result.late = await readPoll(late);
  const linked = await linkGame(live);
  await screenshot(first, 'panel');
  await screenshot(live, 'live');

  await live.getByRole('button', { name: 'Stop poll' }).click();
  await Promise.all([first, second, late].map((page) => waitForNote(page, 'closed')));
  await screenshot(second, 'panel-closed');
  const overflow = await first.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  return { ...result, banners, linked, closed: await readPoll(late), overflow };
});
