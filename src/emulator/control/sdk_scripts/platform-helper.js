// Replaces Twitch's helper, so that an extension's page runs in a frame of any page:
//
//   <iframe src="panel.html?role=viewer&channel_id=777&user_id=5551&client_id=my-extension"></iframe>
//
// In panel.html, in place of Twitch's helper:
//
//   <script src="http://127.0.0.1:8282/_emulator/platform-helper.js"></script>
//
// Parameters that the frame's URL omits are read from the script element: data-role, data-channel-id, data-user-id,
// data-client-id. Without a user id, the viewer is anonymous in a frame, and the browser profile's user elsewhere. The
// URL may also have Twitch's parameters and `extcli_theme=dark`. For development: a page chooses its identity.
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

  // Says once what a member does not do.
  const said = new Set();
  function say(member, text = 'the emulator does nothing') {
    if (!said.has(member)) {
      said.add(member);
      console.warn(`Twitch.ext.${member}: ${text}`);
    }
  }

  // An event keeps only its last callback, as on Twitch. An error in a callback stops nothing else. A callback
  // that comes late is told what `missed` returns: by default, the last event.
  function eventSource(missed = (last) => last) {
    let callback = null;
    let last = null;
    function run(args) {
      const chosen = args && callback;
      setTimeout(() => chosen === callback && chosen?.(...args));
    }
    return {
      emit(...args) {
        last = args;
        run(args);
      },
      subscribe(next) {
        callback = (...args) => next(...args);
        run(missed(last));
      },
    };
  }

  const context = eventSource(() => [{ ...current }, Object.keys(current)]);
  const featuresChanged = eventSource(() => [Object.keys(features)]);
  const [authorized, viewerChanged, configurationChanged] = Array.from({ length: 3 }, () => eventSource());
  const [visibility, position, highlight, failed] = Array.from({ length: 4 }, () => eventSource());
  const [followed, purchased, cancelled] = Array.from({ length: 3 }, () => eventSource(() => null));

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
    get helixToken() {
      say('viewer.helixToken', 'empty, because the emulator does not have the Twitch API');
      return '';
    },
    subscriptionStatus: subscription ? { tier: subscription } : null,
    onChanged: viewerChanged.subscribe,
  };

  async function call(method, endpoint, token, body) {
    const response = await fetch(`${service}/v1/e/${endpoint}`, {
      method,
      headers: { 'Content-Type': 'application/json', ...(token && { Authorization: `${identity.clientId} ${token}` }) },
      body: body && JSON.stringify(body),
    });
    const answer = await response.json();
    if (!response.ok) {
      throw new Error(`${endpoint}: ${answer.reason}: ${answer.info}`);
    }
    return answer;
  }

  async function tokenOf(role, user) {
    const body = { extension_id: identity.clientId, channel_id: identity.channelId, role, ...user };
    return (await call('POST', 'authtoken?helper=1', null, body)).token;
  }

  async function authorize() {
    // The opaque id of a user who has shared no other. It stays the same when the user does.
    const opaqueId = /^U/.test(identity.userId) ? identity.userId : `U${identity.userId}`;
    const user = identity.isShared ? { user_id: identity.userId } : { opaque_user_id: opaqueId };
    const token = await tokenOf(identity.role, identity.userId ? user : {});
    const claims = JSON.parse(atob(token.split('.')[1].replace(/-/g, '+').replace(/_/g, '/')));
    viewer.opaqueId = claims.opaque_user_id;
    viewer.id = claims.user_id || null;
    viewer.isLinked = Boolean(claims.user_id);
    viewer.sessionToken = token;
    authorized.emit({
      channelId: identity.channelId,
      clientId: identity.clientId,
      token,
      helixToken: '', // the Twitch API is not emulated
      userId: viewer.opaqueId,
    });
    viewerChanged.emit();
  }

  async function refreshAuthorization() {
    const hasToken = await authorize().then(() => true, fail);
    setTimeout(refreshAuthorization, hasToken ? REFRESH_EVERY : RETRY_AFTER);
  }

  // On Twitch, a dialog asks the viewer first.
  function requestIdShare() {
    if (!identity.userId || identity.isShared) {
      const reason = identity.userId ? 'has already shared the id' : 'is not logged in';
      return say('actions.requestIdShare', `the emulator does nothing, because this viewer ${reason}`);
    }
    identity.isShared = true;
    authorize().catch(fail);
  }

  // Twitch's configuration service. A viewer who does not exist keeps it, apart from the data of the extension:
  // `broadcaster` and `developer` in the state for the channel, and `global` in the state for all channels.
  const KEEPER = 'Utwitch-configuration';
  const CONFIGURED_AT = [`whisper-${KEEPER}`, 'pusher_internal:subscription_succeeded']; // when a page reads it
  const MOST_BYTES = 5 * 1024; // of a segment's content, as on Twitch

  const configuration = {
    onChanged: configurationChanged.subscribe,
    set(segment, version, content) {
      const size = new TextEncoder().encode(content).length;
      const refusal =
        (segment !== 'broadcaster' && `a page can set only the segment broadcaster, not ${segment}`) ||
        (identity.role !== 'broadcaster' && `the role ${identity.role} cannot set it, only the broadcaster`) ||
        (typeof content !== 'string' && `the content must be a string, not ${typeof content}`) ||
        (size > MOST_BYTES && `the content has ${size} bytes, the limit is ${MOST_BYTES}`);
      if (refusal) {
        fail(new Error(`Twitch.ext.configuration.set: ${refusal}`));
      } else {
        configure({ broadcaster: { version: String(version ?? ''), content } });
      }
    },
  };

  let known = null;
  let configured = Promise.resolve();

  // Writes the change, if there is one, and reads what is kept. The keeper then whispers to the channel's pages.
  function configure(change) {
    async function exchange() {
      const token = await tokenOf('viewer', { opaque_user_id: KEEPER });
      if (change) {
        await call('PATCH', 'viewer_state', token, change);
      }
      const { viewer: ofChannel, extension_viewer: ofAll } = await call('GET', 'all_state', token);
      const found = { global: ofAll.global, developer: ofChannel.developer, broadcaster: ofChannel.broadcaster };
      if (JSON.stringify(found) !== known) {
        known = JSON.stringify(found);
        Object.assign(configuration, found);
        configurationChanged.emit();
      }
      if (change) {
        await call('POST', 'whisper_self', token, { event: 'changed', data: {} });
      }
    }
    configured = configured.then(exchange).catch(fail);
    return configured;
  }

  const listeners = new Map(); // target -> Set of callbacks

  function listen(target, callback) {
    listeners.set(target, (listeners.get(target) || new Set()).add(callback));
  }

  function unlisten(target, callback) {
    listeners.get(target)?.delete(callback);
  }

  function deliver(target, message) {
    window.extcliTell?.('heard', target, message); // in a frame of the rig
    const plain = message.startsWith(`{"event":"${PLAIN_EVENT}"`) && JSON.parse(message).data;
    const { contentType, content } = plain || { contentType: 'application/json', content: message };
    listeners.get(target)?.forEach((callback) => queueMicrotask(() => callback(target, contentType, content)));
  }

  function receive(topics, { channel, event, data }) {
    const { message } = JSON.parse(data || '{}');
    const isForOthers = event.startsWith('whisper-') && ![viewer.opaqueId, viewer.id].includes(event.slice(8));
    if (!topics.includes(channel) || typeof message !== 'string' || isForOthers) {
      return; // as on Twitch, a page receives only whispers to its own user
    }
    const target = channel === topics[1] && event === 'broadcast' ? 'global' : event;
    if (current.hlsLatencyBroadcaster) {
      setTimeout(deliver, current.hlsLatencyBroadcaster * SECOND, target, message);
    } else {
      deliver(target, message);
    }
  }

  // Receives broadcasts over the Pusher protocol. It reconnects after a loss, as Twitch does.
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
      } else if (frame.channel === topics[0] && CONFIGURED_AT.includes(frame.event)) {
        configure();
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
    const body = { target, event, data, user_id: identity.channelId };
    call('POST', 'pusher_broadcast', viewer.sessionToken, body).catch(fail);
  }

  // The products of the SDK's development mode.
  function products() {
    if (!window.MEDKIT_PURCHASABLE_ITEMS) {
      say('bits.getProducts', 'the emulator has none, because window.MEDKIT_PURCHASABLE_ITEMS is not set');
    }
    return window.MEDKIT_PURCHASABLE_ITEMS || [];
  }

  // The signature is a placeholder, because sandbox does not verify it.
  function receiptOf(transactionId, { sku, displayName, cost }) {
    const payload = {
      topic: 'bits_transaction_receipt',
      exp: Math.round(Date.now() / SECOND) + 60,
      data: { transactionId, time: new Date().toISOString(), userId: viewer.id, product: { sku, displayName, cost } },
    };
    const encoded = (part) => btoa(String.fromCodePoint(...new TextEncoder().encode(JSON.stringify(part))));
    return `${encoded({ alg: 'HS256', typ: 'JWT' })}.${encoded(payload)}.dW5zaWduZWQ`;
  }

  function useBits(sku) {
    const product = products().find((each) => each.sku === sku);
    const transactionID = `test:${crypto.randomUUID()}`;
    const transaction = product && {
      transactionID,
      transactionId: transactionID, // the SDK reads this spelling
      domainID: `twitch.ext.${identity.clientId}`,
      product,
      userId: viewer.id,
      displayName: `user ${viewer.id || viewer.opaqueId}`,
      initiator: 'current_user',
      transactionReceipt: receiptOf(transactionID, product),
    };
    setTimeout(product ? purchased.emit : cancelled.emit, 0, transaction);
  }

  const features = { isBitsEnabled: true, isChatEnabled: true, isSubscriptionStatusAvailable: true };

  window.Twitch = {
    ext: {
      version: '1.24.0',
      emulated: identity, // sdk.js reads it, so that a page has one identity
      environment: 'production', // as all pages see it on Twitch
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
        minimize: () => say('actions.minimize'),
        requestIdShare,
      },
      bits: {
        getProducts: () => Promise.resolve(products()),
        useBits,
        onTransactionComplete: purchased.subscribe,
        onTransactionCancelled: cancelled.subscribe,
        setUseLoopback: (isOn) => isOn || say('bits.setUseLoopback', 'the emulator simulates every purchase'),
        showBitsBalance: () => say('bits.showBitsBalance'),
      },
      features: { ...features, onChanged: featuresChanged.subscribe },
      rig: { log: (...words) => console.log(...words) },
    },
  };

  const isOn = (name) => query.get(`extcli_${name}`) === 'on';
  const numberOf = (name) => Number(query.get(`extcli_${name}`)) || 0;
  const current = {
    arePlayerControlsVisible: isOn('controls'),
    bitrate: 6000,
    bufferSize: 4,
    displayResolution: '1920x1080',
    game: 'Just Chatting',
    hlsLatencyBroadcaster: numberOf('delay'), // seconds by which broadcasts arrive later
    hostingInfo: undefined, // the channel hosts no other
    isFullScreen: isOn('fullscreen'),
    isMuted: false,
    isPaused: isOn('paused'),
    isTheatreMode: false,
    language: query.get('language') || 'en',
    mode: query.get('mode') || 'viewer',
    playbackMode: 'video',
    theme: query.get('extcli_theme') || 'light',
    videoResolution: '1920x1080',
    volume: 1,
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
  const place = { x: 0, y: 0 }; // percent of the video

  // Fires the events of settings that are no members of the context.
  function follow({ hidden, highlight: isHighlighted, x, y }) {
    if (typeof hidden === 'boolean') {
      visibility.emit(!hidden, hidden ? undefined : { ...current });
    }
    if (typeof isHighlighted === 'boolean') {
      highlight.emit(isHighlighted);
    }
    if (typeof x === 'number' || typeof y === 'number') {
      Object.assign(place, { x: x ?? place.x, y: y ?? place.y });
      position.emit({ x: 100 * place.x, y: 100 * place.y }); // Twitch counts hundredths of a percent
    }
  }

  follow({
    ...(isOn('hidden') && { hidden: true }),
    ...(isOn('highlight') && { highlight: true }),
    ...(query.get('anchor') === 'component' && { x: numberOf('x'), y: numberOf('y') }),
  });
  // The rig changes these settings of a running page, as Twitch does.
  window.addEventListener('message', ({ source, data }) => {
    const told = data?.extcli;
    if (source !== window.parent || !told) {
      return;
    }
    const changed = Object.entries(members).filter(
      ([name, member]) => typeof told[name] === typeof current[member] && told[name] !== current[member],
    );
    changed.forEach(([name, member]) => (current[member] = told[name]));
    if (changed.length) {
      context.emit({ ...current }, changed.map(([, member]) => member));
    }
    follow(told);
  });
  configure().then(refreshAuthorization);
  connect();
})();
