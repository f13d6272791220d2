// The extension's backend. It closes a round of the poll `boss` and announces the winner.
// As a program, `node backend.mjs`, it reads BACKEND_URL and BACKEND_AUTHORIZATION, and prints the winner.
import { argv, env } from 'node:process';
import { fileURLToPath } from 'node:url';

export const OPTIONS = ['Dragon', 'Golem', 'Hydra'];

// The option with the most votes; null after a tie or without votes.
export function winnerOf(votes) {
  const most = Math.max(...votes);
  const leaders = OPTIONS.filter((_, value) => votes[value] === most);
  if (env.PLANTED_BUG) {
    return leaders.at(-1); // for trying out how the tests fail: a tie, too, has a winner
  }
  return most > 0 && leaders.length === 1 ? leaders[0] : null;
}

export async function closeRound(url, authorization) {
  const call = async (method, path, body) => {
    const headers = { Authorization: authorization, 'Content-Type': 'application/json' };
    const answer = await fetch(`${url}/v1/e/${path}`, { method, headers, body: JSON.stringify(body) });
    if (!answer.ok) {
      throw new Error(`${method} ${path}: ${await answer.text()}`);
    }
    return answer.json();
  };
  const { specific } = await call('GET', 'vote?id=boss');
  const winner = winnerOf(specific.slice(0, OPTIONS.length));
  await call('POST', 'channel_state', { winner });
  await call('POST', 'broadcast', { event: 'round-over', target: 'broadcast', data: { winner } });
  await call('DELETE', 'vote?id=boss');
  return winner;
}

if (argv[1] === fileURLToPath(import.meta.url)) {
  console.log((await closeRound(env.BACKEND_URL, env.BACKEND_AUTHORIZATION)) ?? 'a tie');
}
