// A namespace of the service for each worker of a test runner, dropped at exit unless the runner kills its workers.
//   const extcli = namespace(); beforeEach(() => extcli.reset()); afterAll(() => extcli.drop());
// The operations are as in the pytest fixture `extcli`: docs/guide/pytest.md. Durations are texts such as 8d, and
// timeouts are in ms. Tokens are signed with the secret in EXTCLI_SECRET_FILE, which `extcli exec` sets; without it, the
// sandbox issues them.
import { execFile, spawnSync } from 'node:child_process';
import { createHmac, randomBytes, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';

const { env } = process;
const service = (env.EXTCLI_URL ?? 'SERVICE').replace(/\/_ns\/.*$|\/$/, '');
const clientId = env.EXTCLI_CLIENT_ID || 'CLIENT_ID';
const channel = env.EXTCLI_CHANNEL || 'CHANNEL';
const secret = env.EXTCLI_SECRET_FILE && Buffer.from(readFileSync(env.EXTCLI_SECRET_FILE, 'utf8').trim(), 'base64');
const worker = env.VITEST_POOL_ID ?? env.JEST_WORKER_ID ?? env.TEST_PARALLEL_INDEX ?? 0;
const DROP = `const headers = { 'X-Emulator-Token': process.env.EXTCLI_CONTROL_TOKEN ?? '' };
process.argv.slice(1).forEach((url) => fetch(url, { method: 'DELETE', headers }))`;
const open = new Set();
const isKept = (failed) => failed && env.EXTCLI_ON_FAILURE; // for the report of `extcli exec --on-failure`
process.on('exit', (code) => open.size && !isKept(code) && spawnSync(process.execPath, ['-e', DROP, ...open]));

const TOKEN_SECONDS = 900;
const WAIT = 5000; // ms to wait for a condition or an update, unless a test gives another timeout
const REPLY = 90_000; // ms for a reply to a game
const NO_REQUEST = 65_535; // the request id of an update
const UNITS = { ms: 1, s: 1e3, m: 6e4, h: 36e5, d: 864e5, w: 6048e5 };
const EFFECTS = ['status', 'delay', 'drop', 'reset', 'truncate', 'stall', 'close', 'lose', 'double', 'reorder'];
const VALUES = { status: 'status', truncate: 'bytes', close: 'code' }; // members with the value of an effect

const snake = (name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
const probe = () => ({ 'X-Request-Id': `probe-${randomUUID()}` }); // of the module itself: no listing shows it
const given = (members) => Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined && value !== ''));
const search = (query) => (Object.keys(given(query)).length ? `?${new URLSearchParams(given(query))}` : '');

function inMs(by) {
  const ms = [...`${by}`.matchAll(/([\d.]+)(ms|[smhdw])|./g)].reduce((sum, [, count, unit]) => sum + count * UNITS[unit], 0);
  if (!by || !(ms >= 0)) throw new Error(`${by} is not a duration such as 1h30m or 8d`);
  return ms;
}

// Returns the Unix ms of RFC 3339, local time, a duration from now, Unix time as a text, Unix ms or a Date.
async function instant(at, now) {
  let ms = typeof at === 'number' || at instanceof Date ? Number(at) : NaN;
  if (typeof at === 'string') {
    if (/^[+-]?[\d.]+[a-z]/.test(at)) ms = (await now()) + (at[0] === '-' ? -1 : 1) * inMs(at.replace(/^[+-]/, ''));
    else if (/^-?\d+(\.\d+)?$/.test(at)) ms = Math.abs(at) < 1e11 ? at * 1000 : Number(at);
    else if (/^\d{4}-\d\d-\d\d/.test(at)) ms = Date.parse(at.length === 10 ? `${at}T00:00` : at); // a date alone would be in UTC
  }
  if (!Number.isFinite(ms)) throw new Error(`${at} is not a point in time such as 2026-11-22T18:00:00Z, 5m or Unix time`);
  return Math.round(ms);
}

async function send(method, url, body, headers = {}) {
  const content = { 'Content-Type': 'application/json', ...headers };
  const answer = await fetch(url, { method, body: JSON.stringify(body), headers: content }).catch((error) => {
    throw new Error(`${service} does not answer (${error.cause?.code ?? error.cause}): run the tests with extcli exec -- COMMAND`);
  });
  const text = await answer.text();
  if (!answer.ok) throw Object.assign(new Error(`${method} ${url}: ${text}`), { status: answer.status });
  return text ? JSON.parse(text) : undefined;
}

function signed(claims) {
  const parts = [{ alg: 'HS256', typ: 'JWT' }, claims].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'));
  return [...parts, createHmac('sha256', secret).update(parts.join('.')).digest('base64url')].join('.');
}

// Returns a fault as the service takes it, of options such as { status: 503, times: 2 }.
function faultOf(match, { event, lasts, ...options }) {
  const effects = EFFECTS.filter((name) => options[name] !== undefined && options[name] !== false);
  if (effects.length !== 1) throw new Error(`a fault has one effect of ${EFFECTS.join(', ')}, and this one has ${effects.length}`);
  const [effect] = effects, value = options[effect];
  const fault = { match: match ?? `BROADCAST ${event}`, effect, lasts: lasts && inMs(lasts), ...(match && { event }) };
  if (effect === 'delay') [fault.delay, fault.delay_max] = value.split('..').map(inMs);
  else if (VALUES[effect]) fault[VALUES[effect]] = value;
  const others = Object.entries(options).filter(([name]) => !EFFECTS.includes(name));
  return given({ ...fault, ...Object.fromEntries(others.map(([name, each]) => [snake(name), each])) });
}

// Opens a WebSocket and returns { write, close }. `receive` gets each message, and `lost` an error when it closes.
async function dial(address, receive, lost) {
  const { request } = await import(address.startsWith('https') ? 'node:https' : 'node:http');
  const asked = { Connection: 'Upgrade', Upgrade: 'websocket', 'Sec-WebSocket-Version': 13, 'Sec-WebSocket-Key': randomBytes(16).toString('base64') };
  const [stream, first] = await new Promise((resolve, reject) => {
    const refused = (answer) => reject(Object.assign(new Error(`${address}: ${answer.statusCode}`), { status: answer.statusCode }));
    request(address, { headers: asked }).on('upgrade', (_, ...both) => resolve(both)).on('response', refused).on('error', reject).end();
  });
  const write = (code, payload) => {
    const mask = randomBytes(4), long = payload.length > 125, head = Buffer.alloc(long ? 10 : 2);
    head[0] = 128 | code;
    head[1] = 128 | (long ? 127 : payload.length);
    if (long) head.writeBigUInt64BE(BigInt(payload.length), 2);
    stream.write(Buffer.concat([head, mask, payload.map((byte, at) => byte ^ mask[at % 4])]));
  };
  let rest = Buffer.alloc(0), parts = [];
  const read = (chunk) => {
    rest = Buffer.concat([rest, chunk]);
    while (rest.length > 1) {
      const width = { 126: 2, 127: 8 }[rest[1] & 127] ?? 0;
      if (rest.length < 2 + width) return;
      const size = width ? rest.readUIntBE(2 + Math.max(0, width - 6), Math.min(width, 6)) : rest[1] & 127;
      if (rest.length < 2 + width + size) return;
      const [first, payload] = [rest[0], rest.subarray(2 + width, 2 + width + size)], code = first & 15;
      rest = rest.subarray(2 + width + size);
      if (code === 9) write(10, payload);
      if (code === 8) stream.end();
      if (code < 3) parts.push(payload);
      if (code < 3 && first & 128) receive(JSON.parse(Buffer.concat(parts.splice(0)).toString()));
    }
  };
  stream.on('data', read).on('error', lost).on('close', () => lost(new Error('the service closed the connection')));
  stream.unref(); // an open socket does not keep the runner alive
  read(first);
  return { write: (document) => write(1, Buffer.from(JSON.stringify(document))), close: () => void stream.destroy() };
}

async function connected(address) {
  const replies = new Map(), updates = [], waiting = new Set();
  const receive = (message) => {
    const found = replies.get(message.meta.request_id);
    if (found) found(message);
    else if (message.meta.request_id === NO_REQUEST) [...waiting, (each) => updates.push(each)][0](message);
  };
  const lost = (error) => [...replies.values(), ...waiting].forEach((settle) => settle(error));
  const { write, close } = await dial(address, receive, lost);
  const inTime = (add, remove, timeout, what) => new Promise((resolve, reject) => {
    const timer = setTimeout(() => settle(new Error(`no ${what} within ${timeout / 1000} s`)), timeout);
    const settle = (found) => { clearTimeout(timer); remove(settle); (found instanceof Error ? reject : resolve)(found); };
    add(settle);
  });
  const request = async (action, target = '', data = undefined) => {
    const id = replies.last = (replies.last ?? 0) + 1;
    const reply = inTime((settle) => replies.set(id, settle), () => replies.delete(id), REPLY, `reply to ${action}`);
    write({ action, params: given({ request_id: id, target }), data });
    const { data: found, errors } = await reply;
    if (errors?.length) throw Object.assign(new Error(`${action} ${target}: ${JSON.stringify(errors)}`), { status: errors[0].status });
    return found ?? {};
  };
  const update = async ({ timeout = WAIT } = {}) =>
    updates.shift() ?? inTime((settle) => waiting.add(settle), (settle) => waiting.delete(settle), timeout, 'update');
  const subscribe = async (target, topic) => void (await request('subscribe', target, topic ? { topic_id: topic } : undefined));
  const game = { request, subscribe, update, close };
  const event = ({ data }) => ({ name: data.event ?? '', data: data.data });
  const events = {
    next: async (options) => event(await update(options)),
    received: async () => { // a reply comes after every update that was sent before it
      await request('get', 'state', { state_id: 'channel' }).catch(() => {});
      return updates.splice(0).map(event);
    },
  };
  return { game, events };
}

export function namespace(name = `${process.pid}-${worker}`) {
  const url = `${service}/_ns/${name}`, wsUrl = `${url.replace(/^http/, 'ws')}/ws`;
  const access = env.EXTCLI_CONTROL_TOKEN ? { 'X-Emulator-Token': env.EXTCLI_CONTROL_TOKEN } : {};
  const control = (method, path, body, headers) => send(method, `${url}/_emulator/${path}`, body, { ...access, ...headers });
  const sockets = new Set();

  const actor = (role, user, options = {}) => {
    const where = options.channel ?? channel;
    const token = async () => {
      const body = { app_id: clientId, channel_id: where || undefined, role, user_id: user };
      if (!secret) return (await send('POST', `${url}/v1/e/authtoken?helper=1`, body, probe())).token;
      const { now } = await control('GET', 'clock', undefined, probe()); // a test may move the clock at any time
      const own = user ?? (role === 'broadcaster' ? where : undefined);
      const opaque = own && `${own}`.replace(/^U?/, 'U');
      const exp = Math.floor(now / 1000) + TOKEN_SECONDS;
      return signed(given({ exp, role, channel_id: where, user_id: own && `${own}`, opaque_user_id: opaque }));
    };
    const headers = async () => ({ Authorization: `${clientId} ${await token()}` });
    const request = async (method, path, body, query = {}) =>
      send(method, `${url}/v1/e/${path}${search(query)}`, body, await headers());
    const done = async (...call) => void (await request(...call));
    return {
      headers, request, call: request,
      vote: (poll, value, { count } = {}) => request('POST', 'vote', given({ value, count }), { id: poll }),
      poll: (id) => request('GET', 'vote', undefined, { id }),
      definePoll: (id, config) => done('POST', 'vote_config', { id, config }),
      clearPoll: (id) => done('DELETE', 'vote', undefined, { id }),
      submit: (ranking, key) => request('POST', 'rank', { key }, { id: ranking }),
      ranking: (id) => request('GET', 'rank', undefined, { id }),
      clearRanking: (id) => done('DELETE', 'rank', undefined, { id }),
      add: (buffer, entry) => done('POST', 'accumulate', entry, { id: buffer }),
      buffer: (id, { start } = {}) => request('GET', 'accumulate', undefined, { id, start }),
      store: (store) => request('GET', store),
      setStore: (store, value) => done('POST', store, value),
      patchStore: (store, patch) => done('PATCH', store, patch),
      jsonStore: (id) => request('GET', 'json_store', undefined, { id }),
      setJsonStore: (id, value) => done('POST', 'json_store', value, { id }),
      defineCodes: (sets) => done('PUT', 'codes', sets),
      eligibility: () => request('GET', 'codes/eligibility'),
      redeem: (prize) => request('POST', 'codes/redeem', { prize }),
      broadcast: (event, data, { target = 'broadcast' } = {}) => done('POST', 'broadcast', { event, target, data }),
      pin: async () => (await request('POST', 'link/pin')).pin,
    };
  };
  const viewer = (user = 'U1', options = {}) => actor('viewer', user, options);
  const broadcaster = actor('broadcaster'), backend = actor('backend');

  const connect = async (credential) => {
    const socket = await connected(wsUrl.replace(/^ws/, 'http'));
    sockets.add(socket);
    await socket.game.request('authenticate', '', { client_id: clientId, ...credential });
    return socket;
  };
  const game = async (pin) => (await connect({ pin: pin ?? (await broadcaster.pin()) })).game;
  const listen = async (...names) => {
    const socket = await connect({ jwt: (await viewer().headers()).Authorization.split(' ')[1] });
    for (const each of names.length ? names : ['*']) await socket.game.subscribe('broadcast', each);
    return socket.events;
  };

  const move = async (change) => (await control('POST', 'clock', change)).expired;
  const clock = {
    now: async () => (await control('GET', 'clock')).now,
    advance: (by) => move({ advance: inMs(by) }),
    set: async (to) => move({ set: await instant(to, clock.now) }),
    freeze: async (at) => move(at === undefined ? { freeze: true } : { freeze: true, set: await instant(at, clock.now) }),
    unfreeze: () => move({ freeze: false }),
  };
  const faults = {
    add: async (match, options = {}) => control('POST', 'faults', faultOf(match, options)),
    list: async () => (await control('GET', 'faults')).faults,
    remove: async (id) => void (await control('POST', 'faults/remove', { id: id ?? '' })),
    clear: async () => void (await control('DELETE', 'faults')),
  };

  const ids = { client_id: clientId, channel_id: channel };
  const wait = async (subject, id, condition) => { // wait('poll', 'boss', { count: 3, timeout: 5000 })
    const scope = subject === 'journal' ? {} : ids; // an answer that a fault gave has no caller
    const outcome = await control('GET', `wait${search({ for: subject, id, ...scope, ...condition })}`);
    if (!outcome.met) throw new Error(`${subject} ${id}: not met\n${JSON.stringify(outcome, null, 2)}`);
    return outcome.found;
  };
  const json = (value) => (value === undefined ? undefined : JSON.stringify(value));
  const meet = (subject, id, condition) => wait(subject, id, { timeout: WAIT, ...condition });
  Object.assign(wait, {
    mark: async () => Number((await fetch(`${url}/_emulator/clock`, { headers: access })).headers.get('x-emulator-mark')),
    poll: (id, { values, ...more } = {}) =>
      meet('poll', id, { value: values && Object.entries(values).map((pair) => pair.join('=')).join(), ...more }),
    ranking: (id, condition) => meet('rank', id, condition),
    buffer: (id, { latest, ...more } = {}) => meet('accumulate', id, { latest: json(latest), ...more }),
    store: (id, path = '', { equals, ...more } = {}) => meet('store', id, { path, equals: json(equals), ...more }),
    jsonStore: (id, path = '', { equals, ...more } = {}) => meet('json_store', id, { path, equals: json(equals), ...more }),
    pin: (event, condition) => meet('pin', event, condition),
    broadcast: (event, condition) => meet('broadcast', event, condition),
    journal: (endpoint = '*', condition = {}) => meet('journal', endpoint, condition),
    sockets: (topic = 'connected', condition = {}) => meet('sockets', topic, { count: 1, ...condition }),
  });

  const close = () => { sockets.forEach((each) => each.game.close()); sockets.clear(); };
  const drop = async ({ failed = false } = {}) => {
    close();
    if (open.delete(url) && !isKept(failed)) await send('DELETE', url, undefined, access);
  };
  const seed = (file, { trusted = false } = {}) => new Promise((resolve, reject) => { // by the command line
    const words = ['seed', 'apply', file, '--url', url, '--output', 'json', ...(trusted ? ['--trust-seed'] : [])];
    execFile('extcli', words, (error, printed, problem) => (error ? reject(new Error(problem || error.message)) : resolve(JSON.parse(printed))));
  });
  open.add(url);
  return {
    name, url, wsUrl, clientId, channel, env: { EXTCLI_URL: url, EXTCLI_WS_URL: wsUrl, EXTCLI_CLIENT_ID: clientId, EXTCLI_CHANNEL: channel },
    actor, viewer, broadcaster, backend, game, listen, clock, faults, wait, seed, close, drop,
    advance: async (by) => control('POST', 'clock', { advance: inMs(by) }), // advance('8d')
    logs: async (filters = {}) => (await control('GET', `journal${search({ order: 'newest', limit: 1000, ...filters })}`)).entries.reverse(),
    reset: () => control('POST', 'reset'),
  };
}
