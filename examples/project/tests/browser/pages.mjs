// Serves the project's folder over HTTP, one server for each worker, and adds it to the fixtures.
import { createReadStream, existsSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test as base } from '../extcli-playwright.mjs';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const TYPES = { '.html': 'text/html', '.js': 'text/javascript' };

export const test = base.extend({
  pages: [
    async ({}, use) => {
      const server = createServer((request, response) => {
        const path = ROOT + request.url.slice(1);
        const isFile = existsSync(path) && !path.includes('..');
        response.writeHead(isFile ? 200 : 404, { 'Content-Type': TYPES[extname(path)] ?? 'text/plain' });
        isFile ? createReadStream(path).pipe(response) : response.end();
      });
      await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
      await use(`http://127.0.0.1:${server.address().port}`);
      server.closeAllConnections();
      server.close();
    },
    { scope: 'worker' },
  ],
});
