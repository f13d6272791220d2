// Who a session of the published SDK is, and how long it lasts. Moves the service's clock.
'use strict';

const { CHANNEL, as, outcome, post, run, url } = require('./session');

const MINUTE = 60_000;
const said = {};

async function statusOf(client, token) {
  return (await fetch(`${url}/v1/e/user_info`, { headers: { Authorization: `${client} ${token}` } })).status;
}

async function roles() {
  said.roles = {};
  for (const role of ['viewer', 'broadcaster', 'admin', 'backend']) {
    const sdk = await as(role, '5551');
    said.roles[role] = [sdk, await sdk.client.getUserInfo(sdk.identifier)];
  }
  // Asked again once all of them live: none has become another.
  for (const [role, [sdk, before]] of Object.entries(said.roles)) {
    const { role: now, user_id: userID } = await sdk.client.getUserInfo(sdk.identifier);
    said.roles[role] = { sdk: sdk.user.role, before: before.role, now, userID };
  }
}

async function instances() {
  const sdk = await as('viewer', '5551');
  const app = new sdk.Muxy.SDK('other_app');
  await app.loaded();
  await sdk.vote('poll', 1);
  await app.vote('poll', 2);
  said.instances = {
    same: new sdk.Muxy.SDK() === sdk,
    votes: [(await sdk.getVoteData('poll')).vote, (await app.getVoteData('poll')).vote],
    clients: [
      (await sdk.client.getUserInfo(sdk.identifier)).extension_id,
      (await app.client.getUserInfo(app.identifier)).extension_id,
    ],
  };
}

async function firstInstance() {
  const sdk = await as('viewer', '5551', { app: 'my_app' });
  const { extension_id: claimed } = await sdk.client.getUserInfo('my_app');
  said.firstInstance = { claimed, later: new sdk.Muxy.SDK().identifier };
}

async function addresses() {
  const slashed = await as('viewer', '5551', { base: `${url}/` });
  said.slashed = (await slashed.vote('slashed', 1)).count;
  const namespaced = await as('viewer', '5551', { base: `${url}/_ns/elsewhere` });
  said.namespaced = (await namespaced.getVoteData('slashed')).count;
  said.unreachable = (await outcome(() => as('viewer', '5551', { base: 'http://127.0.0.1:9' }))).rejected;
}

async function tokens() {
  const { token } = await post('/v1/e/authtoken', { app_id: 'sdk-extension', channel_id: CHANNEL, user_id: '42' });
  const sdk = await as('viewer', '5551', { jwt: token });
  said.ownToken = { id: sdk.user.twitchID, info: (await sdk.client.getUserInfo(sdk.identifier)).user_id };
  const broken = token.split('.').slice(0, 2).join('.');
  said.brokenToken = (await outcome(() => as('viewer', '5551', { jwt: broken }))).rejected;
}

// The SDK asks for another token every 25 minutes. The timer is held, and fires when the service's clock has moved.
function holdingRefreshes() {
  const refreshes = [];
  const { setInterval } = globalThis;
  globalThis.setInterval = (callback, ms, ...rest) =>
    ms === 25 * MINUTE ? refreshes.push(() => callback.apply(globalThis, rest)) : setInterval(callback, ms, ...rest);
  return { refreshes, release: () => Object.assign(globalThis, { setInterval }) };
}

async function refresh() {
  const { refreshes, release } = holdingRefreshes();
  const sdk = await as('viewer', '5551');
  release();
  const heard = new Promise((resolve) => sdk.listen('after', resolve));
  const { client } = sdk.Muxy;
  const first = client.token;

  await post('/_emulator/clock', { advance: 31 * MINUTE });
  said.expired = (await outcome(() => sdk.vote('late', 1))).rejected;

  const renewed = new Promise((resolve) => {
    const { updateAuth } = client;
    client.updateAuth = (token) => resolve(updateAuth.call(client, token));
  });
  refreshes.forEach((fire) => fire());
  await renewed;
  said.renewed = {
    timers: refreshes.length,
    vote: (await sdk.vote('late', 1)).vote,
    user: (await sdk.client.getUserInfo(sdk.identifier)).user_id,
    first: await statusOf(sdk.identifier, first),
    second: await statusOf(sdk.identifier, client.token),
  };
  const broadcaster = await as('broadcaster', CHANNEL);
  await broadcaster.signedRequest('POST', 'broadcast', { event: 'after', data: { n: 1 } });
  said.heardAfterwards = await heard;
  said.ahead = Math.round((broadcaster.getOffsetDate() - new Date()) / MINUTE);
}

run(async () => {
  for (const part of [roles, instances, firstInstance, addresses, tokens, refresh]) {
    await part();
  }
  return said;
});
