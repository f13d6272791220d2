// What pages of the published SDK say to each other. Prints what each listener heard, as [data, event].
//
// Nothing here waits for time to pass: that something is not heard is known once a later message has been heard.
'use strict';

const { CHANNEL, as, outcome, run } = require('./session');

const PATIENCE = 10_000;
const said = {};

// Resolves once the service has confirmed both of a page's channels.
function subscribed({ Muxy }) {
  const { channel, globalChannel } = Muxy.messenger;
  const confirmed = (each) =>
    each.subscribed || new Promise((resolve) => each.bind('pusher:subscription_succeeded', resolve));
  return within('subscription', Promise.all([channel, globalChannel].map(confirmed)));
}

function within(what, promise) {
  const late = new Promise((_, reject) => {
    setTimeout(() => reject(new Error(`nothing came: ${what}`)), PATIENCE);
  });
  return Promise.race([promise, late]);
}

// Keeps what a listener heard; `until` resolves when it has heard so much.
class Ear {
  constructor(sdk, ...target) {
    this.heard = [];
    this.waiting = [];
    this.sdk = sdk;
    this.handle = sdk.listen(...target, (data, event) => {
      this.heard.push([data ?? null, event]);
      this.waiting.forEach((check) => check());
    });
  }

  until(count) {
    const enough = new Promise((resolve) => {
      const check = () => this.heard.length >= count && resolve();
      this.waiting.push(check);
      check();
    });
    return within(`${count} messages; heard ${JSON.stringify(this.heard)}`, enough);
  }
}

// A message that every page of the channel hears, after all that was sent before it.
async function mark(sender, pages) {
  const data = { mark: Math.random() };
  const heard = pages.map(
    (page) => new Promise((resolve) => page.listen('mark', (got) => got.mark === data.mark && resolve())),
  );
  await sender.signedRequest('POST', 'broadcast', { event: 'mark', data, target: 'broadcast', user_id: CHANNEL });
  await within('mark', Promise.all(heard));
}

// What `send` does, with an answer to wait for, so that two messages come in a known order.
function sent(sdk, ...message) {
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
  const ears = [new Ear(viewer, 'motd'), new Ear(other, 'motd'), new Ear(broadcaster, 'motd')];
  await Promise.all([viewer, other, broadcaster].map(subscribed));
  await sent(broadcaster, 'motd', { motd: 'hi' });
  await sent(viewer, 'motd', { motd: 'from a viewer', text: 'Zażółć 🦊' });
  await Promise.all(ears.map((ear) => ear.until(2)));
  said.broadcast = ears.map((ear) => ear.heard);
}

async function withoutData({ viewer, broadcaster }) {
  const ear = new Ear(viewer, 'start');
  await sent(broadcaster, 'start');
  await ear.until(1);
  said.withoutData = ear.heard;
}

async function whispers({ viewer, other, broadcaster }) {
  const pages = [viewer, other];
  const [lettered, bare, others] = [
    new Ear(viewer, 'secret', 'U5551'),
    new Ear(viewer, 'secret', '5551'),
    new Ear(other, 'secret', 'U5552'),
  ];
  const toAll = new Ear(viewer, 'secret');
  await sent(broadcaster, 'secret', 'U5551', { to: 'U5551' });
  await sent(broadcaster, 'secret', '5551', { to: '5551' });
  await viewer.signedRequest('POST', 'whisper_self', { event: 'secret', data: { to: 'myself' } });
  await mark(broadcaster, pages);
  said.whisper = { lettered: lettered.heard, bare: bare.heard, other: others.heard, toAll: toAll.heard };
}

async function everywhere({ viewer, elsewhere, admin, broadcaster }) {
  const ears = [new Ear(viewer, 'news'), new Ear(elsewhere, 'news')];
  await subscribed(elsewhere);
  await admin.signedRequest('POST', 'extension_broadcast', { event: 'news', data: { to: 'all' }, target: 'broadcast' });
  await Promise.all(ears.map((ear) => ear.until(1)));
  await sent(broadcaster, 'news', { to: 'a channel' });
  await ears[0].until(2);
  await admin.signedRequest('POST', 'extension_broadcast', { event: 'news', data: { to: 'all, again' } });
  await Promise.all([ears[0].until(3), ears[1].until(2)]);
  said.everywhere = ears.map((ear) => ear.heard);
}

async function large({ viewer, broadcaster }) {
  const ear = new Ear(viewer, 'large');
  const data = { text: 'all work and no play '.repeat(1_000) };
  const noise = { text: Array.from({ length: 20_000 }, () => Math.random().toString(36)[2]).join('') };
  await sent(broadcaster, 'large', data);
  await ear.until(1);
  said.large = { length: data.text.length, same: ear.heard[0][0].text === data.text, event: ear.heard[0][1] };
  said.tooLarge = (await outcome(() => sent(broadcaster, 'large', noise))).rejected;
}

async function patterns({ viewer, broadcaster }) {
  const [pattern, exact] = [new Ear(viewer, 'vote_update:*'), new Ear(viewer, 'vote_update:round-7')];
  for (const event of ['vote_update:round-7', 'vote_update:round-8', 'vote_update', 'vote_update:a:b', 'vote']) {
    await sent(broadcaster, event, { event });
  }
  await mark(broadcaster, [viewer]);
  said.pattern = { pattern: pattern.heard.map(([, event]) => event), exact: exact.heard.map(([, event]) => event) };
}

async function duplicates({ viewer, admin, broadcaster }) {
  const ear = new Ear(viewer, 'twice');
  await sent(broadcaster, 'twice', { n: 1 });
  await sent(broadcaster, 'twice', { n: 1 });
  await admin.signedRequest('POST', 'extension_broadcast', { event: 'twice', data: { n: 1 } });
  await sent(broadcaster, 'twice', { n: 2 });
  await ear.until(2);
  said.duplicates = ear.heard;
}

async function inOrder({ viewer, broadcaster }) {
  const ear = new Ear(viewer, 'counted');
  for (let n = 0; n < 20; n += 1) {
    await sent(broadcaster, 'counted', { n });
  }
  await ear.until(20);
  said.inOrder = ear.heard.map(([{ n }]) => n);
}

async function leaving({ viewer, broadcaster }) {
  const ear = new Ear(viewer, 'left');
  await sent(broadcaster, 'left', { n: 1 });
  await ear.until(1);
  viewer.unlisten(ear.handle);
  await sent(broadcaster, 'left', { n: 2 });
  await mark(broadcaster, [viewer]);
  said.left = ear.heard;
}

async function overRest({ viewer, broadcaster }) {
  const ear = new Ear(viewer, 'rest');
  const message = { event: 'rest', target: 'broadcast', user_id: CHANNEL, data: { by: 'POST' } };
  const query = new URLSearchParams({ ...message, data: '{"by":"GET"}' });
  await broadcaster.signedRequest('POST', 'broadcast', message);
  await broadcaster.signedRequest('GET', `broadcast?${query}`);
  await ear.until(2);
  said.overRest = ear.heard;
}

// What does not concern a page is not heard by it: another environment's event, another extension's, another channel's.
async function foreign({ viewer, broadcaster, elsewhere, apart }) {
  const ear = new Ear(viewer, 'foreign');
  const there = new Ear(apart, 'foreign');
  await subscribed(apart);
  const asPage = (event) => broadcaster.signedRequest('POST', 'pusher_broadcast', { event, data: { event } });
  await asPage('production:sdk-extension:foreign');
  await asPage('sandbox:another:foreign');
  await asPage('foreign');
  await sent(elsewhere, 'foreign', { n: 1 });
  await sent(apart, 'foreign', { n: 2 });
  await there.until(1);
  await mark(broadcaster, [viewer]);
  said.foreign = { here: ear.heard, apart: there.heard };
}

run(async () => {
  const pages = {
    viewer: await as('viewer', '5551'),
    other: await as('viewer', '5552'),
    broadcaster: await as('broadcaster', CHANNEL),
    admin: await as('admin', '9001'),
    elsewhere: await as('viewer', '5553', { channelID: '888' }),
    apart: await as('viewer', '5551', { app: 'another-extension' }),
  };
  const parts = [
    broadcasts, withoutData, whispers, everywhere, large, patterns, duplicates, inOrder, leaving, overRest, foreign,
  ]; // prettier-ignore
  for (const part of parts) {
    await part(pages);
  }
  return said;
});
