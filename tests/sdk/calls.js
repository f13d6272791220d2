// Makes every call of the published SDK that sends a request, against an empty service. Prints what each call resolved
// with (`resolved`) or rejected with (`rejected`), by name, and the names of the methods that were called.
'use strict';

const { CHANNEL, startSession, outcome, post, run, url } = require('./session');

const EXTENSION = 'sdk-extension';
const resolved = {};
const rejected = {};
const called = new Set();

async function record(name, call) {
  const result = await outcome(call);
  if (result.rejected === undefined) {
    resolved[name] = result.resolved;
  } else {
    rejected[name] = result.rejected;
  }
}

// Returns a proxy that adds the names of called methods to `called`.
function recordCalls(sdk) {
  return new Proxy(sdk, {
    get(target, name) {
      if (typeof target[name] === 'function') {
        called.add(name);
      }
      return target[name];
    },
  });
}

async function votes({ viewer, broadcaster, admin }) {
  await record('vote', () => viewer.vote('poll-1', 3));
  await record('defaultVote', () => viewer.vote('', 2));
  await record('poll', () => broadcaster.getVoteData('poll-1'));
  await record('defaultPoll', () => viewer.getVoteData(''));
  await record('log', () => admin.getFullVoteLogs('poll-1'));
  await record('fractionalVote', () => viewer.vote('poll-1', 1.5));
  await record('clearingAsViewer', () => viewer.signedRequest('DELETE', 'vote?id=poll-1'));
  await record('logAsViewer', () => viewer.getFullVoteLogs('poll-1'));
}

async function ranking({ viewer, broadcaster }) {
  await record('firstAnswer', () => viewer.rank('colour', 'blue'));
  await record('secondAnswer', () => viewer.rank('colour', 'red'));
  await record('ranking', () => broadcaster.getRankData('colour'));
  await record('rankingByAlias', () => broadcaster.getRankingData('colour'));
  await record('clearing', () => broadcaster.clearRankData('colour'));
  await record('clearedRanking', () => broadcaster.getRankData('colour'));
  await record('clearingByAlias', () => broadcaster.clearRanking('colour'));
}

async function accumulation({ viewer, broadcaster }) {
  await record('accumulated', () => viewer.accumulate('feedback', { rating: 5 }));
  await record('buffer', () => broadcaster.getAccumulateData('feedback', 0));
  const after = resolved.buffer.latest + 1;
  await record('bufferAfterwards', () => broadcaster.getAccumulation('feedback', after));
  await record('bufferWithoutStart', () => broadcaster.getAccumulateData('feedback'));
}

async function stores({ viewer, broadcaster, admin }) {
  await record('channelStateSet', () => broadcaster.setChannelState({ round: 4 }));
  await record('channelStateSetByViewer', () => viewer.setChannelState({ round: 5 }));
  await record('extensionStateSet', () => admin.setExtensionState({ season: 3 }));
  await record('viewerStateSet', () => viewer.setViewerState({ team: 'red' }));
  await record('extensionViewerStateSet', () => viewer.setExtensionViewerState({ xp: 120 }));
  await record('channelState', () => viewer.getChannelState());
  await record('extensionState', () => viewer.getExtensionState());
  await record('viewerState', () => viewer.getViewerState());
  await record('extensionViewerState', () => viewer.getExtensionViewerState());
  await record('viewerStateOfAnother', () => broadcaster.getViewerState());
  await record('allState', () => viewer.getAllState());
  await record('manyPatched', () =>
    admin.patchExtensionViewerState({
      5551: { hello: 'world' },
      12422: [{ op: 'add', path: '/foo', value: 'bar' }],
    }),
  );
  await record('manyViewers', () => admin.multiGetExtensionViewerState(['5551', '12422', '3']));
  await record('secretStateSet', () => admin.setExtensionSecretState({ key: 1 }));
  await record('secretState', () => admin.getExtensionSecretState());
  await record('secretStateAsViewer', () => viewer.getExtensionSecretState());
}

// Only the SDK's inner client has patches.
async function patches({ viewer, broadcaster, admin }) {
  const patch = [{ op: 'add', path: '/patched', value: true }];
  await record('extensionStatePatched', () => admin.client.patchExtensionState(EXTENSION, patch));
  await record('channelStatePatched', () => broadcaster.client.patchChannelState(EXTENSION, patch));
  await record('viewerStatePatched', () => viewer.client.patchViewerState(EXTENSION, { team: null, patched: true }));
  await record('secretStatePatched', () => admin.client.patchExtensionSecretState(EXTENSION, patch));
  await record('badPatch', () =>
    broadcaster.client.patchChannelState(EXTENSION, [{ op: 'test', path: '/round', value: 9 }, ...patch]),
  );
  await record('patchedState', () => viewer.getAllState());
  await record('patchedSecret', () => admin.getExtensionSecretState());
}

async function configuration({ viewer, broadcaster, admin }) {
  await record('channelConfigSet', () => broadcaster.setChannelConfig({ theme: 'dark' }));
  await record('extensionConfigSet', () => admin.setExtensionConfig({ release: '2026-11-21' }));
  await record('channelConfig', () => viewer.getChannelConfig());
  await record('extensionConfig', () => viewer.getExtensionConfig());
  await record('config', () => viewer.getConfig());
  await record('channelConfigsPatched', () =>
    admin.client.patchChannelConfig(EXTENSION, { [CHANNEL]: { foo: 'bar' }, 12422: { foo: 'elsewhere' } }),
  );
  await record('extensionConfigPatched', () =>
    admin.client.patchExtensionConfig(EXTENSION, [{ op: 'add', path: '/a', value: 1 }]),
  );
  await record('patchedConfig', () => viewer.getConfig());
}

async function jsonStore({ viewer, broadcaster }) {
  await broadcaster.signedRequest('POST', 'json_store?id=camp', JSON.stringify({ fires: 2 }));
  await broadcaster.signedRequest('POST', 'json_store', { fires: 0 });
  await record('jsonStore', () => viewer.getJSONStore('camp'));
  await record('defaultJsonStore', () => viewer.getJSONStore());
  await record('noJsonStore', () => viewer.getJSONStore('nothing'));
}

async function pins({ viewer, broadcaster }) {
  const { pin, token } = await post('/v1/e/pin', { identifier: EXTENSION });
  const status = async () =>
    (await fetch(`${url}/v1/e/user_info`, { headers: { Authorization: `${EXTENSION} ${token}` } })).status;

  await record('noPinToken', () => broadcaster.pinTokenExists());
  await record('statusBeforePin', status);
  await record('wrongPin', () => broadcaster.validateCode('aB3xYz'));
  await record('pinOfViewer', () => viewer.validateCode(pin));
  await record('validated', () => broadcaster.validateCode(pin));
  await record('pinToken', () => broadcaster.pinTokenExists());
  await record('statusAfterPin', status);
  await record('revoked', () => broadcaster.revokeAllPINCodes());
  await record('revokedPinToken', () => broadcaster.pinTokenExists());
  await record('statusAfterRevocation', status);
  await record('gamePin', () => broadcaster.signedRequest('POST', 'gamelink/token', {}));
  await record('gamePinWithStringBody', () => broadcaster.signedRequest('POST', 'gamelink/token', JSON.stringify({})));
}

async function codes({ viewer, admin }) {
  const sets = { names: ['Hat', 'Sword'], codes: [['HAT-1', 'HAT-2'], ['SWORD-1']] };
  const grant = { prizes: [0], prize_limits: [1, 1], users: ['5551'], correct: 1, cutoff_timestamp: 4e9 };
  await record('codesPut', () => admin.signedRequest('PUT', 'codes', sets));
  await record('codesPutByViewer', () => viewer.signedRequest('PUT', 'codes', sets));
  await record('notYetEligible', () => viewer.getEligibleCodes());
  await admin.signedRequest('POST', 'codes/mark_from_list', grant);
  await record('eligible', () => viewer.getEligibleCodes());
  await record('redeemed', () => viewer.redeemCode(0));
  await record('redeemedTooOften', () => viewer.redeemCode(0));
  await record('held', () => viewer.getRedeemedCodes());
  await record('eligibleAfterwards', () => viewer.getEligibleCodes());
}

async function requests({ viewer, broadcaster }) {
  const message = { event: 'motd', data: { motd: 'hi' }, target: 'broadcast', user_id: CHANNEL };
  const query = new URLSearchParams({ ...message, data: JSON.stringify(message.data) });
  await record('datastream', () => viewer.signedRequest('POST', 'datastream', { click: 1 }));
  await record('broadcastByGet', () => broadcaster.signedRequest('GET', 'broadcast', message));
  await record('broadcastByGetWithQuery', () => broadcaster.signedRequest('GET', `broadcast?${query}`));
  await record('broadcastByPost', () => broadcaster.signedRequest('POST', 'broadcast', message));
  await record('unknownEndpoint', () => viewer.signedRequest('GET', 'no/such/endpoint'));
}

async function users({ viewer, admin }) {
  await record('userIds', () => admin.getExtensionUsers());
  await record('userIdsAsViewer', () => viewer.getExtensionUsers());
  await record('userInfo', () => viewer.client.getUserInfo(EXTENSION));
  const user = await viewer.getUser();
  await record('user', () => ({ role: user.role, id: user.twitchID, opaque: user.twitchOpaqueID }));
  await record('clockOffset', () => Math.abs(viewer.getOffsetDate() - new Date()));
}

async function trivia({ viewer, broadcaster, admin }) {
  const texts = (id) => ({ id, name: id.toUpperCase(), short_name: id, description: `What is ${id}?` });
  await record('noTeam', () => viewer.getExtensionTriviaJoinedTeam());
  await record('teamJoined', () => viewer.joinExtensionTriviaTeam());
  await record('team', () => viewer.getExtensionTriviaJoinedTeam());
  await record('questionAdded', () => admin.addExtensionTriviaQuestion(texts('q1')));
  await record('questionAddedByViewer', () => viewer.addExtensionTriviaQuestion(texts('q2')));
  await record('optionAdded', () => admin.addExtensionTriviaOptionToQuestion('q1', texts('o1')));
  await record('secondOptionAdded', () => admin.addExtensionTriviaOptionToQuestion('q1', texts('o2')));
  await record('thirdOptionAdded', () => admin.addExtensionTriviaOptionToQuestion('q1', texts('o3')));
  await record('optionRemoved', () => admin.removeExtensionTriviaOptionFromQuestion('q1', 'o3'));
  await record('inactiveQuestions', () => viewer.getExtensionTriviaQuestions());
  await record('voteOnInactive', () => viewer.setExtensionTriviaQuestionVote('q1', 'o1'));
  await record('unlocked', () => admin.setExtensionTriviaQuestionState('q1', 'state-unlocked'));
  await record('triviaVote', () => viewer.setExtensionTriviaQuestionVote('q1', 'o1'));
  await record('triviaVoteOfBroadcaster', () => broadcaster.setExtensionTriviaQuestionVote('q1', 'o1'));
  await record('questions', () => viewer.getExtensionTriviaQuestions());
  await record('resultsWithoutWinner', () => admin.setExtensionTriviaQuestionState('q1', 'state-results'));
  await record('results', () => admin.setExtensionTriviaQuestionState('q1', 'state-results', 'o1'));
  await record('question', () => viewer.getExtensionTriviaQuestion('q1'));
  await record('leaderboard', () => admin.getExtensionTriviaLeaderboard());
  await record('questionRemoved', () => admin.removeExtensionTriviaQuestion('q1'));
  await record('questionsAfterwards', () => admin.getExtensionTriviaQuestions());
}

// The SDK's development mode simulates a purchase, which takes three seconds.
async function purchases({ viewer }) {
  const products = [{ sku: 'SKU1', displayName: 'A hat', cost: { amount: 5, type: 'bits' } }];
  await record('noProducts', () => viewer.getProducts());
  window.MEDKIT_PURCHASABLE_ITEMS = products;
  await record('products', () => viewer.getProducts());
  const wait = globalThis.setTimeout;
  globalThis.setTimeout = (callback, ms, ...rest) => wait(callback, ms === 3000 ? 0 : ms, ...rest);
  await record('purchase', async () => {
    const purchased = new Promise((resolve) => {
      viewer.onUserPurchase((transaction, answer) => resolve({ transaction, answer }));
    });
    viewer.purchase('SKU1');
    const { transaction, answer } = await purchased;
    return { product: transaction.product.sku, answer: await answer };
  });
  globalThis.setTimeout = wait;
  viewer.onUserPurchaseCanceled(() => {}); // development mode cancels no purchase
}

run(async () => {
  // In sequence, because each session replaces the module that `require` finds.
  const session = {
    viewer: recordCalls(await startSession('viewer', '5551')),
    broadcaster: recordCalls(await startSession('broadcaster', CHANNEL)),
    admin: recordCalls(await startSession('admin', '9001')),
  };
  const parts = [
    votes, ranking, accumulation, stores, patches, configuration, jsonStore, pins, codes, requests, users,
    purchases, trivia,
  ]; // prettier-ignore
  for (const part of parts) {
    await part(session);
  }
  const methods = Object.getOwnPropertyNames(Object.getPrototypeOf(session.viewer));
  return { resolved, rejected, called: [...called], methods };
});
