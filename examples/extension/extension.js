// Shared by both pages: the SDK session, and the display of errors.
const Muxy = window.Muxy.default; // the script exports the SDK as `default`

const CLIENT_ID = 'my-extension';

// The role is for development; Twitch ignores it. The emulator's script sets the channel and the user.
export async function connect(role) {
  Muxy.debug(new Muxy.DebuggingOptions().role(role));
  Muxy.setup({ clientID: CLIENT_ID, quiet: true });
  const sdk = new Muxy.SDK();
  await sdk.loaded();
  return sdk;
}

// The page around the frame has a theme, and the viewer may change it.
window.Twitch.ext.onContext(({ theme }) => {
  document.documentElement.style.colorScheme = theme;
});

// Runs an action, and shows its error on the page.
export async function attempt(action) {
  const problem = document.querySelector('#problem');
  problem.hidden = true;
  try {
    await action();
  } catch (error) {
    problem.textContent = messageOf(error);
    problem.hidden = false;
  }
}

// The SDK rejects with the service's response, a string or an Error.
function messageOf(error) {
  return error.info || error.reason || error.message || String(error);
}
