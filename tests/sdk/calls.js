// Drives the published SDK, as it comes from npm, in bare Node against the service whose URL is the first argument.
// Prints one JSON object: what each call resolved with or, under `refused`, rejected with.
'use strict';

const url = process.argv[2];

// What the SDK expects of a browser, and no more.
globalThis.window = globalThis;
globalThis.location = { search: '', protocol: 'http:' };
globalThis.document = { location: { protocol: 'http:' }, body: {} };
globalThis.XMLHttpRequest = require('xmlhttprequest-ssl');
globalThis.localStorage = { getItem: () => null, setItem() {}, removeItem() {} };
globalThis.WebSocket = class { send() {} close() {} };

// The SDK is a singleton with one identity; required anew, it is another.
async function as(role, userID) {
  const path = require.resolve('@muxy/extensions-js');
  delete require.cache[path];
  const SDK = require(path).default;
  SDK.debug(new SDK.DebuggingOptions().url(url).role(role).channelID('777').userID(userID));
  SDK.setup({ clientID: 'sdk-extension', quiet: true });
  const sdk = new SDK.SDK();
  await sdk.loaded();
  return sdk;
}

async function main() {
  const viewer = await as('viewer', '5551');
  const broadcaster = await as('broadcaster', '777');
  const admin = await as('admin', '9001');
  const said = {};

  said.user = { role: viewer.user.role, id: viewer.user.twitchID };
  said.clockOffset = Math.abs(viewer.getOffsetDate() - new Date());

  said.vote = await viewer.vote('poll-1', 3);
  said.poll = await broadcaster.getVoteData('poll-1');
  said.log = await admin.getFullVoteLogs('poll-1');

  said.firstAnswer = await viewer.rank('colour', 'blue');
  said.secondAnswer = await viewer.rank('colour', 'red');
  said.ranking = await broadcaster.getRankData('colour');
  await broadcaster.clearRankData('colour');
  said.clearedRanking = await broadcaster.getRankData('colour');

  await viewer.accumulate('feedback', { rating: 5 });
  said.buffer = await broadcaster.getAccumulateData('feedback', 0);

  await broadcaster.setChannelState({ round: 4 });
  await admin.setExtensionState({ season: 3 });
  await viewer.setViewerState({ team: 'red' });
  await viewer.setExtensionViewerState({ xp: 120 });
  said.allState = await viewer.getAllState();
  await admin.patchExtensionViewerState({
    5551: { hello: 'world' },
    12422: [{ op: 'add', path: '/foo', value: 'bar' }],
  });
  said.manyViewers = await admin.multiGetExtensionViewerState(['5551', '12422', '3']);
  await admin.setExtensionSecretState({ key: 1 });
  said.secretState = await admin.getExtensionSecretState();

  await broadcaster.setChannelConfig({ theme: 'dark' });
  await admin.setExtensionConfig({ release: '2026-11-21' });
  said.config = await viewer.getConfig();

  await broadcaster.signedRequest('POST', 'json_store?id=camp', JSON.stringify({ fires: 2 }));
  said.jsonStore = await viewer.getJSONStore('camp');
  said.userIds = await admin.getExtensionUsers();

  said.refused = {
    clear: await viewer.signedRequest('DELETE', 'vote?id=poll-1').catch((reason) => reason),
    value: await viewer.vote('poll-1', 1.5).catch((reason) => reason),
    jsonStore: await viewer.getJSONStore('nothing').catch((reason) => reason),
  };
  return said;
}

main().then(
  (said) => process.stdout.write(JSON.stringify(said), () => process.exit(0)),
  (error) => {
    process.stderr.write(`${error.stack || JSON.stringify(error)}\n`, () => process.exit(1));
  },
);
