// What both pages share: a session of the SDK, and a place for what went wrong.
const Muxy = window.Muxy.default; // the script puts the SDK under `default`

const CLIENT_ID = 'my-extension';

// In development the address says whose page this is: panel.html?channel_id=1001&user_id=5551. On the platform these
// options have no effect.
export async function connect(role) {
  const address = new URLSearchParams(location.search);
  const options = new Muxy.DebuggingOptions()
    .role(role)
    .channelID(address.get('channel_id') || '1001')
    .userID(address.get('user_id') || '5551');
  Muxy.debug(options);
  Muxy.setup({ clientID: CLIENT_ID, quiet: true });
  const sdk = new Muxy.SDK();
  await sdk.loaded();
  return sdk;
}

// Does something, and shows on the page why it failed if it did.
export async function attempt(act) {
  const problem = document.querySelector('#problem');
  problem.hidden = true;
  try {
    await act();
  } catch (error) {
    problem.textContent = messageOf(error);
    problem.hidden = false;
  }
}

// The SDK rejects with the service's answer, with a text, or with an error.
function messageOf(error) {
  return error.info || error.reason || error.message || String(error);
}
