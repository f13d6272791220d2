// Types of extcli.mjs, for tests in TypeScript: extcli connect node-types > tests/extcli.d.mts

/** A number means at least that many; `=3` means exactly three. */
export type Count = number | `=${number}`;
/** Unix ms, a Date, or a text: RFC 3339, local time, Unix time, or a duration from now such as `5m`. */
export type Instant = number | Date | string;
/** `timeout` is in ms. `since` is a `mark`: only later changes count. */
export interface Condition { count?: Count; since?: number; timeout?: number }
type Found = Promise<Record<string, unknown>>;

/** `specific` has the number of votes for each value; `vote` is the caller's own. */
export interface Statistics { count: number; sum: number; mean: number; stddev: number; specific: number[] }
export interface Poll extends Statistics { stats: Statistics; vote?: number }
/** `startsAt` and `endsAt` are in Unix seconds, `startsIn` and `endsIn` in seconds from now. */
export interface PollConfig {
  prompt?: string; options?: string[]; userData?: unknown; disabled?: boolean; global?: boolean; userIDVoting?: boolean;
  startsAt?: number; endsAt?: number; startsIn?: number; endsIn?: number;
  distinctOptionsPerUser?: number; totalVotesPerUser?: number; votesPerOption?: number;
}
export interface Entry { observed: number; channel_id: string; opaque_user_id: string; user_id: string; data: unknown }

/** A refused call rejects with an `Error` that has the `status`. `T` is the type of your data. */
export interface Actor {
  headers(): Promise<{ Authorization: string }>;
  request<T = unknown>(method: string, path: string, body?: unknown, query?: Record<string, unknown>): Promise<T>;
  call: Actor['request'];
  vote(poll: string, value: number, options?: { count?: number }): Promise<Poll>;
  poll(id: string): Promise<Poll>;
  definePoll(id: string, config: PollConfig): Promise<void>;
  clearPoll(id: string): Promise<void>;
  submit(ranking: string, key: string): Promise<{ accepted: boolean; original?: string }>;
  ranking(id: string): Promise<{ data: { key: string; score: number }[] }>;
  clearRanking(id: string): Promise<void>;
  add(buffer: string, entry: unknown): Promise<void>;
  /** `start`, `observed` and `latest` are in Unix ms. */
  buffer(id: string, options?: { start?: number }): Promise<{ data: Entry[]; latest: number }>;
  store<T = unknown>(store: string): Promise<T>;
  setStore(store: string, value: object): Promise<void>;
  patchStore(store: string, patch: object): Promise<void>;
  jsonStore<T = unknown>(id: string): Promise<T>;
  setJsonStore(id: string, value: object): Promise<void>;
  defineCodes(sets: { codes: string[][]; names: string[]; indices?: number[] }): Promise<void>;
  eligibility(): Promise<{ eligible: number[] }>;
  redeem(prize: number): Promise<{ all_prizes: string[]; code?: string }>;
  broadcast(event: string, data?: unknown, options?: { target?: string }): Promise<void>;
  pin(): Promise<string>;
}

export interface Update<T> { meta: { action: string; target: string; /** Unix ms */ timestamp: number }; data: T }
/** Each `timeout` is in ms, by default 5000. */
export interface Game {
  request<T = unknown>(action: string, target?: string, data?: unknown): Promise<T>;
  subscribe(target: string, topic?: string): Promise<void>;
  update<T = unknown>(options?: { timeout?: number }): Promise<Update<T>>;
  close(): void;
}
export interface Event { name: string; data: unknown }
export interface Events { next(options?: { timeout?: number }): Promise<Event>; received(): Promise<Event[]> }

export interface Expired { kind: string; id: string; /** Unix ms */ at: number; client_id: string; channel_id: string }
/** `now` is in Unix ms. Durations are texts such as `1h30m` or `8d`. */
export interface Clock {
  now(): Promise<number>;
  advance(by: string): Promise<Expired[]>;
  set(to: Instant): Promise<Expired[]>;
  freeze(at?: Instant): Promise<Expired[]>;
  unfreeze(): Promise<Expired[]>;
}

/** One effect, and when it acts. `delay` is a duration, or a range such as `200ms..2s`; `lasts` is a duration. */
export interface FaultOptions {
  status?: number; /** Seconds */ retryAfter?: number; delay?: string; drop?: boolean; reset?: boolean; stall?: boolean;
  /** Bytes */ truncate?: number; close?: number; lose?: boolean; double?: boolean; reorder?: boolean;
  id?: string; event?: string; role?: string; user?: string; clientId?: string; channel?: string;
  times?: number; /** 0 to 1 */ share?: number; seed?: number; lasts?: string;
}
export interface Fault { id: string; match: string; effect: string; hits: number; left: number | null }
export interface Faults {
  add(match: string | undefined, options: FaultOptions): Promise<Fault>;
  list(): Promise<Fault[]>;
  remove(id: string): Promise<void>;
  clear(): Promise<void>;
}

/** Each resolves to what was found, and rejects if the condition is not met within `timeout`, by default 5000 ms. */
export interface Wait {
  (subject: string, id: string, condition?: Condition & Record<string, unknown>): Found;
  mark(): Promise<number>;
  poll(id: string, condition?: Condition & { values?: Record<number, Count>; sum?: Count }): Found;
  ranking(id: string, condition?: Condition & { key?: string; score?: Count }): Found;
  buffer(id: string, condition?: Condition & { latest?: unknown }): Found;
  store(id: string, path?: string, condition?: Omit<Condition, 'count'> & { equals?: unknown; user?: string }): Found;
  jsonStore(id: string, path?: string, condition?: Omit<Condition, 'count'> & { equals?: unknown }): Found;
  pin(event: 'issued' | 'used' | 'revoked', condition?: Condition): Found;
  broadcast(event: string, condition?: Condition): Found;
  journal(endpoint?: string, condition?: Condition & Record<string, string | number>): Found;
  sockets(topic?: string, condition?: Omit<Condition, 'since'>): Found;
}

type Text = { text: string; encoding: string; /** Bytes */ size: number; is_cut: boolean; is_hidden: boolean };
export interface JournalEntry {
  number: number; kind: string; /** Unix ms */ at: number; id: string; endpoint: string; path: string; status: number;
  caller: { client_id: string; role: string; channel_id: string; user_id: string; opaque_id: string } | null;
  request: Text; response: Text; code: string; reason: string; detail: string; production: string; hint: string;
}

/** `advance` takes a duration such as `8d`. Each `now` is in Unix ms, `offset` in ms. */
export interface Namespace {
  name: string; url: string; wsUrl: string; clientId: string; channel: string;
  /** Variables that point a backend at the namespace. */
  env: Record<'EXTCLI_URL' | 'EXTCLI_WS_URL' | 'EXTCLI_CLIENT_ID' | 'EXTCLI_CHANNEL', string>;
  broadcaster: Actor; backend: Actor; clock: Clock; faults: Faults; wait: Wait;
  viewer(user?: string, options?: { channel?: string }): Actor;
  actor(role: string, user?: string, options?: { channel?: string }): Actor;
  game(pin?: string): Promise<Game>;
  listen(...names: string[]): Promise<Events>;
  advance(by: string): Promise<{ now: number; offset: number; frozen: boolean; expired: Expired[] }>;
  logs(filters?: Record<string, string | number | boolean>): Promise<JournalEntry[]>;
  seed(file: string, options?: { trusted?: boolean }): Promise<{ now: number; counts: Record<string, number> }>;
  reset(): Promise<object>;
  close(): void;
  drop(options?: { failed?: boolean }): Promise<void>;
}
export function namespace(name?: string): Namespace;
