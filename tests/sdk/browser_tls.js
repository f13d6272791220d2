// Two pages over https: the broadcaster sends a message by the published SDK, and a viewer votes and receives it.
'use strict';

const { browse } = require('./browser');

// Runs in a page: loads a session into `window.sdk`.
async function startSession() {
  const Muxy = window.Muxy.default;
  Muxy.setup({ clientID: 'my-extension', quiet: true });
  window.sdk = new Muxy.SDK();
  await window.sdk.loaded();
}

browse(async (open) => {
  const viewer = await open('frame.html?user_id=5551&channel_id=777');
  const broadcaster = await open('frame.html?role=broadcaster&channel_id=777&user_id=777');
  await viewer.evaluate(startSession);
  await broadcaster.evaluate(startSession);
  const voted = await viewer.evaluate(async () => (await window.sdk.vote('poll', 3)).count);
  const heard = viewer.evaluate(() => new Promise((resolve) => window.sdk.listen('hello', resolve)));
  await viewer.waitForFunction(() => {
    const { channel, globalChannel } = window.Muxy.default.messenger;
    return channel.subscribed && globalChannel.subscribed;
  });
  await broadcaster.evaluate(() => window.sdk.send('hello', { text: 'hi' }));
  return { voted, heard: await heard };
});
