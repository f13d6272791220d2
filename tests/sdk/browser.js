// Drives Chromium. Arguments of a script: the browser's path, the URL of the pages, and the URL of the service.
// Host names do not resolve, so only loopback can be reached. All requests of the pages are recorded.
'use strict';

const { chromium } = require('playwright-core');
const { run } = require('./run');

const [, , executablePath, pages, service] = process.argv;
const ARGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1',
];

class PageLog {
  constructor() {
    this.consoleErrors = [];
    this.errorResponses = [];
    this.origins = new Set();
    this.preflights = new Set();
  }

  async watch(page) {
    page.setDefaultTimeout(30_000);
    page.on('console', (message) => {
      // The console also reports error responses, but without the request. `errorResponses` has them.
      const isErrorResponse = /the server responded with a status of/.test(message.text());
      if (['error', 'warning'].includes(message.type()) && !isErrorResponse) {
        this.consoleErrors.push(message.text());
      }
    });
    page.on('pageerror', (error) => this.consoleErrors.push(String(error)));
    page.on('request', (request) => this.addOrigin(request.url()));
    page.on('response', (response) => {
      if (response.status() >= 400) {
        const { pathname } = new URL(response.url());
        this.errorResponses.push(`${response.status()} ${response.request().method()} ${pathname}`);
      }
    });
    page.on('websocket', (socket) => this.addOrigin(socket.url().replace(/^ws/, 'http')));
    const devtools = await page.context().newCDPSession(page);
    await devtools.send('Network.enable');
    devtools.on('Network.requestWillBeSent', ({ request }) => {
      if (request.method === 'OPTIONS') {
        const { pathname } = new URL(request.url);
        const { 'Access-Control-Request-Method': method, 'Access-Control-Request-Headers': headers } = request.headers;
        this.preflights.add(`${method} ${pathname} ${headers}`);
      }
    });
  }

  addOrigin(url) {
    const { protocol, origin } = new URL(url);
    if (protocol !== 'data:') {
      this.origins.add(origin);
    }
  }

  summary() {
    const unexpectedOrigins = [...this.origins].filter((origin) => ![pages, service].includes(origin));
    const { consoleErrors, errorResponses } = this;
    return { consoleErrors, errorResponses, unexpectedOrigins, preflights: [...this.preflights].sort() };
  }
}

// Runs `scenario` with a function that opens a page; prints its result, and the log of all pages as `log`.
function browse(scenario) {
  run(async () => {
    const browser = await chromium.launch({ executablePath, headless: true, args: ARGS });
    const log = new PageLog();
    // A page has a browser profile of its own, unless it shares the profile of another page.
    const open = async (path, { width = 800, height = 600, before, beside } = {}) => {
      const context = beside ? beside.context() : await browser.newContext({ viewport: { width, height } });
      const page = await context.newPage();
      await log.watch(page);
      if (before) {
        await before(page);
      }
      await page.goto(`${pages}/${path}`);
      return page;
    };
    try {
      return { ...(await scenario(open)), log: log.summary() };
    } finally {
      await browser.close();
    }
  });
}

module.exports = { browse, service };
