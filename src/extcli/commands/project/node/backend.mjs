// The backend. `node backend.mjs` closes the round: it counts the votes, and tells all pages who wins.
import { readFileSync } from 'node:fs';
import { env } from 'node:process';
import { pathToFileURL } from 'node:url';
import { sign } from './sign.mjs';

const POLL = 'boss';

// The option with the most votes; null after a tie or without votes.
export function winnerOf(options, votes) {
  const most = Math.max(...options.map((_, value) => votes[value]));
  const leaders = options.filter((_, value) => votes[value] === most);
  return most > 0 && leaders.length === 1 ? leaders[0] : null;
}

async function call(method, path, body) {
  if (!env.EXTCLI_SECRET_FILE) throw new Error('EXTCLI_SECRET_FILE must name the file with the secret');
  const secret = readFileSync(env.EXTCLI_SECRET_FILE, 'utf8');
  const clientId = env.EXTCLI_CLIENT_ID || 'CLIENT_ID'; // read at each call: tests set the variables
  const channel = env.EXTCLI_CHANNEL || 'CHANNEL';
  const headers = {
    Authorization: `${clientId} ${await sign(secret, 'backend', channel)}`,
    'Content-Type': 'application/json',
  };
  const service = env.EXTCLI_URL ?? env.SERVICE_URL; // the emulator, else the service in production
  const answer = await fetch(`${service}/v1/e/${path}`, { method, headers, body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
  return answer.json();
}

// Returns the round with its winner. Does nothing if no round is open.
export async function closeRound() {
  const { round } = await call('GET', 'channel_state');
  if (!round?.open) return round ?? {};
  const { specific } = await call('GET', `vote?id=${POLL}`);
  const closed = { ...round, open: false, winner: winnerOf(round.options, specific) };
  await call('PATCH', 'channel_state', [{ op: 'replace', path: '/round', value: closed }]);
  await call('POST', 'broadcast', { target: 'broadcast', event: 'round', data: closed });
  await call('DELETE', `vote?id=${POLL}`); // the next round begins without votes
  return closed;
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) console.log(await closeRound());
