// Chromium for the scripts beside this one, which are given: the browser, the address of the pages, that of the service.
// It resolves no name, so nothing but loopback can be reached, and everything that pages ask for is recorded.
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

class Record {
  constructor() {
    this.complaints = [];
    this.refusals = [];
    this.origins = new Set();
    this.preflights = new Set();
  }

  async watch(page) {
    page.setDefaultTimeout(30_000);
    page.on('console', (message) => {
      // Refusals are complained of too, without a word on what was refused; they are recorded as answers.
      const isRefusal = /the server responded with a status of/.test(message.text());
      if (['error', 'warning'].includes(message.type()) && !isRefusal) {
        this.complaints.push(message.text());
      }
    });
    page.on('pageerror', (error) => this.complaints.push(String(error)));
    page.on('request', (request) => this.asked(request.url()));
    page.on('response', (answer) => {
      if (answer.status() >= 400) {
        this.refusals.push(`${answer.status()} ${answer.request().method()} ${new URL(answer.url()).pathname}`);
      }
    });
    page.on('websocket', (socket) => this.asked(socket.url().replace(/^ws/, 'http')));
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

  asked(url) {
    const { protocol, origin } = new URL(url);
    if (protocol !== 'data:') {
      this.origins.add(origin);
    }
  }

  // Everything but the two that it is about.
  summary() {
    const strangers = [...this.origins].filter((origin) => ![pages, service].includes(origin));
    const { complaints, refusals } = this;
    return { complaints, refusals, strangers, preflights: [...this.preflights].sort() };
  }
}

// Runs `story` with a way to open a page; prints what it returns, and what the pages complained of and asked for.
function browse(story) {
  run(async () => {
    const browser = await chromium.launch({ executablePath, headless: true, args: ARGS });
    const record = new Record();
    const open = async (path, { width = 800, height = 600, before } = {}) => {
      const context = await browser.newContext({ viewport: { width, height } });
      const page = await context.newPage();
      await record.watch(page);
      if (before) {
        await before(page);
      }
      await page.goto(`${pages}/${path}`);
      return page;
    };
    try {
      return { ...(await story(open)), record: record.summary() };
    } finally {
      await browser.close();
    }
  });
}

module.exports = { browse, service };
