// Signs tokens of an extension. `EXTCLI_SECRET_FILE=my-extension.secret node sign.mjs` prints a header for curl.
import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

const { env } = process;
const clientId = env.EXTCLI_CLIENT_ID || 'CLIENT_ID';
const channel = env.EXTCLI_CHANNEL || 'CHANNEL';

// The time in Unix seconds: in tests the emulator's, whose clock may have been moved; otherwise the machine's.
export async function now() {
  if (!env.EXTCLI_URL) return Math.floor(Date.now() / 1000);
  const headers = { 'X-Emulator-Token': env.EXTCLI_CONTROL_TOKEN ?? '' }; // needed if it is in a container
  const answer = await fetch(`${env.EXTCLI_URL}/_emulator/clock`, { headers });
  if (!answer.ok) throw new Error(`${answer.url} answers ${answer.status}`);
  return Math.floor((await answer.json()).now / 1000);
}

// A token for a role: viewer, broadcaster, admin or backend. The secret is in base64.
export async function sign(secret, role, channel_id, user_id, seconds = 900) {
  const claims = { exp: (await now()) + seconds, role, channel_id, user_id };
  const segment = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const signed = `${segment({ alg: 'HS256', typ: 'JWT' })}.${segment(claims)}`;
  const key = Buffer.from(secret, 'base64'); // the key is what the base64 stands for, not its text
  return `${signed}.${createHmac('sha256', key).update(signed).digest('base64url')}`;
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [role = 'backend', channelId = channel, userId] = process.argv.slice(2);
  const secret = readFileSync(env.EXTCLI_SECRET_FILE, 'utf8');
  console.log(`Authorization: ${clientId} ${await sign(secret, role, channelId, userId)}`);
}
