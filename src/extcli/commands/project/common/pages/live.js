// The broadcaster's page during a stream: starts a round with the poll of the config page. The backend closes it.
import { DEFAULTS, attempt, connect, say, statusOf } from './extension.js';

attempt(async () => {
  const sdk = await connect('broadcaster');
  sdk.listen('round', (round) => say(statusOf(round)));
  document.querySelector('#start').addEventListener('click', () =>
    attempt(async () => {
      const { poll = DEFAULTS } = await sdk.getChannelConfig();
      const round = { ...poll, open: true };
      await sdk.setChannelState({ round }); // for viewers who join later
      sdk.send('round', round); // for those who are watching
      say(statusOf(round));
    }),
  );
  say(statusOf((await sdk.getChannelState()).round));
});
