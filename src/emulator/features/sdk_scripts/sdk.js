// Leads the published SDK to the emulator that served this script. Include it before the SDK:
//
//   <script src="http://127.0.0.1:8282/_emulator/sdk.js"></script>
//   <script src="medkit.umd.js"></script>
//
// The SDK needs no change and no debugging option. Requests and sockets to any other address are left alone.
(function () {
  'use strict';

  if (!document.currentScript) {
    throw new Error('sdk.js: include it with a plain <script src>, which says where it came from');
  }

  // All that is before this script's own path, so a namespace (/_ns/<name>) is kept.
  const service = document.currentScript.src.replace(/\/_emulator\/sdk\.js([?#].*)?$/, '');

  const REST = /^https:\/\/(sandbox\.)?api\.muxy\.io(?=[/?]|$)/;
  // The SDK has no setting for where its events come from. Without a socket, its client falls back to requests.
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
