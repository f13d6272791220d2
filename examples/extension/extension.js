// Shared by both pages: the SDK session, and the display of errors.
const Muxy = window.Muxy.default; // the script exports the SDK as `default`

const CLIENT_ID = 'my-extension';

// In development, the URL sets the channel and the user: panel.html?channel_id=1001&user_id=5551. The platform ignores
// these options.
export async function connect(role) {
  const query = new URLSearchParams(location.search);
  const options = new Muxy.DebuggingOptions()
    .role(role)
    .channelID(query.get('channel_id') || '1001')
    .userID(query.get('user_id') || '5551');
  Muxy.debug(options);
  Muxy.setup({ clientID: CLIENT_ID, quiet: true });
  const sdk = new Muxy.SDK();
  await sdk.loaded();
  return sdk;
}

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
