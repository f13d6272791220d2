// The viewers' panel: the channel's poll, and announcements.
import { attempt, connect } from './extension.js';
import { PollView } from './poll.js';

const banner = document.querySelector('#banner');

function announce({ text }) {
  banner.textContent = text;
  banner.hidden = false;
}

async function start() {
  const sdk = await connect('viewer');
  const view = new PollView(document.querySelector('#poll'), sdk, { canVote: true });

  // Listen before reading the state, so that no change is missed.
  sdk.listen('poll', (poll) => view.show(poll));
  sdk.listen('announcement', announce);

  const { poll } = await sdk.getChannelState();
  view.show(poll);
  view.keepCounting();
}

attempt(start);
