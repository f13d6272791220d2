// Replaces the streaming platform's helper, so that an extension's page runs in a frame of any page:
//
//   <iframe src="panel.html?role=viewer&channel_id=777&user_id=5551&client_id=my-extension"></iframe>
//
// In panel.html, include it in place of the platform's helper:
//
//   <script src="http://127.0.0.1:8282/_emulator/platform-helper.js"></script>
//
// Parameters that the frame's URL omits are read from the script element: data-role, data-channel-id, data-user-id,
// data-client-id. Without a user id, the viewer is anonymous in a frame, and the browser profile's user elsewhere. The
// URL may also have the platform's parameters `mode` and `language`, and `extcli_theme=dark`. For development only: the
// page chooses its identity.
(function () {
  'use strict';

  const script = document.currentScript;
  if (!script) {
    throw new Error('platform-helper.js: cannot find its own URL; include it with <script src>, not as a module');
  }

  const SECOND = 1000;
  const REFRESH_EVERY = 25 * 60 * SECOND; // a token expires after 30 minutes
  const RETRY_AFTER = 2 * SECOND;
  // The service sends events with data, as the SDK does. Any other message of a page is wrapped in this event.
  const PLAIN_EVENT = 'platform-helper:plain';

  const service = script.src.replace(/\/_emulator\/platform-helper\.js([?#].*)?$/, '');
  const query = new URLSearchParams(location.search);
  const identity = {
    ...window.extcliIdentity.choose(script, {
      role: query.get('role'),
      channelId: query.get('channel_id'),
      userId: query.get('user_id'),
    }),
    clientId: query.get('extcli_client') || query.get('client_id') || script.dataset.clientId || 'my-extension',
  };
  if (!identity.userId && !identity.isAnonymous && window.parent === window) {
    identity.userId = identity.role === 'broadcaster' ? identity.channelId : window.extcliIdentity.profileUser();
  }

  // In a frame of the rig, tells the rig which events the page receives and what it writes to its console.
  const isInRig = window.parent !== window && query.has('extcli_role');
  function tell(kind, ...words) {
    let text;
    try {
      text = words.map((word) => (typeof word === 'object' ? word?.stack || JSON.stringify(word) : String(word)));
    } catch {
      text = ['(an object without JSON)'];
    }
    if (isInRig) {
      window.parent.postMessage({ extcli: { kind, text: text.join(' ').slice(0, 500) } }, new URL(service).origin);
    }
  }

  if (isInRig) {
    window.addEventListener('error', ({ message }) => message && tell('error', message));
    window.addEventListener('unhandledrejection', ({ reason }) => tell('error', reason));
    ['log', 'info', 'warn', 'error'].forEach((level) => {
      const write = console[level];
      console[level] = (...words) => {
        write.apply(console, words);
        tell(level, ...words);
      };
    });
  }

  // An event source. A late subscriber receives the last event.
  function eventSource() {
    const callbacks = [];
    let last = null;
    return {
      emit(...args) {
        last = args;
        callbacks.forEach((callback) => callback(...args));
      },
      subscribe(callback) {
        callbacks.push(callback);
        if (last) {
          setTimeout(() => callback(...last));
        }
      },
    };
  }

  const authorized = eventSource();
  const context = eventSource();
  const failed = eventSource();
  const viewerChanged = eventSource();
  const configurationChanged = eventSource();
  const visibility = eventSource();
  const position = eventSource();
  const highlight = eventSource();
  const followed = eventSource();
  const purchased = eventSource();
  const cancelled = eventSource();

  function fail(error) {
    console.error('platform-helper.js:', error);
    failed.emit(error);
  }

  // The viewer

  const subscription = query.get('extcli_subscription');
  const viewer = {
    opaqueId: null,
    id: null,
    role: identity.role,
    isLinked: false,
    sessionToken: null,
    helixToken: null,
    subscriptionStatus: subscription ? { tier: subscription } : null,
    onChanged: viewerChanged.subscribe,
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

  // The opaque id of a user who has shared no other. It stays the same when the user does.
  function opaqueId() {
    return identity.userId.startsWith('U') ? identity.userId : `U${identity.userId}`;
  }

  async function authorize() {
    const { token } = await post('authtoken?helper=1', {
      extension_id: identity.clientId,
      channel_id: identity.channelId,
      role: identity.role,
      ...(identity.userId && (identity.isShared ? { user_id: identity.userId } : { opaque_user_id: opaqueId() })),
    });
    const claims = claimsOf(token);
    viewer.opaqueId = claims.opaque_user_id;
    viewer.id = claims.user_id || null;
    viewer.isLinked = Boolean(claims.user_id);
    viewer.sessionToken = token;
    authorized.emit({
      channelId: identity.channelId,
      clientId: identity.clientId,
      token,
      helixToken: '', // the platform's own API is not emulated
      userId: viewer.opaqueId,
    });
    viewerChanged.emit();
  }

  function refreshAuthorization() {
    authorize().then(
      () => setTimeout(refreshAuthorization, REFRESH_EVERY),
      (error) => {
        fail(error);
        setTimeout(refreshAuthorization, RETRY_AFTER);
      },
    );
  }

  // On the platform a dialog asks the viewer first.
  function requestIdShare() {
    if (identity.userId && !identity.isShared) {
      identity.isShared = true;
      authorize().catch(fail);
    }
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
    tell('heard', target, message);
    let contentType = 'application/json';
    let content = message;
    const plain = message.startsWith(`{"event":"${PLAIN_EVENT}"`) && JSON.parse(message).data;
    if (plain) {
      ({ contentType, content } = plain);
    }
    [...(listeners.get(target) || [])].forEach((callback) => callback(target, contentType, content));
  }

  // As on the platform, a page receives only whispers to its own user.
  function isForViewer(target) {
    return !target.startsWith('whisper-') || [viewer.opaqueId, viewer.id].includes(target.slice('whisper-'.length));
  }

  function receive(topics, frame) {
    const data = JSON.parse(frame.data || '{}');
    if (!topics.includes(frame.channel) || typeof data.message !== 'string' || !isForViewer(frame.event)) {
      return;
    }
    const isExtensionWide = frame.channel === topics[1] && frame.event === 'broadcast';
    const target = isExtensionWide ? 'global' : frame.event;
    if (current.hlsLatencyBroadcaster) {
      setTimeout(deliver, current.hlsLatencyBroadcaster * SECOND, target, data.message);
    } else {
      deliver(target, data.message);
    }
  }

  // Receives broadcasts over the Pusher protocol. It reconnects after a loss, as the platform does.
  function connect() {
    const topics = [identity.channelId, 'all'].map((channel) => `twitch.pubsub.${identity.clientId}.${channel}`);
    const socket = new WebSocket(`${service.replace(/^http/, 'ws')}/app/platform-helper?protocol=7`);
    const sendFrame = (event, data) => socket.send(JSON.stringify({ event, data }));
    socket.onmessage = ({ data }) => {
      const frame = JSON.parse(data);
      if (frame.event === 'pusher:connection_established') {
        topics.forEach((channel) => sendFrame('pusher:subscribe', { channel }));
      } else if (frame.event === 'pusher:ping') {
        sendFrame('pusher:pong', {});
      } else if (!frame.event.startsWith('pusher')) {
        receive(topics, frame);
      }
    };
    socket.onclose = () => setTimeout(connect, RETRY_AFTER);
  }

  function send(target, contentType, message) {
    const { event, data } =
      message && typeof message.event === 'string'
        ? message
        : { event: PLAIN_EVENT, data: { contentType, content: message } };
    const credential = { Authorization: `${identity.clientId} ${viewer.sessionToken}` };
    post('pusher_broadcast', { target, event, data, user_id: identity.channelId }, credential).catch(fail);
  }

  // Purchases, with the products of the SDK's development mode.

  function products() {
    return window.MEDKIT_PURCHASABLE_ITEMS || [];
  }

  function encode(object) {
    return btoa(JSON.stringify(object));
  }

  // The signature is a placeholder, because sandbox does not verify it.
  function receiptOf(transactionId, product) {
    const item = { sku: product.sku, displayName: product.displayName, cost: product.cost };
    const payload = {
      topic: 'bits_transaction_receipt',
      exp: Math.round(Date.now() / SECOND) + 60,
      data: { transactionId, time: new Date().toISOString(), userId: viewer.id, product: item },
    };
    return `${encode({ alg: 'HS256', typ: 'JWT' })}.${encode(payload)}.dW5zaWduZWQ`;
  }

  function useBits(sku) {
    const product = products().find((each) => each.sku === sku);
    if (!product) {
      setTimeout(cancelled.emit);
      return;
    }
    const transactionId = `test:${crypto.randomUUID()}`;
    setTimeout(purchased.emit, 0, {
      transactionId,
      product,
      userId: viewer.id,
      displayName: `user ${viewer.id || viewer.opaqueId}`,
      initiator: 'current_user',
      transactionReceipt: receiptOf(transactionId, product),
    });
  }

  // The platform's configuration service. It keeps its content only while the page is open.
  const configuration = {
    broadcaster: undefined,
    developer: undefined,
    global: undefined,
    onChanged: configurationChanged.subscribe,
    set(segment, version, content) {
      configuration[segment] = { version, content };
      configurationChanged.emit();
    },
  };

  const noop = () => {};

  window.Twitch = {
    ext: {
      version: 'emulator',
      emulated: identity, // sdk.js reads it, so that a page has one identity
      environment: 'development',
      viewer,
      configuration,
      onAuthorized: authorized.subscribe,
      onContext: context.subscribe,
      onError: failed.subscribe,
      onVisibilityChanged: visibility.subscribe,
      onPositionChanged: position.subscribe,
      onHighlightChanged: highlight.subscribe,
      listen,
      unlisten,
      send,
      actions: {
        followChannel: (channel) => followed.emit(true, channel),
        onFollow: followed.subscribe,
        minimize: noop,
        requestIdShare,
      },
      bits: {
        getProducts: () => Promise.resolve(products()),
        useBits,
        onTransactionComplete: purchased.subscribe,
        onTransactionCancelled: cancelled.subscribe,
        setUseLoopback: noop, // every purchase is simulated
      },
      features: { isBitsEnabled: true, isChatEnabled: true, isSubscriptionStatusAvailable: Boolean(subscription), onChanged: noop },
      rig: { log: (...words) => console.log(...words) },
    },
  };

  const isOn = (name) => query.get(`extcli_${name}`) === 'on';
  const current = {
    mode: query.get('mode') || 'viewer',
    theme: query.get('extcli_theme') || 'light',
    language: query.get('language') || 'en',
    isFullScreen: isOn('fullscreen'),
    isTheatreMode: false,
    isPaused: isOn('paused'),
    arePlayerControlsVisible: isOn('controls'),
    hlsLatencyBroadcaster: Number(query.get('extcli_delay')) || 0, // seconds by which broadcasts arrive later
  };
  // The settings of the rig that are members of the context.
  const members = {
    theme: 'theme',
    language: 'language',
    fullscreen: 'isFullScreen',
    paused: 'isPaused',
    controls: 'arePlayerControlsVisible',
    delay: 'hlsLatencyBroadcaster',
  };
  const place = { x: Number(query.get('extcli_x')) || 0, y: Number(query.get('extcli_y')) || 0 }; // percent of the video

  function show(isVisible) {
    visibility.emit(isVisible, isVisible ? { ...current } : undefined);
  }

  function move() {
    position.emit({ x: 100 * place.x, y: 100 * place.y }); // the platform counts hundredths of a percent
  }

  context.emit({ ...current }, []);
  if (isOn('hidden')) {
    show(false);
  }
  if (isOn('highlight')) {
    highlight.emit(true);
  }
  if (place.x || place.y) {
    move();
  }
  // The rig changes these settings of a running page, as the platform does.
  window.addEventListener('message', ({ source, data }) => {
    const told = data?.extcli;
    if (source !== window.parent || !told) {
      return;
    }
    const changed = Object.entries(members).filter(
      ([name, member]) => typeof told[name] === typeof current[member] && told[name] !== current[member],
    );
    if (changed.length) {
      changed.forEach(([name, member]) => (current[member] = told[name]));
      const names = changed.map(([, member]) => member);
      context.emit({ ...current }, names);
    }
    if (typeof told.hidden === 'boolean') {
      show(!told.hidden);
    }
    if (typeof told.highlight === 'boolean') {
      highlight.emit(told.highlight);
    }
    if (typeof told.x === 'number' || typeof told.y === 'number') {
      Object.assign(place, { x: told.x ?? place.x, y: told.y ?? place.y });
      move();
    }
  });
  refreshAuthorization();
  connect();
})();
