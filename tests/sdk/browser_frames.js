// The published SDK in frames, where the service's stand-in for the platform's helper is all it has.
'use strict';

const { browse } = require('./browser');

const REFRESH_EVERY = 25 * 60_000;

// Runs in a frame: a loaded session under `sdk`.
async function begin() {
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

// Runs in a frame: keeps what is heard, by the name of what was listened to.
function keepHearing() {
  const { sdk, Twitch } = window;
  const heard = { motd: [], whisper: [], foreign: [], plain: [], global: [] };
  window.heard = heard;
  sdk.listen('motd', (...message) => heard.motd.push(message));
  sdk.listen('secret', Twitch.ext.viewer.opaqueId, (...message) => heard.whisper.push(message));
  sdk.listen('secret', 'U5551', (...message) => heard.foreign.push(message));
  Twitch.ext.listen('broadcast', (...message) => heard.plain.push(message));
  Twitch.ext.listen('global', (...message) => heard.global.push(message));
}

function until(frame, name, count) {
  return frame
    .waitForFunction(([key, least]) => window.heard[key].length >= least && window.heard[key], [name, count])
    .then((handle) => handle.jsonValue());
}

// The socket is the helper's own, so a message that comes back is how a frame is known to listen.
function untilListening(frame) {
  return frame.evaluate(async () => {
    let isListening = false;
    const { ext } = window.Twitch;
    const hear = () => {
      isListening = true;
    };
    ext.listen(`whisper-${ext.viewer.opaqueId}`, hear);
    while (!isListening) {
      await window.sdk.signedRequest('POST', 'whisper_self', { event: 'echo', data: {} });
    }
    ext.unlisten(`whisper-${ext.viewer.opaqueId}`, hear);
  });
}

async function conversation({ first, second, broadcaster }) {
  const frames = [first, second, broadcaster];
  await Promise.all(frames.map((frame) => frame.evaluate(keepHearing)));
  await Promise.all(frames.map(untilListening));
  await broadcaster.evaluate(async () => {
    window.sdk.send('motd', { motd: 'hi' });
    window.sdk.send('secret', 'U5551', { for: 'the first' });
    window.Twitch.ext.send('broadcast', 'text/plain', 'plain words');
  });
  await Promise.all([until(first, 'whisper', 1), ...frames.map((frame) => until(frame, 'plain', 2))]);
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
  await Promise.all(frames.map((frame) => until(frame, 'motd', 2)));
  return Promise.all(frames.map((frame) => frame.evaluate(() => window.heard)));
}

async function poll({ first, second, broadcaster }) {
  await first.evaluate(() => window.sdk.vote('poll', 1));
  await second.evaluate(() => window.sdk.vote('poll', 2));
  return broadcaster.evaluate(() => window.sdk.getVoteData('poll'));
}

async function purchases({ first }) {
  return first.evaluate(async () => {
    const { sdk } = window;
    window.MEDKIT_PURCHASABLE_ITEMS = [{ sku: 'hat', displayName: 'Hat', cost: { amount: 5, type: 'bits' } }];
    const bought = new Promise((resolve) => {
      sdk.onUserPurchase((transaction, answer) => resolve([transaction.product.sku, answer]));
    });
    const cancelled = new Promise((resolve) => sdk.onUserPurchaseCanceled(() => resolve('cancelled')));
    sdk.purchase('hat');
    const [sku, answer] = await bought;
    sdk.purchase('no such thing');
    return { products: (await sdk.getProducts()).length, sku, answer: await answer, other: await cancelled };
  });
}

async function rest({ first }) {
  return first.evaluate(async () => {
    const { ext } = window.Twitch;
    const changed = new Promise((resolve) => ext.configuration.onChanged(resolve));
    ext.configuration.set('broadcaster', '1', 'content');
    await changed;
    const followed = new Promise((resolve) => ext.actions.onFollow((...what) => resolve(what)));
    ext.actions.followChannel('channel');
    ext.bits.setUseLoopback(true);
    return { configuration: ext.configuration.broadcaster, followed: await followed };
  });
}

// A helper whose page's clock is ours: who is nobody in particular, and when it asks for another token.
async function refresh(open) {
  const page = await open('frame.html?channel_id=888', { before: (fresh) => fresh.clock.install() });
  await page.evaluate(() => {
    window.tokens = [];
    window.Twitch.ext.onAuthorized(({ token }) => window.tokens.push(token));
  });
  const tokens = () => page.evaluate(() => window.tokens.length);
  const untilTokens = (count) => page.waitForFunction((least) => window.tokens.length >= least, count, { polling: 50 });
  await untilTokens(1);
  await page.clock.runFor(REFRESH_EVERY - 1_000);
  const early = await tokens();
  await page.clock.runFor(1_000);
  await untilTokens(2);
  const { opaqueId, id, isLinked } = await page.evaluate(() => ({ ...window.Twitch.ext.viewer, onChanged: null }));
  return { early, anonymous: /^A/.test(opaqueId), id, isLinked };
}

browse(async (open) => {
  const page = await open('frames.html');
  const frames = Object.fromEntries(['first', 'second', 'broadcaster'].map((name) => [name, page.frame({ name })]));
  await Promise.all(Object.values(frames).map((frame) => frame.waitForLoadState()));
  const who = {};
  for (const [name, frame] of Object.entries(frames)) {
    who[name] = await frame.evaluate(begin);
  }
  return {
    who,
    poll: await poll(frames),
    heard: await conversation(frames),
    purchases: await purchases(frames),
    rest: await rest(frames),
    refresh: await refresh(open),
  };
});
