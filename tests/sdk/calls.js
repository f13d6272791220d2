// Every call of the published SDK that makes a request, in one story against an empty service. Prints, by name, what
// each resolved with (`said`) or rejected with (`refused`), and the methods that were called.
'use strict';

const { CHANNEL, as, outcome, post, run, url } = require('./session');

const EXTENSION = 'sdk-extension';
const said = {};
const refused = {};
const called = new Set();

async function row(name, call) {
  const { resolved, rejected } = await outcome(call);
  if (rejected === undefined) {
    said[name] = resolved;
  } else {
    refused[name] = rejected;
  }
  return resolved;
}

// The same object, which notes the names of the methods that are called.
function noting(sdk) {
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
  await row('vote', () => viewer.vote('poll-1', 3));
  await row('voteOnTheDefault', () => viewer.vote('', 2));
  await row('poll', () => broadcaster.getVoteData('poll-1'));
  await row('defaultPoll', () => viewer.getVoteData(''));
  await row('log', () => admin.getFullVoteLogs('poll-1'));
  await row('fractionalVote', () => viewer.vote('poll-1', 1.5));
  await row('clearingAsViewer', () => viewer.signedRequest('DELETE', 'vote?id=poll-1'));
  await row('logAsViewer', () => viewer.getFullVoteLogs('poll-1'));
}

async function ranking({ viewer, broadcaster }) {
  await row('firstAnswer', () => viewer.rank('colour', 'blue'));
  await row('secondAnswer', () => viewer.rank('colour', 'red'));
  await row('ranking', () => broadcaster.getRankData('colour'));
  await row('rankingByItsOtherName', () => broadcaster.getRankingData('colour'));
  await row('clearing', () => broadcaster.clearRankData('colour'));
  await row('clearedRanking', () => broadcaster.getRankData('colour'));
  await row('clearingByItsOtherName', () => broadcaster.clearRanking('colour'));
}

async function accumulation({ viewer, broadcaster }) {
  await row('accumulated', () => viewer.accumulate('feedback', { rating: 5 }));
  await row('buffer', () => broadcaster.getAccumulateData('feedback', 0));
  const after = said.buffer.latest + 1;
  await row('bufferAfterwards', () => broadcaster.getAccumulation('feedback', after));
  await row('bufferWithoutStart', () => broadcaster.getAccumulateData('feedback'));
}

async function stores({ viewer, broadcaster, admin }) {
  await row('channelStateSet', () => broadcaster.setChannelState({ round: 4 }));
  await row('channelStateSetByViewer', () => viewer.setChannelState({ round: 5 }));
  await row('extensionStateSet', () => admin.setExtensionState({ season: 3 }));
  await row('viewerStateSet', () => viewer.setViewerState({ team: 'red' }));
  await row('extensionViewerStateSet', () => viewer.setExtensionViewerState({ xp: 120 }));
  await row('channelState', () => viewer.getChannelState());
  await row('extensionState', () => viewer.getExtensionState());
  await row('viewerState', () => viewer.getViewerState());
  await row('extensionViewerState', () => viewer.getExtensionViewerState());
  await row('viewerStateOfAnother', () => broadcaster.getViewerState());
  await row('allState', () => viewer.getAllState());
  await row('manyPatched', () =>
    admin.patchExtensionViewerState({
      5551: { hello: 'world' },
      12422: [{ op: 'add', path: '/foo', value: 'bar' }],
    }),
  );
  await row('manyViewers', () => admin.multiGetExtensionViewerState(['5551', '12422', '3']));
  await row('secretStateSet', () => admin.setExtensionSecretState({ key: 1 }));
  await row('secretState', () => admin.getExtensionSecretState());
  await row('secretStateAsViewer', () => viewer.getExtensionSecretState());
}

// The patches are on the SDK's inner client.
async function patches({ viewer, broadcaster, admin }) {
  const patch = [{ op: 'add', path: '/patched', value: true }];
  await row('extensionStatePatched', () => admin.client.patchExtensionState(EXTENSION, patch));
  await row('channelStatePatched', () => broadcaster.client.patchChannelState(EXTENSION, patch));
  await row('viewerStatePatched', () => viewer.client.patchViewerState(EXTENSION, { team: null, patched: true }));
  await row('secretStatePatched', () => admin.client.patchExtensionSecretState(EXTENSION, patch));
  await row('badPatch', () =>
    broadcaster.client.patchChannelState(EXTENSION, [{ op: 'test', path: '/round', value: 9 }, ...patch]),
  );
  await row('patchedState', () => viewer.getAllState());
  await row('patchedSecret', () => admin.getExtensionSecretState());
}

async function configuration({ viewer, broadcaster, admin }) {
  await row('channelConfigSet', () => broadcaster.setChannelConfig({ theme: 'dark' }));
  await row('extensionConfigSet', () => admin.setExtensionConfig({ release: '2026-11-21' }));
  await row('channelConfig', () => viewer.getChannelConfig());
  await row('extensionConfig', () => viewer.getExtensionConfig());
  await row('config', () => viewer.getConfig());
  await row('channelConfigsPatched', () =>
    admin.client.patchChannelConfig(EXTENSION, { [CHANNEL]: { foo: 'bar' }, 12422: { foo: 'elsewhere' } }),
  );
  await row('extensionConfigPatched', () =>
    admin.client.patchExtensionConfig(EXTENSION, [{ op: 'add', path: '/a', value: 1 }]),
  );
  await row('patchedConfig', () => viewer.getConfig());
}

async function jsonStore({ viewer, broadcaster }) {
  await broadcaster.signedRequest('POST', 'json_store?id=camp', JSON.stringify({ fires: 2 }));
  await broadcaster.signedRequest('POST', 'json_store', { fires: 0 });
  await row('jsonStore', () => viewer.getJSONStore('camp'));
  await row('defaultJsonStore', () => viewer.getJSONStore());
  await row('noJsonStore', () => viewer.getJSONStore('nothing'));
}

async function pins({ viewer, broadcaster }) {
  const { pin, token } = await post('/v1/e/pin', { identifier: EXTENSION });
  const status = async () =>
    (await fetch(`${url}/v1/e/user_info`, { headers: { Authorization: `${EXTENSION} ${token}` } })).status;

  await row('noPinToken', () => broadcaster.pinTokenExists());
  await row('statusBeforePin', status);
  await row('wrongPin', () => broadcaster.validateCode('aB3xYz'));
  await row('pinOfViewer', () => viewer.validateCode(pin));
  await row('validated', () => broadcaster.validateCode(pin));
  await row('pinToken', () => broadcaster.pinTokenExists());
  await row('statusAfterPin', status);
  await row('revoked', () => broadcaster.revokeAllPINCodes());
  await row('revokedPinToken', () => broadcaster.pinTokenExists());
  await row('statusAfterRevocation', status);
  await row('gamePin', () => broadcaster.signedRequest('POST', 'gamelink/token', {}));
  await row('gamePinEncodedTwice', () => broadcaster.signedRequest('POST', 'gamelink/token', JSON.stringify({})));
}

async function codes({ viewer, admin }) {
  const sets = { names: ['Hat', 'Sword'], codes: [['HAT-1', 'HAT-2'], ['SWORD-1']] };
  const grant = { prizes: [0], prize_limits: [1, 1], users: ['5551'], correct: 1, cutoff_timestamp: 4e9 };
  await row('codesPut', () => admin.signedRequest('PUT', 'codes', sets));
  await row('codesPutByViewer', () => viewer.signedRequest('PUT', 'codes', sets));
  await row('notYetEligible', () => viewer.getEligibleCodes());
  await admin.signedRequest('POST', 'codes/mark_from_list', grant);
  await row('eligible', () => viewer.getEligibleCodes());
  await row('redeemed', () => viewer.redeemCode(0));
  await row('redeemedTooOften', () => viewer.redeemCode(0));
  await row('held', () => viewer.getRedeemedCodes());
  await row('eligibleAfterwards', () => viewer.getEligibleCodes());
}

async function requests({ viewer, broadcaster }) {
  const message = { event: 'motd', data: { motd: 'hi' }, target: 'broadcast', user_id: CHANNEL };
  const query = new URLSearchParams({ ...message, data: JSON.stringify(message.data) });
  await row('datastream', () => viewer.signedRequest('POST', 'datastream', { click: 1 }));
  await row('broadcastByGet', () => broadcaster.signedRequest('GET', 'broadcast', message));
  await row('broadcastByGetWithQuery', () => broadcaster.signedRequest('GET', `broadcast?${query}`));
  await row('broadcastByPost', () => broadcaster.signedRequest('POST', 'broadcast', message));
  await row('unknownEndpoint', () => viewer.signedRequest('GET', 'no/such/endpoint'));
}

async function users({ viewer, admin }) {
  await row('userIds', () => admin.getExtensionUsers());
  await row('userIdsAsViewer', () => viewer.getExtensionUsers());
  await row('userInfo', () => viewer.client.getUserInfo(EXTENSION));
  const user = await viewer.getUser();
  await row('user', () => ({ role: user.role, id: user.twitchID, opaque: user.twitchOpaqueID }));
  await row('clockOffset', () => Math.abs(viewer.getOffsetDate() - new Date()));
}

async function trivia({ viewer, broadcaster, admin }) {
  const texts = (id) => ({ id, name: id.toUpperCase(), short_name: id, description: `What is ${id}?` });
  await row('noTeam', () => viewer.getExtensionTriviaJoinedTeam());
  await row('teamJoined', () => viewer.joinExtensionTriviaTeam());
  await row('team', () => viewer.getExtensionTriviaJoinedTeam());
  await row('questionAdded', () => admin.addExtensionTriviaQuestion(texts('q1')));
  await row('questionAddedByViewer', () => viewer.addExtensionTriviaQuestion(texts('q2')));
  await row('optionAdded', () => admin.addExtensionTriviaOptionToQuestion('q1', texts('o1')));
  await row('secondOptionAdded', () => admin.addExtensionTriviaOptionToQuestion('q1', texts('o2')));
  await row('thirdOptionAdded', () => admin.addExtensionTriviaOptionToQuestion('q1', texts('o3')));
  await row('optionRemoved', () => admin.removeExtensionTriviaOptionFromQuestion('q1', 'o3'));
  await row('inactiveQuestions', () => viewer.getExtensionTriviaQuestions());
  await row('voteOnInactive', () => viewer.setExtensionTriviaQuestionVote('q1', 'o1'));
  await row('unlocked', () => admin.setExtensionTriviaQuestionState('q1', 'state-unlocked'));
  await row('triviaVote', () => viewer.setExtensionTriviaQuestionVote('q1', 'o1'));
  await row('triviaVoteOfBroadcaster', () => broadcaster.setExtensionTriviaQuestionVote('q1', 'o1'));
  await row('questions', () => viewer.getExtensionTriviaQuestions());
  await row('resultsWithoutWinner', () => admin.setExtensionTriviaQuestionState('q1', 'state-results'));
  await row('results', () => admin.setExtensionTriviaQuestionState('q1', 'state-results', 'o1'));
  await row('question', () => viewer.getExtensionTriviaQuestion('q1'));
  await row('leaderboard', () => admin.getExtensionTriviaLeaderboard());
  await row('questionRemoved', () => admin.removeExtensionTriviaQuestion('q1'));
  await row('questionsAfterwards', () => admin.getExtensionTriviaQuestions());
}

// The SDK's development mode makes up a purchase, for which it takes three seconds.
async function purchases({ viewer }) {
  const products = [{ sku: 'SKU1', displayName: 'A hat', cost: { amount: 5, type: 'bits' } }];
  await row('noProducts', () => viewer.getProducts());
  window.MEDKIT_PURCHASABLE_ITEMS = products;
  await row('products', () => viewer.getProducts());
  const wait = globalThis.setTimeout;
  globalThis.setTimeout = (callback, ms, ...rest) => wait(callback, ms === 3000 ? 0 : ms, ...rest);
  await row('purchase', async () => {
    const bought = new Promise((resolve) => {
      viewer.onUserPurchase((transaction, answer) => resolve({ transaction, answer }));
    });
    viewer.purchase('SKU1');
    const { transaction, answer } = await bought;
    return { product: transaction.product.sku, answer: await answer };
  });
  globalThis.setTimeout = wait;
  viewer.onUserPurchaseCanceled(() => {}); // in development nothing is ever cancelled
}

run(async () => {
  // One after the other: only the last one's module is the one that `require` finds.
  const session = {
    viewer: noting(await as('viewer', '5551')),
    broadcaster: noting(await as('broadcaster', CHANNEL)),
    admin: noting(await as('admin', '9001')),
  };
  const parts = [
    votes, ranking, accumulation, stores, patches, configuration, jsonStore, pins, codes, requests, users,
    purchases, trivia,
  ]; // prettier-ignore
  for (const part of parts) {
    await part(session);
  }
  const methods = Object.getOwnPropertyNames(Object.getPrototypeOf(session.viewer));
  return { said, refused, called: [...called], methods };
});
