// Sessions of the published SDK, as it comes from npm, in bare Node. Scripts that use this are given the service's URL
// as their first argument and print one JSON object.
'use strict';

const { run } = require('./run');

const PACKAGE = '@muxy/extensions-js';
const CHANNEL = '777';
const url = process.argv[2];

// What the SDK expects of a browser, and no more.
globalThis.window = globalThis;
globalThis.location = { search: '', protocol: 'http:' };
globalThis.document = { location: { protocol: 'http:' }, body: {} };
globalThis.XMLHttpRequest = require('xmlhttprequest-ssl');
globalThis.localStorage = { getItem: () => null, setItem() {}, removeItem() {} };

// No setting of the SDK leads its events elsewhere, so its socket is led.
globalThis.WebSocket = class extends require('ws') {
  constructor(address) {
    super(address.replace(/^wss:\/\/ws-us2\.pusher\.com(:443)?/, url.replace(/^http/, 'ws')));
  }
};

// The SDK is a singleton with one identity; required anew, it is another.
function fresh() {
  const path = require.resolve(PACKAGE);
  delete require.cache[path];
  return require(path).default;
}

// A loaded session; `app` is the identifier of its first instance, `sdk.Muxy` its singleton.
async function as(role, userID, { channelID = CHANNEL, app, base = url, jwt } = {}) {
  const Muxy = fresh();
  const options = new Muxy.DebuggingOptions().url(base).role(role).channelID(channelID).userID(userID);
  Muxy.debug(jwt ? options.jwt(jwt) : options);
  Muxy.setup({ clientID: 'sdk-extension', quiet: true, transactionsEnabled: true });
  const sdk = app ? new Muxy.SDK(app) : new Muxy.SDK();
  await sdk.loaded();
  sdk.Muxy = Muxy;
  return sdk;
}

// How a call ended: what it resolved with, or what it rejected with or threw.
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

module.exports = { CHANNEL, as, outcome, post, run, url };
