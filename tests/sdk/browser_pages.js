// The published SDK on top-level pages, connected to the service by its script only.
'use strict';

const { browse, service } = require('./browser');

// Runs in a page: loads a session into `window.sdk`.
async function startSession(user) {
  const Muxy = window.Muxy.default;
  Muxy.debug(new Muxy.DebuggingOptions().role(user.role).channelID('777').userID(user.userID));
  Muxy.setup({ clientID: 'my-extension', quiet: true });
  window.sdk = new Muxy.SDK();
  await window.sdk.loaded();
  return { role: window.sdk.user.role, id: window.sdk.user.twitchID };
}

async function openPage(open, path, user) {
  const page = await open(path);
  page.user = await page.evaluate(startSession, user);
  return page;
}

// Runs in a page: records the messages of an event in `window.received`.
function recordMessages([event, user]) {
  window.received = window.received || {};
  window.received[event] = [];
  const record = (...message) => window.received[event].push(message);
  return user ? void window.sdk.listen(event, user, record) : void window.sdk.listen(event, record);
}

function waitUntilSubscribed(page) {
  return page.waitForFunction(() => {
    const { channel, globalChannel } = window.Muxy.default.messenger;
    return channel.subscribed && globalChannel.subscribed;
  });
}

function waitForMessages(page, event, count) {
  return page
    .waitForFunction(([name, least]) => window.received[name].length >= least && window.received[name], [event, count])
    .then((handle) => handle.jsonValue());
}

async function calls({ viewer, broadcaster, admin }) {
  const viewerCalls = await viewer.evaluate(async () => {
    const { sdk } = window;
    return {
      vote: await sdk.vote('poll', 3),
      rank: await sdk.rank('colour', 'blue'),
      viewerState: [await sdk.setViewerState({ team: 'red' }), await sdk.getViewerState()],
      forbidden: await sdk.setChannelState({}).catch((error) => error),
      offset: Math.abs(sdk.getOffsetDate() - new Date()),
    };
  });
  const broadcasterCalls = await broadcaster.evaluate(async () => {
    const { sdk } = window;
    return {
      poll: await sdk.getVoteData('poll'),
      clear: [await sdk.clearRankData('colour'), await sdk.getRankData('colour')],
      wrongPin: await sdk.validateCode('aB3xYz').catch((error) => error),
      getWithBody: await sdk.signedRequest('GET', 'broadcast', { event: 'e', data: {} }).catch((error) => error),
    };
  });
  const adminCalls = await admin.evaluate(async () => {
    const { sdk } = window;
    return {
      patched: await sdk.patchExtensionViewerState({ 5551: { xp: 1 } }),
      log: await sdk.getFullVoteLogs('poll'),
      codes: await sdk.signedRequest('PUT', 'codes', { names: ['Hat'], codes: [['HAT-1']] }),
    };
  });
  return { ...viewerCalls, ...broadcasterCalls, ...adminCalls };
}

async function messages({ viewer, broadcaster }) {
  await viewer.evaluate(recordMessages, ['motd']);
  await viewer.evaluate(recordMessages, ['secret', 'U5551']);
  await broadcaster.evaluate(recordMessages, ['motd']);
  await Promise.all([viewer, broadcaster].map(waitUntilSubscribed));
  await broadcaster.evaluate(() => {
    window.sdk.send('motd', { motd: 'hi' });
    window.sdk.send('secret', 'U5551', { for: 'you' });
    window.sdk.send('motd', { text: 'long '.repeat(2_000) });
  });
  const summaries = (messages) => messages.map(([data, event]) => [event, data.motd || data.text.length]);
  return {
    viewer: summaries(await waitForMessages(viewer, 'motd', 2)),
    broadcaster: summaries(await waitForMessages(broadcaster, 'motd', 2)),
    whisper: await waitForMessages(viewer, 'secret', 1),
  };
}

// The events that the service sends by itself.
async function automaticEvents({ viewer, broadcaster }) {
  const events = ['vote_update:*', 'json_store_update:motd', 'channel_state_update', 'channel_config_update'];
  for (const event of events) {
    await viewer.evaluate(recordMessages, [event]);
  }
  await broadcaster.evaluate(async () => {
    const { sdk } = window;
    await sdk.signedRequest('POST', 'json_store?id=motd', { text: 'hi' });
    await sdk.setChannelState({ round: 5 });
    await sdk.setChannelConfig({ theme: 'light' });
    await sdk.vote('heard', 2);
  });
  const received = [];
  for (const event of events) {
    received.push(...(await waitForMessages(viewer, event, 1)));
  }
  return received;
}

// Returns the addresses of requests and sockets, with mocks in place of both.
async function addresses(open) {
  const page = await open('top.html', {
    before: (fresh) =>
      fresh.addInitScript(() => {
        window.opened = [];
        XMLHttpRequest.prototype.open = (method, url) => window.opened.push(url);
        window.WebSocket = class {
          constructor(url) {
            window.opened.push(url);
          }
        };
      }),
  });
  return page.evaluate(() => {
    window.opened.length = 0;
    for (const url of [
      'https://api.muxy.io/v1/e/vote?id=a',
      'https://sandbox.api.muxy.io/v1/e/vote',
      'https://sockjs-us2.pusher.com:443/pusher/app/key/1/2/xhr_streaming',
      'https://api.muxy.io.example/v1/e/vote',
      'https://info.muxy.io/',
      'own/file.json?of=https://api.muxy.io/v1/e/vote',
    ]) {
      new XMLHttpRequest().open('GET', url);
    }
    for (const url of ['wss://ws-us2.pusher.com:443/app/key?protocol=7', 'wss://ws.example/app/key']) {
      new window.WebSocket(url);
    }
    return window.opened;
  });
}

browse(async (open) => {
  const pages = {
    viewer: await openPage(open, 'top.html', { role: 'viewer', userID: '5551' }),
    broadcaster: await openPage(open, 'top.html', { role: 'broadcaster', userID: '777' }),
    admin: await openPage(open, 'top.html', { role: 'admin', userID: '9001' }),
  };
  const withQuery = await openPage(open, 'top.html?theme=dark', { role: 'viewer', userID: '42' });
  const namespaced = await openPage(open, 'namespaced/top.html', { role: 'viewer', userID: '5551' });
  return {
    users: Object.values({ ...pages, withQuery }).map((page) => page.user),
    calls: await calls(pages),
    messages: await messages(pages),
    automaticEvents: await automaticEvents(pages),
    inNamespace: await namespaced.evaluate(async () => (await window.sdk.getVoteData('poll')).count),
    addresses: (await addresses(open)).map((address) => address.replace(service.replace(/^http/, ''), '://service')),
  };
});
