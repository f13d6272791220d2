// Sessions of the published SDK from npm, unmodified, in Node. The first argument of a script is the service's URL.
'use strict';

const { run } = require('./run');

const PACKAGE = '@muxy/extensions-js';
const CHANNEL = '777';
const url = process.argv[2];

// The browser APIs that the SDK uses.
globalThis.window = globalThis;
globalThis.location = { search: '', protocol: 'http:' };
globalThis.document = { location: { protocol: 'http:' }, body: {} };
globalThis.XMLHttpRequest = require('xmlhttprequest-ssl');
globalThis.localStorage = { getItem: () => null, setItem() {}, removeItem() {} };

// The address of the SDK's socket is fixed, so it is replaced here.
globalThis.WebSocket = class extends require('ws') {
  constructor(address) {
    super(address.replace(/^wss:\/\/ws-us2\.pusher\.com(:443)?/, url.replace(/^http/, 'ws')));
  }
};

// The SDK is a singleton with one identity, so each session loads its own copy.
function loadSdk() {
  const path = require.resolve(PACKAGE);
  delete require.cache[path];
  return require(path).default;
}

// Returns a loaded session. `app` is the identifier of its first instance; `sdk.Muxy` is its singleton.
async function startSession(role, userID, { channelID = CHANNEL, app, base = url, jwt } = {}) {
  const Muxy = loadSdk();
  const options = new Muxy.DebuggingOptions().url(base).role(role).channelID(channelID).userID(userID);
  Muxy.debug(jwt ? options.jwt(jwt) : options);
  Muxy.setup({ clientID: 'sdk-extension', quiet: true, transactionsEnabled: true });
  const sdk = app ? new Muxy.SDK(app) : new Muxy.SDK();
  await sdk.loaded();
  sdk.Muxy = Muxy;
  return sdk;
}

// Returns what a call resolved with, or what it rejected with or threw.
async function outcome(call) {
  try {
    return { resolved: (await call()) ?? null };
  } catch (error) {
    return { rejected: error instanceof Error ? { name: error.name, message: error.message } : error };
  }
}

async function post(path, body) {
  const response = await fetch(`${url}${path}`, { method: 'POST', body: JSON.stringify(body) });
  if (!response.ok) {
    throw new Error(`${path}: ${response.status} ${await response.text()}`);
  }
  return response.json();
}

module.exports = { CHANNEL, startSession, outcome, post, run, url };
