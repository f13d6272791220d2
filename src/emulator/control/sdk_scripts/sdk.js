// Connects the published SDK to the emulator that served this script. Include it before the SDK:
//
//   <script src="http://127.0.0.1:8282/_emulator/sdk.js"></script>
//   <script src="medkit.umd.js"></script>
//
// The SDK needs no change and no debugging option. Requests and sockets to other addresses are not affected.
(function () {
  'use strict';

  const script = document.currentScript;
  if (!script) {
    throw new Error('sdk.js: cannot find its own URL; include it with <script src>, not as a module');
  }

  // The part before the script's path, including a namespace (/_ns/<name>).
  const service = script.src.replace(/\/_emulator\/sdk\.js([?#].*)?$/, '');

  const REST = /^https:\/\/(sandbox\.)?api\.muxy\.io(?=[/?]|$)/;
  // The SDK's Pusher client has a fixed address. Without a socket it falls back to HTTP requests.
  const EVENTS = /^wss?:\/\/ws-[a-z0-9]+\.pusher\.com(:\d+)?(?=\/app\/)/;
  const EVENTS_FALLBACK = /^https?:\/\/sockjs-[a-z0-9]+\.pusher\.com(:\d+)?(?=\/)/;

  const open = XMLHttpRequest.prototype.open;
  XMLHttpRequest.prototype.open = function (method, url, ...rest) {
    const address = String(url).replace(REST, service).replace(EVENTS_FALLBACK, service);
    // The service returns a token in place of Twitch's: production has no `authtoken`.
    return open.call(this, method, address.replace(`${service}/v1/e/authtoken?`, '$&helper=1&'), ...rest);
  };

  window.WebSocket = class WebSocket extends window.WebSocket {
    constructor(url, protocols = []) {
      super(String(url).replace(EVENTS, service.replace(/^http/, 'ws')), protocols);
    }
  };

  const identity = window.extcliIdentity;

  // Returns who the SDK acts as. Twitch's helper, if the page includes it, has already chosen.
  function identityFor({ role, channelID, userID }) {
    const helper = window.Twitch?.ext?.emulated;
    const chosen = helper || identity.choose(script, { role, channelId: channelID, userId: userID });
    const user = chosen.role === 'broadcaster' ? chosen.channelId : identity.profileUser();
    return { role: chosen.role, channelID: chosen.channelId, userID: chosen.userId || user };
  }

  // The members of the SDK that say who it acts as, by option. Their defaults, one channel for all pages and a viewer,
  // count as no choice of the page.
  const MEMBERS = { channelID: ['testChannelID', '23161357'], role: ['testJWTRole', 'viewer'] };

  // Makes a member return the chosen identity. Version 1 of the SDK reads it, and a page may still assign to it.
  function follow(sdk, option) {
    const [name, preset] = MEMBERS[option];
    let own = null;
    Object.defineProperty(sdk, name, {
      configurable: true,
      enumerable: true,
      get: () => identityFor({ [option]: own })[option],
      set(value) {
        own = value === preset ? null : value;
      },
    });
  }

  // A bundled SDK is in no global variable. But its constructor sets this member after `setupCalled`, through this
  // setter.
  const [member, preset] = MEMBERS.channelID;
  Object.defineProperty(Object.prototype, member, {
    configurable: true,
    set(value) {
      if (value !== preset || !('setupCalled' in this || typeof this.setup === 'function')) {
        Object.defineProperty(this, member, { value, configurable: true, enumerable: true, writable: true });
        return;
      }
      follow(this, 'channelID');
      follow(this, 'role');
      const { setup } = this;
      if (setup) {
        this.setup = function (...args) {
          setup.apply(this, args);
          // Version 1 has no such options.
          if (this.debugOptions) {
            Object.assign(this.debugOptions, identityFor(this.debugOptions));
          }
        };
      }
    },
  });

  // The SDK's file for pages sets { Muxy, default }, but pages expect both Muxy.setup and Muxy.default.setup.
  let exported = window.Muxy;
  Object.defineProperty(window, 'Muxy', {
    configurable: true,
    enumerable: true,
    get() {
      const sdk = exported?.default;
      return sdk ? Object.assign(sdk, { Muxy: sdk.Muxy || exported.Muxy }) : exported;
    },
    set(value) {
      exported = value;
    },
  });
})();
