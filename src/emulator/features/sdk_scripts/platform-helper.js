// Stands in for the streaming platform's helper, so that an extension's page runs in a frame of any page:
//
//   <iframe src="panel.html?role=viewer&channel_id=777&user_id=5551&client_id=my-extension"></iframe>
//
// and in panel.html, where the platform's own helper is included elsewhere:
//
//   <script src="http://127.0.0.1:8282/_emulator/platform-helper.js"></script>
//
// What the frame's address does not say may stand on the script element: data-role, data-channel-id, data-user-id,
// data-client-id. Without a user id the viewer is an anonymous one. For development only: anybody may be anyone.
(function () {
  'use strict';

  const script = document.currentScript;
  if (!script) {
    throw new Error('platform-helper.js: include it with a plain <script src>, which says where it came from');
  }

  const SECOND = 1000;
  const REFRESH_EVERY = 25 * 60 * SECOND; // a token lives for 30 minutes
  const RETRY_AFTER = 2 * SECOND;
  // The service passes on what the SDK sends: an event with its data. Whatever else a page sends travels in one.
  const PLAIN_EVENT = 'platform-helper:plain';

  const service = script.src.replace(/\/_emulator\/platform-helper\.js([?#].*)?$/, '');
  const address = new URLSearchParams(location.search);
  const identity = {
    role: address.get('role') || script.dataset.role || 'viewer',
    channelId: address.get('channel_id') || script.dataset.channelId || '1001',
    userId: address.get('user_id') || script.dataset.userId || null,
    clientId: address.get('client_id') || script.dataset.clientId || 'my-extension',
  };

  // Callbacks that hear of something; one that comes late is told of what was last said.
  function subject() {
    const callbacks = [];
    let last = null;
    return {
      tell(...what) {
        last = what;
        callbacks.forEach((callback) => callback(...what));
      },
      hear(callback) {
        callbacks.push(callback);
        if (last) {
          setTimeout(() => callback(...last));
        }
      },
    };
  }

  const authorized = subject();
  const context = subject();
  const failed = subject();
  const viewerChanged = subject();
  const configurationChanged = subject();
  const followed = subject();
  const purchased = subject();
  const cancelled = subject();

  function fail(error) {
    console.error('platform-helper.js:', error);
    failed.tell(error);
  }

  // Who is here

  const viewer = {
    opaqueId: null,
    id: null,
    role: identity.role,
    isLinked: false,
    sessionToken: null,
    helixToken: null,
    subscriptionStatus: null,
    onChanged: viewerChanged.hear,
  };

  async function post(endpoint, body, headers) {
    const response = await fetch(`${service}/v1/e/${endpoint}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', ...headers },
      body: JSON.stringify(body),
    });
    const answer = await response.json();
    if (!response.ok) {
      throw new Error(`${endpoint}: ${answer.reason}: ${answer.info}`);
    }
    return answer;
  }

  function claimsOf(token) {
    return JSON.parse(atob(token.split('.')[1].replace(/-/g, '+').replace(/_/g, '/')));
  }

  async function authorize() {
    const { token } = await post('authtoken', {
      extension_id: identity.clientId,
      channel_id: identity.channelId,
      role: identity.role,
      ...(identity.userId && { user_id: identity.userId }),
    });
    const claims = claimsOf(token);
    viewer.opaqueId = claims.opaque_user_id;
    viewer.id = claims.user_id || null;
    viewer.isLinked = Boolean(claims.user_id);
    viewer.sessionToken = token;
    authorized.tell({
      channelId: identity.channelId,
      clientId: identity.clientId,
      token,
      helixToken: '', // the platform's own API is not emulated
      userId: viewer.opaqueId,
    });
    viewerChanged.tell();
  }

  function keepAuthorized() {
    authorize().then(
      () => setTimeout(keepAuthorized, REFRESH_EVERY),
      (error) => {
        fail(error);
        setTimeout(keepAuthorized, RETRY_AFTER);
      },
    );
  }

  // Messages

  const listeners = new Map(); // target -> Set of callbacks

  function listen(target, callback) {
    listeners.set(target, (listeners.get(target) || new Set()).add(callback));
  }

  function unlisten(target, callback) {
    listeners.get(target)?.delete(callback);
  }

  function deliver(target, message) {
    let contentType = 'application/json';
    let content = message;
    const plain = message.startsWith(`{"event":"${PLAIN_EVENT}"`) && JSON.parse(message).data;
    if (plain) {
      ({ contentType, content } = plain);
    }
    [...(listeners.get(target) || [])].forEach((callback) => callback(target, contentType, content));
  }

  // As on the platform, a page hears whispers to its own user only.
  function isHeard(target) {
    return !target.startsWith('whisper-') || [viewer.opaqueId, viewer.id].includes(target.slice('whisper-'.length));
  }

  function receive(topics, frame) {
    const data = JSON.parse(frame.data || '{}');
    if (!topics.includes(frame.channel) || typeof data.message !== 'string' || !isHeard(frame.event)) {
      return;
    }
    const isForAllChannels = frame.channel === topics[1] && frame.event === 'broadcast';
    deliver(isForAllChannels ? 'global' : frame.event, data.message);
  }

  // The socket on which pages hear of broadcasts. It is opened once and comes back after a loss, as the platform's does.
  function follow() {
    const topics = [identity.channelId, 'all'].map((place) => `twitch.pubsub.${identity.clientId}.${place}`);
    const socket = new WebSocket(`${service.replace(/^http/, 'ws')}/app/platform-helper?protocol=7`);
    const say = (event, data) => socket.send(JSON.stringify({ event, data }));
    socket.onmessage = ({ data }) => {
      const frame = JSON.parse(data);
      if (frame.event === 'pusher:connection_established') {
        topics.forEach((channel) => say('pusher:subscribe', { channel }));
      } else if (frame.event === 'pusher:ping') {
        say('pusher:pong', {});
      } else if (!frame.event.startsWith('pusher')) {
        receive(topics, frame);
      }
    };
    socket.onclose = () => setTimeout(follow, RETRY_AFTER);
  }

  function send(target, contentType, message) {
    const { event, data } =
      message && typeof message.event === 'string'
        ? message
        : { event: PLAIN_EVENT, data: { contentType, content: message } };
    const credential = { Authorization: `${identity.clientId} ${viewer.sessionToken}` };
    post('pusher_broadcast', { target, event, data, user_id: identity.channelId }, credential).catch(fail);
  }

  // Purchases. The products are those that the SDK takes in its own development mode.

  function products() {
    return window.MEDKIT_PURCHASABLE_ITEMS || [];
  }

  function encoded(object) {
    return btoa(JSON.stringify(object));
  }

  // Nobody signed it; a sandbox does not look.
  function receiptOf(transactionId, product) {
    const bought = { sku: product.sku, displayName: product.displayName, cost: product.cost };
    const payload = {
      topic: 'bits_transaction_receipt',
      exp: Math.round(Date.now() / SECOND) + 60,
      data: { transactionId, time: new Date().toISOString(), userId: viewer.id, product: bought },
    };
    return `${encoded({ alg: 'HS256', typ: 'JWT' })}.${encoded(payload)}.dW5zaWduZWQ`;
  }

  function useBits(sku) {
    const product = products().find((each) => each.sku === sku);
    if (!product) {
      setTimeout(cancelled.tell);
      return;
    }
    const transactionId = `test:${crypto.randomUUID()}`;
    setTimeout(purchased.tell, 0, {
      transactionId,
      product,
      userId: viewer.id,
      displayName: `user ${viewer.id || viewer.opaqueId}`,
      initiator: 'current_user',
      transactionReceipt: receiptOf(transactionId, product),
    });
  }

  // The platform's configuration service, for as long as this page is open.
  const configuration = {
    broadcaster: undefined,
    developer: undefined,
    global: undefined,
    onChanged: configurationChanged.hear,
    set(segment, version, content) {
      configuration[segment] = { version, content };
      configurationChanged.tell();
    },
  };

  const nothing = () => {};

  window.Twitch = {
    ext: {
      version: 'emulator',
      environment: 'development',
      viewer,
      configuration,
      onAuthorized: authorized.hear,
      onContext: context.hear,
      onError: failed.hear,
      onVisibilityChanged: nothing,
      onPositionChanged: nothing,
      onHighlightChanged: nothing,
      listen,
      unlisten,
      send,
      actions: {
        followChannel: (channel) => followed.tell(true, channel),
        onFollow: followed.hear,
        minimize: nothing,
        requestIdShare: nothing, // a user id in the address is a shared one
      },
      bits: {
        getProducts: () => Promise.resolve(products()),
        useBits,
        onTransactionComplete: purchased.hear,
        onTransactionCancelled: cancelled.hear,
        setUseLoopback: nothing, // every purchase here is a made-up one
      },
      features: { isBitsEnabled: true, isChatEnabled: true, isSubscriptionStatusAvailable: false, onChanged: nothing },
      rig: { log: (...words) => console.log(...words) },
    },
  };

  context.tell({ mode: 'viewer', theme: 'light', language: 'en', isFullScreen: false, isTheatreMode: false }, []);
  keepAuthorized();
  follow();
})();
