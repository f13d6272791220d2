// A namespace of the service for each worker of a test runner, dropped at exit unless the runner kills its workers.
//   const extcli = namespace(); beforeEach(() => extcli.reset()); afterAll(() => extcli.drop());
import { spawnSync } from 'node:child_process';

const { env } = process;
const service = (env.EXTCLI_URL ?? "http://127.0.0.1:8282").replace(/\/_ns\/.*$|\/$/, '');
const ids = { client_id: env.EXTCLI_CLIENT_ID ?? "my-extension", channel_id: "1001" };
const worker = env.VITEST_POOL_ID ?? env.JEST_WORKER_ID ?? env.TEST_PARALLEL_INDEX ?? 0;
const UNITS = { ms: 1, s: 1e3, m: 6e4, h: 36e5, d: 864e5, w: 6048e5 };
const inMs = (by) => [...`${by}`.matchAll(/([\d.]+)(ms|[smhdw])|./g)].reduce((sum, [, count, unit]) => sum + count * UNITS[unit], 0);
const open = new Set(), DROP = 'process.argv.slice(1).forEach((url) => fetch(url, { method: "DELETE" }))';
process.on('exit', () => open.size && spawnSync(process.execPath, ['-e', DROP, ...open]));

async function send(method, url, body, headers = {}) {
  const content = { 'Content-Type': 'application/json', ...headers };
  const answer = await fetch(url, { method, body: JSON.stringify(body), headers: content }).catch((error) => {
    throw new Error(`${service} does not answer (${error.cause?.code ?? error.cause}): run the tests with extcli exec -- COMMAND`);
  });
  const text = await answer.text();
  if (!answer.ok) throw Object.assign(new Error(`${method} ${url}: ${text}`), { status: answer.status });
  return text ? JSON.parse(text) : undefined;
}

export function namespace(id = `${process.pid}-${worker}`) {
  const url = `${service}/_ns/${id}`;
  const control = (method, path, body) => send(method, `${url}/_emulator/${path}`, body);
  const actor = (role, user_id) => {
    const token = () => send('POST', `${url}/v1/e/authtoken`, { app_id: ids.client_id, channel_id: ids.channel_id, role, user_id });
    const headers = async () => ({ Authorization: `${ids.client_id} ${(await token()).token}` });
    const call = async (method, path, body) => send(method, `${url}/v1/e/${path}`, body, await headers());
    const poll = (id, ...vote) => call(vote.length ? 'POST' : 'GET', `vote?id=${encodeURIComponent(id)}`, ...vote);
    return { headers, call, poll, vote: (id, value) => poll(id, { value }) };
  };
  const wait = async (subject, id, condition) => { // wait('poll', 'boss', { count: 3, timeout: 5000 })
    const outcome = await control('GET', `wait?${new URLSearchParams({ for: subject, id, ...ids, ...condition })}`);
    if (!outcome.met) throw new Error(`${subject} ${id}: not met\n${JSON.stringify(outcome, null, 2)}`);
  };
  const common = { reset: () => control('POST', 'reset'), drop: () => open.delete(url) && send('DELETE', url), wait };
  const advance = async (by) => { // advance('8d')
    if (!(inMs(by) >= 0)) throw new Error(`${by} is not a duration such as 1h30m or 8d`);
    return control('POST', 'clock', { advance: inMs(by) });
  };
  open.add(url);
  return { url, ...common, advance, viewer: (user = 'U1') => actor('viewer', user), broadcaster: actor('broadcaster'), backend: actor('backend') };
}
