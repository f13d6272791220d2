// Identity and lifetime of the published SDK's sessions. Moves the service's clock.
'use strict';

const { CHANNEL, startSession, outcome, post, run, url } = require('./session');

const MINUTE = 60_000;
const results = {};

async function statusOf(client, token) {
  return (await fetch(`${url}/v1/e/user_info`, { headers: { Authorization: `${client} ${token}` } })).status;
}

async function roles() {
  results.roles = {};
  for (const role of ['viewer', 'broadcaster', 'admin', 'backend']) {
    const sdk = await startSession(role, '5551');
    results.roles[role] = [sdk, await sdk.client.getUserInfo(sdk.identifier)];
  }
  // Read again once all sessions exist: none has changed its identity.
  for (const [role, [sdk, before]] of Object.entries(results.roles)) {
    const { role: now, user_id: userID } = await sdk.client.getUserInfo(sdk.identifier);
    results.roles[role] = { sdk: sdk.user.role, before: before.role, now, userID };
  }
}

async function instances() {
  const sdk = await startSession('viewer', '5551');
  const app = new sdk.Muxy.SDK('other_app');
  await app.loaded();
  await sdk.vote('poll', 1);
  await app.vote('poll', 2);
  results.instances = {
    same: new sdk.Muxy.SDK() === sdk,
    votes: [(await sdk.getVoteData('poll')).vote, (await app.getVoteData('poll')).vote],
    clients: [
      (await sdk.client.getUserInfo(sdk.identifier)).extension_id,
      (await app.client.getUserInfo(app.identifier)).extension_id,
    ],
  };
}

async function firstInstance() {
  const sdk = await startSession('viewer', '5551', { app: 'my_app' });
  const { extension_id: claimed } = await sdk.client.getUserInfo('my_app');
  results.firstInstance = { claimed, later: new sdk.Muxy.SDK().identifier };
}

async function addresses() {
  const slashed = await startSession('viewer', '5551', { base: `${url}/` });
  results.slashed = (await slashed.vote('slashed', 1)).count;
  const namespaced = await startSession('viewer', '5551', { base: `${url}/_ns/elsewhere` });
  results.namespaced = (await namespaced.getVoteData('slashed')).count;
  results.unreachable = (await outcome(() => startSession('viewer', '5551', { base: 'http://127.0.0.1:9' }))).rejected;
}

async function tokens() {
  const { token } = await post('/v1/e/authtoken', { app_id: 'sdk-extension', channel_id: CHANNEL, user_id: '42' });
  const sdk = await startSession('viewer', '5551', { jwt: token });
  results.ownToken = { id: sdk.user.twitchID, info: (await sdk.client.getUserInfo(sdk.identifier)).user_id };
  const broken = token.split('.').slice(0, 2).join('.');
  results.brokenToken = (await outcome(() => startSession('viewer', '5551', { jwt: broken }))).rejected;
}

// The SDK refreshes its token every 25 minutes. Collects these timers, to run them after the service's clock has moved.
function holdRefreshes() {
  const refreshes = [];
  const { setInterval } = globalThis;
  globalThis.setInterval = (callback, ms, ...rest) =>
    ms === 25 * MINUTE ? refreshes.push(() => callback.apply(globalThis, rest)) : setInterval(callback, ms, ...rest);
  return { refreshes, release: () => Object.assign(globalThis, { setInterval }) };
}

async function refresh() {
  const { refreshes, release } = holdRefreshes();
  const sdk = await startSession('viewer', '5551');
  release();
  const received = new Promise((resolve) => sdk.listen('after', resolve));
  const { client } = sdk.Muxy;
  const first = client.token;

  await post('/_emulator/clock', { advance: 31 * MINUTE });
  results.expired = (await outcome(() => sdk.vote('late', 1))).rejected;

  const renewed = new Promise((resolve) => {
    const { updateAuth } = client;
    client.updateAuth = (token) => resolve(updateAuth.call(client, token));
  });
  refreshes.forEach((fire) => fire());
  await renewed;
  results.renewed = {
    timers: refreshes.length,
    vote: (await sdk.vote('late', 1)).vote,
    user: (await sdk.client.getUserInfo(sdk.identifier)).user_id,
    first: await statusOf(sdk.identifier, first),
    second: await statusOf(sdk.identifier, client.token),
  };
  const broadcaster = await startSession('broadcaster', CHANNEL);
  await broadcaster.signedRequest('POST', 'broadcast', { event: 'after', data: { n: 1 } });
  results.receivedAfterwards = await received;
  results.minutesAhead = Math.round((broadcaster.getOffsetDate() - new Date()) / MINUTE);
}

run(async () => {
  for (const part of [roles, instances, firstInstance, addresses, tokens, refresh]) {
    await part();
  }
  return results;
});
