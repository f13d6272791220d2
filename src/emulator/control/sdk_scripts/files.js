// In a frame of the rig, tells the rig if a file of the page has changed since the browser put it into its cache. Servers
// such as `python3 -m http.server` name no expiry, so a browser shows a file for a tenth of its age without asking them,
// also after a reload of the rig. The service sends this part before sdk.js and platform-helper.js.
(function () {
  'use strict';

  const isInRig = window.parent !== window && new URLSearchParams(location.search).has('extcli_role');
  if (!isInRig || window.extcliFiles) {
    return;
  }
  const KINDS = ['script', 'link', 'css', 'img', 'other']; // modules are "other"

  async function versionOf(url, cache) {
    const { headers } = await fetch(url, { cache });
    return `${headers.get('ETag')} ${headers.get('Last-Modified')}`;
  }

  // The second request also puts the new file into the cache.
  async function hasFileChanged(url) {
    const used = await versionOf(url, 'force-cache');
    return used !== (await versionOf(url, 'no-cache'));
  }

  // A frame's document is cached apart from files, so `fetch` does not find the one in use.
  async function hasPageChanged() {
    const { headers } = await fetch(location.href, { method: 'HEAD', cache: 'no-store' });
    const changedAt = Date.parse(headers.get('Last-Modified'));
    return !Number.isNaN(changedAt) && changedAt !== Date.parse(document.lastModified);
  }

  async function check() {
    const [page] = performance.getEntriesByType('navigation');
    if (page.type === 'reload') {
      return; // the rig has just loaded it again
    }
    const isFromCache = ({ name, transferSize }) => transferSize === 0 && name.startsWith(`${location.origin}/`);
    const files = performance.getEntriesByType('resource').filter(
      (file) => KINDS.includes(file.initiatorType) && isFromCache(file),
    );
    const checks = files.map(({ name }) => hasFileChanged(name));
    if (isFromCache(page)) {
      checks.push(hasPageChanged());
    }
    const hasChanged = (await Promise.allSettled(checks)).some(({ value }) => value);
    window.parent.postMessage({ extcli: { kind: hasChanged ? 'changed' : 'unchanged' } }, '*');
  }

  window.extcliFiles = true;
  window.addEventListener('load', check);
  window.addEventListener('message', ({ source, data }) => {
    if (source === window.parent && data?.extcli?.reload) {
      location.reload();
    }
  });
})();
