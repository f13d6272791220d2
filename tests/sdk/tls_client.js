// A program that knows only the variables of `extcli exec`: it votes with fetch and opens the game's socket.
'use strict';

const WebSocket = require('ws');
const { run } = require('./run');

const { EXTCLI_URL, EXTCLI_WS_URL, EXTCLI_CLIENT_ID, NODE_EXTRA_CA_CERTS } = process.env;

run(async () => {
  const ready = await fetch(`${EXTCLI_URL}/_emulator/ready`);
  const socket = new WebSocket(EXTCLI_WS_URL);
  await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
  return { url: EXTCLI_URL, socket: EXTCLI_WS_URL, id: EXTCLI_CLIENT_ID, trust: NODE_EXTRA_CA_CERTS, ready: ready.status };
});
