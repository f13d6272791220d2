// The viewers' page: shows the round, and votes.
import { POLL, attempt, connect, say, statusOf } from './extension.js';

function show(sdk, round) {
  document.querySelector('h1').textContent = round?.question ?? 'Please wait';
  const buttons = (round?.options ?? []).map((option, value) => {
    const button = document.createElement('button');
    button.textContent = option;
    button.disabled = !round.open;
    button.addEventListener('click', () =>
      attempt(async () => {
        const { count } = await sdk.vote(POLL, value);
        say(`You voted for ${option}. Votes: ${count}`);
      }),
    );
    return button;
  });
  document.querySelector('#options').replaceChildren(...buttons);
  say(statusOf(round));
}

attempt(async () => {
  const sdk = await connect('viewer');
  sdk.listen('round', (round) => show(sdk, round)); // before reading the state, so that no change is missed
  show(sdk, (await sdk.getChannelState()).round);
});
