// Sends the requests of a Node.js program to the emulator instead of the fixed addresses in the program:
//   node --require ./emulator.cjs backend.js
'use strict';

const http = require('node:http');
const https = require('node:https');
const { syncBuiltinESMExports } = require('node:module');
const { isIP } = require('node:net');
const { urlToHttpOptions } = require('node:url');

const service = new URL('SERVICE');
const base = service.pathname.replace(/\/$/, '');
const HOSTS = /^(((sandbox\.)?(api|gamelink)|gamelink\.sandbox)\.muxy\.io|(ws|sockjs)-[a-z0-9]+\.pusher\.com)$/;

// Requests of the modules http and https, which most libraries use
const transport = service.protocol === 'https:' ? https : http;
const { request: send } = transport;
const { protocol, hostname, port } = urlToHttpOptions(service);
const servername = isIP(hostname) ? '' : hostname; // otherwise the header Host would name it
// Of the original connection, nothing may remain.
const target = { protocol, hostname, port, servername, host: null, defaultPort: null, agent: null, createConnection: null };

// Without the private symbol of a URL that Node 18 copies: options that have it count as a URL, so `path` is ignored.
const optionsOf = (address) => Object.fromEntries(Object.entries(urlToHttpOptions(new URL(address))));

for (const module of [http, https]) {
  const { request } = module;
  module.request = (...args) => {
    const isAddress = typeof args[0] === 'string' || args[0] instanceof URL;
    const [address, more, callback] = isAddress ? args : [null, ...args];
    const own = typeof more === 'function' ? {} : more;
    const options = { ...(address && optionsOf(address)), ...own };
    if (!HOSTS.test(options.hostname || options.host)) {
      return request(...args);
    }
    const path = base + (options.path || '/');
    return send({ ...options, ...target, path }, typeof more === 'function' ? more : callback);
  };
  module.get = (...args) => module.request(...args).end();
}
syncBuiltinESMExports();

// Node's own fetch and WebSocket
function redirect(address) {
  const url = new URL(address);
  return HOSTS.test(url.hostname) ? `${service.origin}${base}${url.pathname}${url.search}` : address;
}

const { fetch, WebSocket } = globalThis;
globalThis.fetch = async (input, init) =>
  fetch(input instanceof Request ? new Request(redirect(input.url), input) : redirect(input), init);
if (WebSocket) {
  globalThis.WebSocket = class extends WebSocket {
    constructor(url, protocols = []) {
      super(String(redirect(url)).replace(/^http/, 'ws'), protocols);
    }
  };
}
