// In a frame of the rig, tells the rig what the page writes to its console, and the errors of its scripts. The service
// sends this part before sdk.js and platform-helper.js, which tells the rig more with `extcliTell`.
(function () {
  'use strict';

  const isInRig = window.parent !== window && new URLSearchParams(location.search).has('extcli_role');
  const script = document.currentScript;
  if (!isInRig || window.extcliTell || !script) {
    return;
  }

  const textOf = (word) => (typeof word === 'object' ? word?.stack || JSON.stringify(word) : String(word));

  window.extcliTell = (kind, ...words) => {
    let text;
    try {
      text = words.map(textOf).join(' ').slice(0, 500);
    } catch {
      text = '(an object that JSON cannot contain)';
    }
    window.parent.postMessage({ extcli: { kind, text } }, new URL(script.src).origin);
  };

  window.addEventListener('error', ({ message }) => message && window.extcliTell('error', message));
  window.addEventListener('unhandledrejection', ({ reason }) => window.extcliTell('error', reason));
  ['log', 'info', 'warn', 'error'].forEach((level) => {
    const write = console[level];
    console[level] = (...words) => {
      write.apply(console, words);
      window.extcliTell(level, ...words);
    };
  });
})();
