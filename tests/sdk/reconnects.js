// Whether pusher-js, unmodified, comes back after each kind of close. Arguments: the service's URL, and the bodies of
// the calls that close all sockets.
'use strict';

const { post, run, url } = require('./session');
const Pusher = require('pusher-js');

const { hostname, port } = new URL(url);

async function returns(body) {
  const options = { wsHost: hostname, wsPort: port, forceTLS: false, enabledTransports: ['ws'], cluster: '' };
  const pusher = new Pusher('18c26c0d1c7fafb78ba2', options);
  const connected = () => new Promise((resolve) => pusher.connection.bind('connected', resolve));
  await connected();
  const seen = new Promise((resolve) => {
    pusher.connection.bind('connected', () => resolve(true));
    pusher.connection.bind('disconnected', () => resolve(false));
    pusher.connection.bind('failed', () => resolve(false));
  });
  await post('/_emulator/sockets/close', { all: true, ...body });
  const isBack = await Promise.race([seen, new Promise((resolve) => setTimeout(resolve, 8_000, 'connecting'))]);
  pusher.disconnect();
  return isBack;
}

run(async () => {
  const results = {};
  for (const body of process.argv.slice(3)) {
    results[body] = await returns(JSON.parse(body));
  }
  return results;
});
