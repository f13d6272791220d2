// The published SDK on pages of a service with faults.
'use strict';

const { browse, service } = require('./browser');

const FAULTS = `${service}/_emulator/faults`;
const VOTE = 'POST /v1/e/vote';

async function addFault(match, effect, members = {}) {
  const body = JSON.stringify({ match, effect, ...members });
  const answer = await fetch(FAULTS, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body });
  if (!answer.ok) {
    throw new Error(await answer.text());
  }
}

async function removeFaults() {
  const { faults } = await (await fetch(FAULTS)).json();
  await fetch(FAULTS, { method: 'DELETE' });
  return faults.reduce((sum, fault) => sum + fault.hits, 0);
}

// Waits until a fault has acted, without a pause: each look is a request.
async function waitForHit() {
  for (;;) {
    const { faults } = await (await fetch(FAULTS)).json();
    if (faults[0].hits) {
      return;
    }
  }
}

// Runs in a page: loads a session into `window.sdk`.
async function startSession(user) {
  const Muxy = window.Muxy.default;
  Muxy.debug(new Muxy.DebuggingOptions().role(user.role).channelID('777').userID(user.userID));
  Muxy.setup({ clientID: 'my-extension', quiet: true });
  window.sdk = new Muxy.SDK();
  await window.sdk.loaded();
  window.events = [];
  window.sdk.listen('end', (data) => window.events.push(data.n));
}

async function openPage(open, user, before) {
  const page = await open('top.html', { before });
  await page.evaluate(startSession, user);
  await page.waitForFunction(() => {
    const { channel, globalChannel } = window.Muxy.default.messenger;
    return channel.subscribed && globalChannel.subscribed;
  });
  return page;
}

// Runs in a page: votes, and describes how that ended.
async function vote() {
  const started = performance.now();
  const outcome = await window.sdk.vote('poll', 3).then(
    (stats) => ({ count: stats.count }),
    (error) => ({ reason: String((error && error.reason) || ''), status: (error && error.status) || 0 })
  );
  return { ...outcome, ms: performance.now() - started };
}

async function votes(page) {
  const outcomes = {};
  for (const [effect, members] of [
    ['status', { status: 503, retry_after: 1 }],
    ['delay', { delay: 300 }],
    ['drop', {}],
    ['reset', {}],
    ['truncate', { bytes: 5 }],
  ]) {
    await addFault(VOTE, effect, members);
    outcomes[effect] = await page.evaluate(vote);
    outcomes[effect].hits = await removeFaults();
  }
  await addFault(VOTE, 'stall');
  let ended = false;
  const stalled = page.evaluate(vote).finally(() => {
    ended = true;
  });
  await waitForHit();
  await page.evaluate(() => window.sdk.getVoteData('poll'));
  const wasSilent = !ended;
  await removeFaults();
  outcomes.stall = { ...(await stalled), wasSilent };
  outcomes.after = await page.evaluate(vote);
  return outcomes;
}

// Opens a page whose first handshake is refused, and returns the events that it receives after its second, 15 seconds later.
async function afterRefusal(open, sender) {
  await addFault('SOCKET connect', 'status', { status: 503, times: 1 });
  let refused;
  const refusal = new Promise((resolve) => {
    refused = resolve;
  });
  const opening = openPage(open, { role: 'viewer', userID: '5552' }, async (fresh) => {
    await fresh.clock.install();
    fresh.on('websocket', (socket) => socket.on('socketerror', () => refused(fresh)));
  });
  await (await refusal).clock.fastForward(15_000);
  const page = await opening;
  const hits = await removeFaults();
  await sender.evaluate(() => window.sdk.send('end', { n: 1 }));
  await page.waitForFunction(() => window.events.length);
  return { events: await page.evaluate(() => window.events), hits };
}

browse(async (open) => {
  const viewer = await openPage(open, { role: 'viewer', userID: '5551' });
  const broadcaster = await openPage(open, { role: 'broadcaster', userID: '777' });
  return { votes: await votes(viewer), refused: await afterRefusal(open, broadcaster) };
});
