// In a frame of the rig, tells the rig which files of its own server the page uses, in which versions, and which versions
// the server has: the rig loads changed pages again. The service sends this part after network.js.
(function () {
  'use strict';

  const isInRig = window.parent !== window && new URLSearchParams(location.search).has('extcli_role');
  if (!isInRig || window.extcliFiles) {
    return;
  }
  const KINDS = ['script', 'link', 'css', 'img', 'other']; // modules are "other"
  const page = location.origin + location.pathname;
  const { fetch } = window.extcliNetwork; // also while the rig mutes the page
  const used = (window.extcliFiles = {}); // the version of each file that the page uses, by its address
  const dates = {}; // when each file changed, as its server says

  // Unless it comes from there, the file is in the browser's cache afterwards, for the page to load again.
  async function read(url, cache, versions) {
    const response = await fetch(url, { cache });
    const bytes = new Uint8Array(await response.arrayBuffer());
    if (response.ok) {
      dates[url] = Date.parse(response.headers.get('Last-Modified'));
      versions[url] = bytes.reduce((sum, byte) => (31 * sum + byte) | 0, bytes.length);
    }
  }

  async function tell(urls, cacheOf, versions) {
    await Promise.allSettled(urls.map((url) => read(url, cacheOf(url), versions)));
    const found = versions === used ? {} : versions;
    window.parent.postMessage({ extcli: { kind: 'files', used, found } }, '*');
  }

  // A server that dates files by the second says of one that changed twice in a second that it has not changed again.
  const fresh = (url) => (Date.now() - dates[url] < 2000 ? 'reload' : 'no-cache');

  // Servers such as `python3 -m http.server` name no expiry, so a browser shows a file for a tenth of its age without
  // asking them. What it shows is in its cache.
  new PerformanceObserver((list) => {
    const loaded = list.getEntries().filter(({ initiatorType }) => KINDS.includes(initiatorType));
    const files = loaded.map(({ name }) => name).filter((url) => url.startsWith(`${location.origin}/`));
    tell(files, () => 'force-cache', used);
  }).observe({ type: 'resource', buffered: true });

  window.addEventListener('load', async () => {
    await tell([page], fresh, used);
    // A document is cached apart from files, so `fetch` does not find the one in use, which may be older.
    if (dates[page] > Date.parse(document.lastModified)) {
      used[page] = 'old';
    }
  });
  window.addEventListener('message', ({ source, data }) => {
    if (source === window.parent && data?.extcli?.look) {
      tell(data.extcli.look, fresh, {});
    }
  });
})();
