// The published SDK in production, with the example's script in place of the emulator's.
'use strict';

const { browse } = require('./browser');

const users = JSON.parse(process.argv[5]); // the authorizations of the platform's helper, two for each user

// Runs in a page: starts a session, and records messages in `window.received`.
async function start(authorization) {
  window.authorize(authorization);
  const { Muxy } = window;
  Muxy.default.debug(new Muxy.default.DebuggingOptions().environment('Production'));
  Muxy.default.setup({ clientID: authorization.clientId, quiet: true });
  window.sdk = new Muxy.default.SDK();
  await window.sdk.loaded();
  window.received = { motd: [], secret: [] };
  window.sdk.listen('motd', (data) => window.received.motd.push(data));
  window.sdk.listen('secret', authorization.userId, (data) => window.received.secret.push(data));
  return (await window.sdk.vote('production', 3)).vote;
}

function waitFor(page, name, count) {
  return page.waitForFunction(([key, least]) => window.received[key].length >= least, [name, count]);
}

async function openPage(open, [authorization]) {
  const frames = [];
  const page = await open('production.html', {
    before: (fresh) => {
      fresh.on('websocket', (socket) => {
        frames.push({ event: 'opened', channel: socket.url() });
        socket.on('framereceived', ({ payload }) => frames.push(JSON.parse(payload)));
      });
    },
  });
  const vote = await page.evaluate(start, authorization);
  return { page, frames, vote };
}

async function subscribed({ page, frames }, count) {
  const done = () => frames.filter(({ event }) => event === 'pusher_internal:subscription_succeeded').length >= count;
  while (!done()) {
    await page.evaluate(() => new Promise(requestAnimationFrame));
  }
}

browse(async (open) => {
  const [broadcaster, viewer] = [await openPage(open, users[0]), await openPage(open, users[1])];
  for (const [index, each] of [broadcaster, viewer].entries()) {
    await subscribed(each, 2);
    await each.page.evaluate((authorization) => window.authorize(authorization), users[index][1]); // a renewed token
    await subscribed(each, 4);
  }
  await broadcaster.page.evaluate(
    (user) => {
      window.sdk.send('motd', { n: 1 });
      window.sdk.send('secret', user, { n: 2 });
      window.sdk.send('secret', 'U6', { n: 3 });
    },
    users[1][0].userId,
  );
  await waitFor(viewer.page, 'motd', 1);
  await waitFor(viewer.page, 'secret', 1);
  await broadcaster.page.evaluate(() => void window.sdk.send('motd', { n: 4 }));
  await waitFor(viewer.page, 'motd', 2);
  await waitFor(broadcaster.page, 'motd', 2);
  const result = {};
  for (const [name, { page, frames, vote }] of Object.entries({ broadcaster, viewer })) {
    const heard = frames.map(({ event }) => event).filter((event) => !event.startsWith('pusher'));
    const urls = frames.filter(({ event }) => event === 'opened').map(({ channel }) => new URL(channel).search);
    result[name] = { vote, received: await page.evaluate(() => window.received), heard: [...new Set(heard)].sort(), urls };
  }
  return result;
});
