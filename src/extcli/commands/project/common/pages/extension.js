// Shared by the three pages: the SDK, the poll's id, and the display of errors.
const Muxy = window.Muxy.default; // the script exports the SDK as `default`

export const POLL = 'boss';
export const DEFAULTS = { question: 'Which boss is next?', options: ['Dragon', 'Golem', 'Hydra'] };

// The role is for development; Twitch ignores it.
export async function connect(role) {
  Muxy.debug(new Muxy.DebuggingOptions().role(role));
  Muxy.setup({ clientID: 'CLIENT_ID', quiet: true });
  const sdk = new Muxy.SDK();
  await sdk.loaded();
  return sdk;
}

// Runs an action, and shows its error on the page.
export async function attempt(action) {
  const alert = document.querySelector('[role=alert]');
  alert.textContent = '';
  try {
    await action();
  } catch (error) {
    alert.textContent = error.info || error.reason || error.message || String(error);
  }
}

export function say(text) {
  document.querySelector('[role=status]').textContent = text;
}

// What a page says about a round: { question, options, open, winner }.
export function statusOf({ open, winner } = {}) {
  if (open === undefined) return 'No round yet.';
  return open ? 'The round is open.' : winner ? `${winner} wins.` : 'A tie: no winner.';
}
