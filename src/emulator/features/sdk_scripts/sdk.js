// Connects the published SDK to the emulator that served this script. Include it before the SDK:
//
//   <script src="http://127.0.0.1:8282/_emulator/sdk.js"></script>
//   <script src="medkit.umd.js"></script>
//
// The SDK needs no change and no debugging option. Requests and sockets to other addresses are not affected.
(function () {
  'use strict';

  if (!document.currentScript) {
    throw new Error('sdk.js: cannot find its own URL; include it with <script src>, not as a module');
  }

  // The part before the script's path, including a namespace (/_ns/<name>).
  const service = document.currentScript.src.replace(/\/_emulator\/sdk\.js([?#].*)?$/, '');

  const REST = /^https:\/\/(sandbox\.)?api\.muxy\.io(?=[/?]|$)/;
  // The SDK's Pusher client has a fixed address. Without a socket it falls back to HTTP requests.
  const EVENTS = /^wss?:\/\/ws-[a-z0-9]+\.pusher\.com(:\d+)?(?=\/app\/)/;
  const EVENTS_FALLBACK = /^https?:\/\/sockjs-[a-z0-9]+\.pusher\.com(:\d+)?(?=\/)/;

  const open = XMLHttpRequest.prototype.open;
  XMLHttpRequest.prototype.open = function (method, url, ...rest) {
    const address = String(url).replace(REST, service).replace(EVENTS_FALLBACK, service);
    return open.call(this, method, address, ...rest);
  };

  window.WebSocket = class WebSocket extends window.WebSocket {
    constructor(url, protocols = []) {
      super(String(url).replace(EVENTS, service.replace(/^http/, 'ws')), protocols);
    }
  };
})();
