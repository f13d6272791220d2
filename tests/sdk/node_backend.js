// A backend with fixed addresses, which is not changed for the emulator. Node loads the lines of `connect node` before it.
'use strict';

const http = require('http');
const https = require('https');
const { run } = require('./run');

const API = 'https://sandbox.api.muxy.io/v1/e';
const CLIENT_ID = 'my-extension';
const [, , own] = process.argv;

// The browser APIs that the published SDK uses, without other addresses.
globalThis.window = globalThis;
globalThis.location = { search: '', protocol: 'http:' };
globalThis.document = { location: { protocol: 'http:' }, body: {} };
globalThis.XMLHttpRequest = require('xmlhttprequest-ssl');
globalThis.localStorage = { getItem: () => null, setItem() {}, removeItem() {} };
const WebSocket = require('ws');
globalThis.WebSocket = WebSocket;

async function startSession() {
  const Muxy = require('@muxy/extensions-js').default;
  Muxy.debug(new Muxy.DebuggingOptions().role('broadcaster').channelID('777').userID('777'));
  Muxy.setup({ clientID: CLIENT_ID, quiet: true });
  const sdk = new Muxy.SDK();
  await sdk.loaded();
  return sdk;
}

function once(target, event) {
  return new Promise((resolve) => target.once(event, resolve));
}

async function bodyOf(response) {
  response.setEncoding('utf8');
  let text = '';
  for await (const chunk of response) {
    text += chunk;
  }
  return JSON.parse(text);
}

// As a public example does: http on port 80, in chunks, without a content type.
async function plainRequest(path, headers, body) {
  const request = http.request({ hostname: 'sandbox.api.muxy.io', port: 80, method: 'POST', path, headers });
  request.write(JSON.stringify(body));
  request.end();
  return bodyOf(await once(request, 'response'));
}

function get(method, ...args) {
  return new Promise((resolve, reject) => method(...args, resolve).on('error', reject)).then(bodyOf);
}

// Authenticates over the socket, and returns the channel.
async function link(pin) {
  const socket = new WebSocket(`wss://gamelink.sandbox.muxy.io/0.2.0/${CLIENT_ID}`);
  await once(socket, 'open');
  socket.send(
    JSON.stringify({ action: 'authenticate', params: { request_id: 1 }, data: { client_id: CLIENT_ID, pin } }),
  );
  const { data } = JSON.parse(await once(socket, 'message'));
  return data.twitch_id;
}

async function heard(sdk) {
  const received = new Promise((resolve) => sdk.listen('news', resolve));
  const { channel } = sdk.messenger;
  while (!channel.subscribed) {
    await new Promise(setImmediate);
  }
  sdk.send('news', { text: 'hi' });
  return received;
}

run(async () => {
  const body = JSON.stringify({ extension_id: CLIENT_ID, role: 'backend', channel_id: '777' });
  const { token } = await (await fetch(`${API}/authtoken`, { method: 'POST', body })).json();
  const headers = { Authorization: `${CLIENT_ID} ${token}` };
  const request = new Request(`${API}/channel_state`, { method: 'POST', body: '{"round":4}', headers });
  const written = await (await fetch(request)).json();
  const sdk = await startSession();
  const { get: importedGet } = await import('node:https');
  const { token: pin } = await sdk.signedRequest('POST', 'gamelink/token', {});
  return {
    written,
    vote: (await sdk.vote('lunch', 2)).vote,
    state: await get(https.get, `${API}/channel_state`, { headers }),
    stateByUrl: await get(importedGet, new URL(`${API}/channel_state`), { headers }),
    ranked: await plainRequest('/v1/e/rank?id=q', headers, { key: 'blue' }),
    heard: await heard(sdk),
    linked: await link(pin),
    elsewhere: [
      (await (await fetch(`${own}/_emulator/live`)).json()).status,
      (await get(own.startsWith('https') ? https.get : http.get, `${own}/_emulator/live`)).status,
    ],
  };
});
