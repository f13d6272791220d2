// The published SDK in frames, with the service's replacement of the platform's helper.
'use strict';

const { browse } = require('./browser');

const REFRESH_EVERY = 25 * 60_000;

// Runs in a frame: loads a session into `window.sdk`.
async function startSession() {
  const Muxy = window.Muxy.default;
  Muxy.setup({ clientID: 'my-extension', quiet: true, transactionsEnabled: true });
  window.sdk = new Muxy.SDK();
  await window.sdk.loaded();
  const { user } = window.sdk;
  const { SandboxTwitch } = Muxy.Util.Environments;
  return {
    onPlatform: Muxy.Util.currentEnvironment() === SandboxTwitch,
    role: user.role,
    id: user.twitchID,
    opaque: user.twitchOpaqueID,
    linked: window.Twitch.ext.viewer.isLinked,
  };
}

// Runs in a frame: records messages by listener in `window.received`.
function recordMessages() {
  const { sdk, Twitch } = window;
  const received = { motd: [], whisper: [], otherUser: [], plain: [], global: [] };
  window.received = received;
  sdk.listen('motd', (...message) => received.motd.push(message));
  sdk.listen('secret', Twitch.ext.viewer.opaqueId, (...message) => received.whisper.push(message));
  sdk.listen('secret', 'U5551', (...message) => received.otherUser.push(message));
  Twitch.ext.listen('broadcast', (...message) => received.plain.push(message));
  Twitch.ext.listen('global', (...message) => received.global.push(message));
}

function waitForMessages(frame, name, count) {
  return frame
    .waitForFunction(([key, least]) => window.received[key].length >= least && window.received[key], [name, count])
    .then((handle) => handle.jsonValue());
}

// Waits until a frame receives its own whisper, because the helper's socket is not accessible.
function waitUntilListening(frame) {
  return frame.evaluate(async () => {
    let isListening = false;
    const { ext } = window.Twitch;
    const callback = () => {
      isListening = true;
    };
    ext.listen(`whisper-${ext.viewer.opaqueId}`, callback);
    while (!isListening) {
      await window.sdk.signedRequest('POST', 'whisper_self', { event: 'echo', data: {} });
    }
    ext.unlisten(`whisper-${ext.viewer.opaqueId}`, callback);
  });
}

async function exchangeMessages({ first, second, broadcaster }) {
  const frames = [first, second, broadcaster];
  await Promise.all(frames.map((frame) => frame.evaluate(recordMessages)));
  await Promise.all(frames.map(waitUntilListening));
  await broadcaster.evaluate(async () => {
    window.sdk.send('motd', { motd: 'hi' });
    window.sdk.send('secret', 'U5551', { for: 'the first' });
    window.Twitch.ext.send('broadcast', 'text/plain', 'plain words');
  });
  await waitForMessages(first, 'whisper', 1);
  await Promise.all(frames.map((frame) => waitForMessages(frame, 'plain', 2)));
  await broadcaster.evaluate(async () => {
    const message = { event: 'motd', data: { motd: 'to all' }, target: 'broadcast' };
    const body = JSON.stringify({ app_id: 'my-extension', role: 'backend' });
    const base = document.scripts[0].src.replace('/_emulator/platform-helper.js', '');
    const { token } = await (await fetch(`${base}/v1/e/authtoken`, { method: 'POST', body })).json();
    await fetch(`${base}/v1/e/extension_broadcast`, {
      method: 'POST',
      headers: { Authorization: `my-extension ${token}` },
      body: JSON.stringify(message),
    });
  });
  await Promise.all(frames.map((frame) => waitForMessages(frame, 'motd', 2)));
  return Promise.all(frames.map((frame) => frame.evaluate(() => window.received)));
}

async function purchases({ first }) {
  return first.evaluate(async () => {
    const { sdk } = window;
    window.MEDKIT_PURCHASABLE_ITEMS = [{ sku: 'hat', displayName: 'Hat', cost: { amount: 5, type: 'bits' } }];
    const purchased = new Promise((resolve) => {
      sdk.onUserPurchase((transaction, answer) => resolve([transaction.product.sku, answer]));
    });
    const cancelled = new Promise((resolve) => sdk.onUserPurchaseCanceled(() => resolve('cancelled')));
    sdk.purchase('hat');
    const [sku, answer] = await purchased;
    sdk.purchase('no such thing');
    return { products: (await sdk.getProducts()).length, sku, answer: await answer, other: await cancelled };
  });
}

// An anonymous frame with a fake clock: when does it refresh its token?
async function refresh(open) {
  const page = await open('anonymous.html', { before: (fresh) => fresh.clock.install() });
  const frame = page.frame({ name: 'anonymous' });
  await frame.waitForLoadState();
  await frame.evaluate(() => {
    window.tokens = [];
    window.Twitch.ext.onAuthorized(({ token }) => window.tokens.push(token));
  });
  const tokens = () => frame.evaluate(() => window.tokens.length);
  const waitForTokens = (count) =>
    frame.waitForFunction((least) => window.tokens.length >= least, count, { polling: 50 });
  await waitForTokens(1);
  await page.clock.runFor(REFRESH_EVERY - 1_000);
  const early = await tokens();
  await page.clock.runFor(1_000);
  await waitForTokens(2);
  const { opaqueId, id, isLinked } = await frame.evaluate(() => {
    const { viewer } = window.Twitch.ext;
    return { opaqueId: viewer.opaqueId, id: viewer.id, isLinked: viewer.isLinked };
  });
  return { early, anonymous: /^A/.test(opaqueId), id, isLinked };
}

browse(async (open) => {
  const page = await open('frames.html');
  const frames = Object.fromEntries(['first', 'second', 'broadcaster'].map((name) => [name, page.frame({ name })]));
  await Promise.all(Object.values(frames).map((frame) => frame.waitForLoadState()));
  const users = {};
  for (const [name, frame] of Object.entries(frames)) {
    users[name] = await frame.evaluate(startSession);
  }
  return {
    users,
    received: await exchangeMessages(frames),
    purchases: await purchases(frames),
    refresh: await refresh(open),
  };
});
