// The published SDK on pages of their own, led to the service by its script alone.
'use strict';

const { browse, service } = require('./browser');

// Runs in a page: a loaded session under `sdk`; without `who`, with the identity that the SDK has by itself.
async function begin(who) {
  const Muxy = window.Muxy.default;
  if (who) {
    Muxy.debug(new Muxy.DebuggingOptions().role(who.role).channelID('777').userID(who.userID));
  }
  Muxy.setup({ clientID: 'my-extension', quiet: true });
  window.sdk = new Muxy.SDK();
  await window.sdk.loaded();
  return { role: window.sdk.user.role, id: window.sdk.user.twitchID };
}

async function session(open, path, who) {
  const page = await open(path);
  page.who = await page.evaluate(begin, who);
  return page;
}

// Runs in a page: keeps what is heard of an event, under its name.
function keepHearing([event, user]) {
  window.heard = window.heard || {};
  window.heard[event] = [];
  const keep = (...message) => window.heard[event].push(message);
  return user ? void window.sdk.listen(event, user, keep) : void window.sdk.listen(event, keep);
}

function subscribed(page) {
  return page.waitForFunction(() => {
    const { channel, globalChannel } = window.Muxy.default.messenger;
    return channel.subscribed && globalChannel.subscribed;
  });
}

function heard(page, event, count) {
  return page
    .waitForFunction(([name, least]) => window.heard[name].length >= least && window.heard[name], [event, count])
    .then((handle) => handle.jsonValue());
}

async function calls({ viewer, broadcaster, admin }) {
  const ofViewer = await viewer.evaluate(async () => {
    const { sdk } = window;
    return {
      vote: await sdk.vote('poll', 3),
      rank: await sdk.rank('colour', 'blue'),
      accumulate: await sdk.accumulate('feedback', { rating: 5 }),
      viewerState: [await sdk.setViewerState({ team: 'red' }), await sdk.getViewerState()],
      refused: await sdk.setChannelState({}).catch((error) => error),
      offset: Math.abs(sdk.getOffsetDate() - new Date()),
    };
  });
  const ofBroadcaster = await broadcaster.evaluate(async () => {
    const { sdk } = window;
    const rank = await sdk.getRankData('colour');
    const pin = await sdk.signedRequest('POST', 'gamelink/token', {});
    return {
      poll: await sdk.getVoteData('poll'),
      rank,
      clear: [await sdk.clearRankData('colour'), await sdk.getRankData('colour')],
      buffer: await sdk.getAccumulateData('feedback', 0),
      channelState: [await sdk.setChannelState({ round: 4 }), await sdk.getChannelState()],
      config: [await sdk.setChannelConfig({ theme: 'dark' }), await sdk.getConfig()],
      pin: pin.token,
      wrongPin: await sdk.validateCode('aB3xYz').catch((error) => error),
      bodyOfGet: await sdk.signedRequest('GET', 'broadcast', { event: 'e', data: {} }).catch((error) => error),
    };
  });
  const ofAdmin = await admin.evaluate(async () => {
    const { sdk } = window;
    return {
      patched: await sdk.patchExtensionViewerState({ 5551: { xp: 1 } }),
      states: await sdk.multiGetExtensionViewerState(['5551', '1']),
      log: await sdk.getFullVoteLogs('poll'),
      users: await sdk.getExtensionUsers(),
      codes: await sdk.signedRequest('PUT', 'codes', { names: ['Hat'], codes: [['HAT-1']] }),
      eligible: await sdk.getEligibleCodes(),
    };
  });
  return { ...ofViewer, ...ofBroadcaster, ...ofAdmin };
}

async function messages({ viewer, broadcaster }) {
  await viewer.evaluate(keepHearing, ['motd']);
  await viewer.evaluate(keepHearing, ['secret', 'U5551']);
  await broadcaster.evaluate(keepHearing, ['motd']);
  await Promise.all([viewer, broadcaster].map(subscribed));
  await broadcaster.evaluate(() => {
    window.sdk.send('motd', { motd: 'hi' });
    window.sdk.send('secret', 'U5551', { for: 'you' });
    window.sdk.send('motd', { text: 'long '.repeat(2_000) });
  });
  const summaries = (messages) => messages.map(([data, event]) => [event, data.motd || data.text.length]);
  return {
    ofViewer: summaries(await heard(viewer, 'motd', 2)),
    ofBroadcaster: summaries(await heard(broadcaster, 'motd', 2)),
    whisper: await heard(viewer, 'secret', 1),
  };
}

// To which addresses requests and sockets would go, told by what stands in for both.
async function addresses(open) {
  const page = await open('top.html', {
    before: (fresh) =>
      fresh.addInitScript(() => {
        window.asked = [];
        XMLHttpRequest.prototype.open = (method, url) => window.asked.push(url);
        window.WebSocket = class {
          constructor(url) {
            window.asked.push(url);
          }
        };
      }),
  });
  return page.evaluate(() => {
    window.asked.length = 0;
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
    return window.asked;
  });
}

browse(async (open) => {
  const pages = {
    viewer: await session(open, 'top.html', { role: 'viewer', userID: '5551' }),
    broadcaster: await session(open, 'top.html', { role: 'broadcaster', userID: '777' }),
    admin: await session(open, 'top.html', { role: 'admin', userID: '9001' }),
  };
  const unsaid = await session(open, 'top.html');
  const queried = await session(open, 'top.html?theme=dark', { role: 'viewer', userID: '42' });
  const namespaced = await session(open, 'namespaced/top.html', { role: 'viewer', userID: '5551' });
  return {
    who: Object.values({ ...pages, unsaid, queried }).map((page) => page.who),
    calls: await calls(pages),
    messages: await messages(pages),
    inNamespace: await namespaced.evaluate(async () => (await window.sdk.getVoteData('poll')).count),
    addresses: (await addresses(open)).map((address) => address.replace(service.replace(/^http/, ''), '://service')),
  };
});
