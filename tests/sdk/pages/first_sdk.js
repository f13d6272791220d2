// The members of version 1 of the published SDK that say who a page acts as, in the order in which it sets them. Written
// for these tests: the package registry has no version 1.
'use strict';

function start(sdk, { clientID }) {
  sdk.clientID = clientID;
  sdk.setupCalled = true;
}

// Fills an object that is, or will be, the SDK.
function firstSdk(sdk) {
  sdk.setupCalled = false;
  sdk.testChannelID = '23161357';
  sdk.testJWTRole = 'viewer';
  if (!sdk.setup) {
    sdk.setup = (options) => start(sdk, options);
  }
  // Returns the claims of the token that the page gets.
  sdk.authorize = () =>
    new Promise((resolve, reject) => {
      const request = new XMLHttpRequest();
      request.open('POST', 'https://sandbox.api.muxy.io/v1/e/authtoken');
      request.onload = () => resolve(JSON.parse(atob(JSON.parse(request.responseText).token.split('.')[1])));
      request.onerror = reject;
      request.send(JSON.stringify({ app_id: sdk.clientID, channel_id: sdk.testChannelID, role: sdk.testJWTRole }));
    });
  return sdk;
}
