// Chooses the user that a page simulates. The service sends this part before sdk.js and platform-helper.js.
//
// The page's URL comes first: ?extcli_user=5551&extcli_channel=777&extcli_role=broadcaster. Then come the page's own
// choice and the script element: data-role, data-channel-id, data-user-id. With platform-helper.js, the URL may also say
// extcli_identity=unshared (the user is logged in and has not shared the id) or anonymous. For development only.
(function () {
  'use strict';

  const DEFAULT_CHANNEL = '1001'; // also the default of the command line
  const STORED_USER = 'extcli_user';

  function newUser() {
    return String(100_000_000 + (crypto.getRandomValues(new Uint32Array(1))[0] % 900_000_000));
  }

  window.extcliIdentity = {
    // Returns role, channel id, user id and whether it is shared; without a choice, the user id is null.
    choose(script, own) {
      const query = new URLSearchParams(location.search);
      const isAnonymous = query.get('extcli_identity') === 'anonymous';
      return {
        role: query.get('extcli_role') || own.role || script.dataset.role || 'viewer',
        channelId: query.get('extcli_channel') || own.channelId || script.dataset.channelId || DEFAULT_CHANNEL,
        userId: isAnonymous ? null : query.get('extcli_user') || own.userId || script.dataset.userId || null,
        isAnonymous,
        isShared: query.get('extcli_identity') !== 'unshared',
      };
    },

    // Returns the user of this browser profile. Without storage, each page load has a new one.
    profileUser() {
      try {
        const user = localStorage.getItem(STORED_USER) || newUser();
        localStorage.setItem(STORED_USER, user);
        return user;
      } catch {
        return newUser();
      }
    },
  };
})();
