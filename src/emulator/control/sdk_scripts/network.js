// Lets the rig mute the network of a page, which then behaves as offline. The service sends this part first.
//
// It covers fetch, XMLHttpRequest, WebSocket, EventSource and sendBeacon. It cannot cover what the browser loads itself
// (files of the page, images, links, form posts, other frames), workers, and requests that are already under way.
(function () {
  'use strict';

  const isMutedFirst = new URLSearchParams(location.search).get('extcli_mute') === 'on';
  if (window.extcliNetwork || (window.parent === window && !isMutedFirst)) {
    return; // sdk.js and platform-helper.js both have this part, and a page outside of frames keeps its network
  }
  // Browsers block this port, so a request to it fails at once with the errors of a failed connection.
  const NOWHERE = 'https://127.0.0.1:1/';
  const { fetch, WebSocket, EventSource } = window;
  const network = { isMuted: isMutedFirst, fetch };
  window.extcliNetwork = network;

  const route = (url) => (network.isMuted ? NOWHERE : url);
  const { open } = XMLHttpRequest.prototype;
  const sendBeacon = navigator.sendBeacon.bind(navigator);
  const connections = new Set(); // the open sockets and event sources

  window.fetch = (resource, options) => (network.isMuted ? fetch(NOWHERE) : fetch.call(window, resource, options));
  XMLHttpRequest.prototype.open = function (method, url, ...rest) {
    return open.call(this, method, route(url), ...rest);
  };
  window.WebSocket = class extends WebSocket {
    constructor(url, protocols = []) {
      super(route(url).toString().replace(/^http/, 'ws'), protocols);
      connections.add(this);
      this.addEventListener('close', () => connections.delete(this));
    }
  };
  window.EventSource = class extends EventSource {
    constructor(url, options) {
      super(route(url), options);
      connections.add(this);
    }
  };
  navigator.sendBeacon = (...args) => !network.isMuted && sendBeacon(...args);
  Object.defineProperty(navigator, 'onLine', { configurable: true, get: () => !network.isMuted });

  network.mute = (isMuted) => {
    if (isMuted === network.isMuted) {
      return;
    }
    network.isMuted = isMuted;
    if (isMuted) {
      connections.forEach((each) => each.close());
      connections.clear();
    }
    window.dispatchEvent(new Event(isMuted ? 'offline' : 'online'));
  };

  // The rig sends { extcli: { mute, theme, language } } to its frames.
  window.addEventListener('message', ({ source, data }) => {
    if (source === window.parent && typeof data?.extcli?.mute === 'boolean') {
      network.mute(data.extcli.mute);
    }
  });
})();
