// Messages between pages of the published SDK. Prints what each listener received, as [data, event].
//
// Nothing here sleeps: a message counts as not received once a later one has arrived.
'use strict';

const { CHANNEL, startSession, outcome, run } = require('./session');

const TIMEOUT_MS = 10_000;
const results = {};

// Resolves once the service has confirmed both of a page's channels.
function waitUntilSubscribed({ Muxy }) {
  const { channel, globalChannel } = Muxy.messenger;
  const confirmed = (each) =>
    each.subscribed || new Promise((resolve) => each.bind('pusher:subscription_succeeded', resolve));
  return withTimeout('subscription', Promise.all([channel, globalChannel].map(confirmed)));
}

function withTimeout(description, promise) {
  const late = new Promise((_, reject) => {
    setTimeout(() => reject(new Error(`timed out: ${description}`)), TIMEOUT_MS);
  });
  return Promise.race([promise, late]);
}

// Records the messages of a listener.
class Listener {
  constructor(sdk, ...target) {
    this.received = [];
    this.waiting = [];
    this.sdk = sdk;
    this.handle = sdk.listen(...target, (data, event) => {
      this.received.push([data ?? null, event]);
      this.waiting.forEach((check) => check());
    });
  }

  waitFor(count) {
    const enough = new Promise((resolve) => {
      const check = () => this.received.length >= count && resolve();
      this.waiting.push(check);
      check();
    });
    return withTimeout(`${count} messages; received ${JSON.stringify(this.received)}`, enough);
  }
}

// Sends a marker to the channel, and waits until these pages have received it and all earlier messages.
async function sendMarker(sender, pages) {
  const data = { marker: Math.random() };
  const markers = pages.map(
    (page) => new Promise((resolve) => page.listen('marker', ({ marker }) => marker === data.marker && resolve())),
  );
  await sender.signedRequest('POST', 'broadcast', { event: 'marker', data, target: 'broadcast', user_id: CHANNEL });
  await withTimeout('marker', Promise.all(markers));
}

// Like `sdk.send`, but returns the promise of its request, so that messages can be sent in order.
function send(sdk, ...message) {
  const { client } = sdk;
  const { signedRequest } = client;
  return new Promise((resolve, reject) => {
    client.signedRequest = (...request) => {
      client.signedRequest = signedRequest;
      const answer = signedRequest.apply(client, request);
      answer.then(resolve, reject);
      return answer.catch(() => {});
    };
    sdk.send(...message);
  });
}

async function broadcasts({ viewer, other, broadcaster }) {
  const listeners = [new Listener(viewer, 'motd'), new Listener(other, 'motd'), new Listener(broadcaster, 'motd')];
  await Promise.all([viewer, other, broadcaster].map(waitUntilSubscribed));
  await send(broadcaster, 'motd', { motd: 'hi' });
  await send(viewer, 'motd', { motd: 'from a viewer', text: 'Zażółć 🦊' });
  await Promise.all(listeners.map((listener) => listener.waitFor(2)));
  results.broadcast = listeners.map((listener) => listener.received);
}

async function withoutData({ viewer, broadcaster }) {
  const listener = new Listener(viewer, 'start');
  await send(broadcaster, 'start');
  await listener.waitFor(1);
  results.withoutData = listener.received;
}

async function whispers({ viewer, other, broadcaster }) {
  const pages = [viewer, other];
  const [prefixed, bare, others] = [
    new Listener(viewer, 'secret', 'U5551'),
    new Listener(viewer, 'secret', '5551'),
    new Listener(other, 'secret', 'U5552'),
  ];
  const toAll = new Listener(viewer, 'secret');
  await send(broadcaster, 'secret', 'U5551', { to: 'U5551' });
  await send(broadcaster, 'secret', '5551', { to: '5551' });
  await viewer.signedRequest('POST', 'whisper_self', { event: 'secret', data: { to: 'myself' } });
  await sendMarker(broadcaster, pages);
  results.whisper = { prefixed: prefixed.received, bare: bare.received, other: others.received, toAll: toAll.received };
}

async function everywhere({ viewer, elsewhere, admin, broadcaster }) {
  const listeners = [new Listener(viewer, 'news'), new Listener(elsewhere, 'news')];
  await waitUntilSubscribed(elsewhere);
  await admin.signedRequest('POST', 'extension_broadcast', { event: 'news', data: { to: 'all' }, target: 'broadcast' });
  await Promise.all(listeners.map((listener) => listener.waitFor(1)));
  await send(broadcaster, 'news', { to: 'a channel' });
  await listeners[0].waitFor(2);
  await admin.signedRequest('POST', 'extension_broadcast', { event: 'news', data: { to: 'all, again' } });
  await Promise.all([listeners[0].waitFor(3), listeners[1].waitFor(2)]);
  results.everywhere = listeners.map((listener) => listener.received);
}

async function large({ viewer, broadcaster }) {
  const listener = new Listener(viewer, 'large');
  const data = { text: 'all work and no play '.repeat(1_000) };
  const noise = { text: Array.from({ length: 20_000 }, () => Math.random().toString(36)[2]).join('') };
  await send(broadcaster, 'large', data);
  await listener.waitFor(1);
  const [[{ text }, event]] = listener.received;
  results.large = { length: data.text.length, same: text === data.text, event };
  results.tooLarge = (await outcome(() => send(broadcaster, 'large', noise))).rejected;
}

async function patterns({ viewer, broadcaster }) {
  const [pattern, exact] = [new Listener(viewer, 'vote_update:*'), new Listener(viewer, 'vote_update:round-7')];
  for (const event of ['vote_update:round-7', 'vote_update:round-8', 'vote_update', 'vote_update:a:b', 'vote']) {
    await send(broadcaster, event, { event });
  }
  await sendMarker(broadcaster, [viewer]);
  const names = ({ received }) => received.map(([, event]) => event);
  results.pattern = { pattern: names(pattern), exact: names(exact) };
}

async function duplicates({ viewer, admin, broadcaster }) {
  const listener = new Listener(viewer, 'twice');
  await send(broadcaster, 'twice', { n: 1 });
  await send(broadcaster, 'twice', { n: 1 });
  await admin.signedRequest('POST', 'extension_broadcast', { event: 'twice', data: { n: 1 } });
  await send(broadcaster, 'twice', { n: 2 });
  await listener.waitFor(2);
  results.duplicates = listener.received;
}

async function inOrder({ viewer, broadcaster }) {
  const listener = new Listener(viewer, 'counted');
  for (let n = 0; n < 20; n += 1) {
    await send(broadcaster, 'counted', { n });
  }
  await listener.waitFor(20);
  results.inOrder = listener.received.map(([{ n }]) => n);
}

async function leaving({ viewer, broadcaster }) {
  const listener = new Listener(viewer, 'left');
  await send(broadcaster, 'left', { n: 1 });
  await listener.waitFor(1);
  viewer.unlisten(listener.handle);
  await send(broadcaster, 'left', { n: 2 });
  await sendMarker(broadcaster, [viewer]);
  results.left = listener.received;
}

async function overRest({ viewer, broadcaster }) {
  const listener = new Listener(viewer, 'rest');
  const message = { event: 'rest', target: 'broadcast', user_id: CHANNEL, data: { by: 'POST' } };
  const query = new URLSearchParams({ ...message, data: '{"by":"GET"}' });
  await broadcaster.signedRequest('POST', 'broadcast', message);
  await broadcaster.signedRequest('GET', `broadcast?${query}`);
  await listener.waitFor(2);
  results.overRest = listener.received;
}

// Events of another environment, extension or channel, which a page must not receive.
async function foreign({ viewer, broadcaster, elsewhere, otherExtension }) {
  const listener = new Listener(viewer, 'foreign');
  const other = new Listener(otherExtension, 'foreign');
  await waitUntilSubscribed(otherExtension);
  const asPage = (event) => broadcaster.signedRequest('POST', 'pusher_broadcast', { event, data: { event } });
  await asPage('production:sdk-extension:foreign');
  await asPage('sandbox:another:foreign');
  await asPage('foreign');
  await send(elsewhere, 'foreign', { n: 1 });
  await send(otherExtension, 'foreign', { n: 2 });
  await other.waitFor(1);
  await sendMarker(broadcaster, [viewer]);
  results.foreign = { page: listener.received, otherExtension: other.received };
}

run(async () => {
  const pages = {
    viewer: await startSession('viewer', '5551'),
    other: await startSession('viewer', '5552'),
    broadcaster: await startSession('broadcaster', CHANNEL),
    admin: await startSession('admin', '9001'),
    elsewhere: await startSession('viewer', '5553', { channelID: '888' }),
    otherExtension: await startSession('viewer', '5551', { app: 'another-extension' }),
  };
  const parts = [
    broadcasts, withoutData, whispers, everywhere, large, patterns, duplicates, inOrder, leaving, overRest, foreign,
  ]; // prettier-ignore
  for (const part of parts) {
    await part(pages);
  }
  return results;
});
