// The users that pages simulate: the published SDK without debugging options, in browser profiles of their own.
'use strict';

const { browse } = require('./browser');

// Runs in a page: starts a session unless the page has, and returns its identity.
async function identify(own) {
  const Muxy = window.Muxy && window.Muxy.default;
  if (Muxy && !Muxy.setupCalled) {
    if (own) {
      Muxy.debug(new Muxy.DebuggingOptions().role(own.role).channelID(own.channelID).userID(own.userID));
    }
    Muxy.setup({ clientID: 'my-extension', quiet: true });
  }
  window.session = window.session || new Muxy.SDK();
  await window.session.loaded();
  const { role, twitchID, twitchOpaqueID } = window.session.user;
  return { role, user: twitchID, opaque: twitchOpaqueID, channel: (window.messenger || Muxy.messenger).channelID };
}

async function openAs(open, path, own, options) {
  const page = await open(path, options);
  await page.waitForFunction(() => window.Muxy || window.session);
  page.identity = await page.evaluate(identify, own);
  return page;
}

async function identityOf(open, path, own, options) {
  return (await openAs(open, path, own, options)).identity;
}

// Refuses to store anything. The SDK only reads.
function refuseStorage(page) {
  return page.addInitScript(() => {
    Storage.prototype.setItem = () => {
      throw new DOMException('refused', 'SecurityError');
    };
  });
}

// Both identities of a page outside a frame that includes the platform's helper.
async function withHelper(open, query = '', own) {
  const page = await openAs(open, `frame.html${query}`, own);
  const helper = await page.evaluate(async () => {
    const { ext } = window.Twitch;
    const auth = await new Promise((resolve) => ext.onAuthorized(resolve));
    return { role: ext.viewer.role, user: ext.viewer.id, opaque: auth.userId, channel: auth.channelId };
  });
  return { sdk: page.identity, helper };
}

// Channel and role of the token that a page with version 1 of the SDK gets. `own` is what the page itself assigns.
async function firstIdentity(open, path, own = {}) {
  const page = await open(path);
  return page.evaluate(async (members) => {
    const { Muxy } = window;
    Object.assign(Muxy, members);
    Muxy.setup({ clientID: 'my-extension' });
    const { channel_id: channel, role } = await Muxy.authorize();
    return [role, channel];
  }, own);
}

const OWN = { testChannelID: '5', testJWTRole: 'broadcaster' };

function firstIdentities(open, path) {
  return Promise.all([
    firstIdentity(open, path),
    firstIdentity(open, `${path}?extcli_role=broadcaster&extcli_channel=888`),
    firstIdentity(open, path, OWN),
    firstIdentity(open, `${path}?extcli_channel=888`, OWN),
  ]);
}

browse(async (open) => {
  const first = await openAs(open, 'plain.html');
  const second = await openAs(open, 'plain.html');
  await first.evaluate(() => window.session.vote('lunch', 1));
  await second.evaluate(() => window.session.vote('lunch', 2));
  const again = await identityOf(open, 'plain.html', null, { beside: first });
  const module = await identityOf(open, 'module.html', null, { beside: first });
  const forms = await first.evaluate(() => {
    const { default: sdk, Muxy: Class } = window.Muxy;
    return [window.Muxy === sdk, typeof window.Muxy.setup, sdk instanceof Class];
  });
  return {
    profiles: [first.identity, second.identity],
    again,
    module,
    forms,
    withoutStorage: await identityOf(open, 'plain.html', null, { before: refuseStorage }),
    chosen: await identityOf(open, 'top.html?extcli_user=42&extcli_channel=888'),
    broadcaster: await identityOf(open, 'top.html?extcli_role=broadcaster&extcli_channel=888'),
    own: await identityOf(open, 'top.html', { role: 'viewer', channelID: '5', userID: '6' }),
    printed: await identityOf(open, 'printed.html', null, { beside: first }),
    starter: await identityOf(open, 'starter.html'),
    overOwn: await identityOf(open, 'top.html?extcli_user=7', { role: 'viewer', channelID: '5', userID: '6' }),
    object: await firstIdentities(open, 'sdk-1.0.html'),
    class: await firstIdentity(open, 'sdk-1.1.html?extcli_channel=888', OWN),
    helper: await withHelper(open),
    chosenHelper: await withHelper(open, '?extcli_user=42&extcli_channel=888'),
    helperOverOwn: await withHelper(open, '?user_id=43', { role: 'viewer', channelID: '5', userID: '6' }),
  };
});
