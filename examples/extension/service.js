// Connects the published SDK to your own service in production. Upload this file with your pages, and include it after
// Twitch's helper and before the SDK:
//
//   <script src="service.js" data-service="https://backend.example"></script>
//   <script src="medkit.umd.js"></script>
//
// The SDK's calls go to the service with the viewer's token. Broadcasts come from the service, too: only with a token of
// the channel, which each subscription carries in `auth`, so that no URL and no log of a proxy has it.
(function () {
  'use strict';

  const RETRY_AFTER = 2_000;
  const REST = /^https:\/\/(sandbox\.)?api\.muxy\.io(?=[/?]|$)/;
  const { service } = document.currentScript.dataset;
  const { ext } = window.Twitch;
  const listeners = new Map(); // target -> Set of callbacks
  let authorization = null; // of the viewer, as Twitch's helper gives it
  let socket = null;

  const { open } = XMLHttpRequest.prototype;
  XMLHttpRequest.prototype.open = function (method, url, ...rest) {
    return open.call(this, method, String(url).replace(REST, service), ...rest);
  };

  function topics() {
    return [authorization.channelId, 'all'].map((channel) => `twitch.pubsub.${authorization.clientId}.${channel}`);
  }

  function sendFrame(event, data) {
    socket.send(JSON.stringify({ event, data }));
  }

  // Subscribing again replaces the token of a subscription, which ends when its token expires.
  function subscribe() {
    const auth = `${authorization.clientId} ${authorization.token}`;
    topics().forEach((channel) => sendFrame('pusher:subscribe', { channel, auth }));
  }

  function deliver({ event, channel, data }) {
    const { message } = JSON.parse(data);
    const target = channel === topics()[1] && event === 'broadcast' ? 'global' : event;
    [...(listeners.get(target) || [])].forEach((callback) => callback(target, 'application/json', message));
  }

  function connect() {
    socket = new WebSocket(`${service.replace(/^http/, 'ws')}/app/page?protocol=7`);
    socket.onmessage = ({ data }) => {
      const frame = JSON.parse(data);
      if (frame.event === 'pusher:connection_established') {
        subscribe();
      } else if (frame.event === 'pusher:ping') {
        sendFrame('pusher:pong', {});
      } else if (frame.event === 'pusher:subscription_error') {
        console.warn('service.js: no broadcasts:', frame.data); // the helper's next token subscribes again
      } else if (!frame.event.startsWith('pusher')) {
        deliver(frame);
      }
    };
    socket.onclose = () => setTimeout(connect, RETRY_AFTER * (1 + Math.random()));
  }

  // The helper calls this again with each new token, before the previous one expires.
  ext.onAuthorized((current) => {
    authorization = current;
    if (socket === null) {
      connect();
    } else if (socket.readyState === WebSocket.OPEN) {
      subscribe();
    }
  });

  ext.listen = (target, callback) => listeners.set(target, (listeners.get(target) || new Set()).add(callback));
  ext.unlisten = (target, callback) => listeners.get(target)?.delete(callback);
  ext.send = (target, contentType, { event, data }) =>
    fetch(`${service}/v1/e/pusher_broadcast`, {
      method: 'POST',
      headers: {
        'Content-Type': 'application/json',
        Authorization: `${authorization.clientId} ${authorization.token}`,
      },
      body: JSON.stringify({ target, event, data, user_id: authorization.channelId }),
    });
})();
