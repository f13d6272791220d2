// The page of a viewer: votes in the poll `boss`, and shows the winner of the last round.
const Muxy = window.Muxy.default; // the script exports the SDK as `default`

Muxy.debug(new Muxy.DebuggingOptions().role('viewer'));
Muxy.setup({ clientID: 'my-extension', quiet: true });
const sdk = new Muxy.SDK();
await sdk.loaded();

const status = document.querySelector('[role=status]');
sdk.listen('round-over', ({ winner }) => {
  status.textContent = winner ? `${winner} wins` : 'A tie';
});
for (const [value, option] of ['Dragon', 'Golem', 'Hydra'].entries()) {
  const button = document.createElement('button');
  button.textContent = option;
  button.addEventListener('click', () => sdk.vote('boss', value));
  document.querySelector('#options').append(button);
}
