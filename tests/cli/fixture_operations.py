"""The operations of the fixtures for tests of an extension: one table for pytest's fixture and the module for Node.

Names are as in Python; the module has them in camel case. `timeout` is in seconds here, and in ms there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Row(NamedTuple):
    """One call of an operation, on what `target` names: `viewer.vote` is `extcli.viewer("U1").vote`."""

    operation: str
    args: tuple[object, ...] = ()
    options: dict[str, object] | None = None


SEED = 'extcli = 1\n[[polls]]\nid = "seeded"\nchannel = "1001"\nprompt = "Which?"\n'
NOON = "2026-12-24T12:00:00Z"

ROWS = (
    Row("clock.freeze", (NOON,)),
    Row("clock.now"),
    Row("clock.set", ("2026-12-24T18:00:00Z",)),
    # polls
    Row("wait.mark"),
    Row("viewer.headers"),
    Row("viewer.request", ("GET", "user_info")),
    Row("backend.define_poll", ("boss", {"prompt": "Which?", "options": ["Hydra", "Golem"]})),
    Row("viewer.vote", ("boss", 1)),
    Row("viewer.vote", ("sum", 2), {"count": 3}),
    Row("viewer.poll", ("boss",)),
    Row("wait.poll", ("boss",), {"count": "=1", "values": {"1": 1}, "timeout": 0}),
    Row("backend.clear_poll", ("boss",)),
    # rankings, buffers
    Row("viewer.submit", ("words", "hello")),
    Row("broadcaster.ranking", ("words",)),
    Row("wait.ranking", ("words",), {"key": "hello", "score": 1, "timeout": 0}),
    Row("broadcaster.clear_ranking", ("words",)),
    Row("viewer.add", ("moves", {"x": 1})),
    Row("broadcaster.buffer", ("moves",), {"start": 0}),
    Row("wait.buffer", ("moves",), {"count": 1, "latest": {"x": 1}, "timeout": 0}),
    # stores
    Row("backend.set_store", ("channel_state", {"round": 1})),
    Row("backend.patch_store", ("channel_state", [{"op": "add", "path": "/boss", "value": "Hydra"}])),
    Row("viewer.store", ("channel_state",)),
    Row("wait.store", ("channel_state", "/round"), {"equals": 1, "timeout": 0}),
    Row("backend.set_json_store", ("levels", {"top": [1, 2]})),
    Row("viewer.json_store", ("levels",)),
    Row("wait.json_store", ("levels", "/top/1"), {"equals": 2, "timeout": 0}),
    # codes, broadcasts, PINs, sockets
    Row("backend.define_codes", ({"codes": [["A-1", "A-2"]], "names": ["skins"]},)),
    Row("viewer.eligibility"),
    Row("viewer.redeem", (0,)),
    Row("broadcaster.pin"),
    Row("wait.pin", ("issued",), {"count": 1, "timeout": 0}),
    Row("game.request", ("get", "state", {"state_id": "channel"})),
    Row("game.subscribe", ("state", "channel")),
    Row("backend.set_store", ("channel_state", {"round": 2})),
    Row("game.update", (), {"timeout": 5}),
    Row("events.received"),
    Row("backend.broadcast", ("round", {"number": 2})),
    Row("events.next", (), {"timeout": 5}),
    Row("wait.broadcast", ("round",), {"count": "=1", "timeout": 0}),
    Row("wait.sockets", ("connected",), {"count": "=2", "timeout": 5}),
    Row("game.close"),
    # faults
    Row("faults.add", ("POST /v1/e/rank",), {"status": 503, "retry_after": 1, "times": 2, "lasts": "10s"}),
    Row("faults.add", ("GET /v1/e/vote",), {"delay": "1ms..2ms", "id": "slow", "seed": 7}),
    Row("faults.add", (None,), {"event": "round", "lose": True}),
    Row("viewer.submit", ("words", "again")),
    Row("viewer.submit", ("words", "again")),
    Row("viewer.submit", ("words", "again")),
    Row("wait.journal", ("POST /v1/e/rank",), {"count": "=4", "timeout": 0}),
    Row("faults.list"),
    Row("faults.remove", ("slow",)),
    Row("faults.clear"),
    Row("faults.list"),
    # the clock, and the namespace itself
    Row("clock.advance", ("8d",)),
    Row("viewer.poll", ("boss",)),
    Row("extcli.logs", (), {"path": "/v1/e/rank"}),
    Row("extcli.seed", ("seed.toml",)),
    Row("viewer.poll", ("seeded",)),
    Row("clock.unfreeze"),
    Row("extcli.reset"),
    Row("viewer.poll", ("seeded",)),
    Row("extcli.close"),
    Row("extcli.drop"),
)

MASKS: dict[str, Callable[[Any], object]] = {
    "wait.mark": lambda found: type(found).__name__,
    "viewer.headers": lambda found: sorted(found),
    "broadcaster.pin": len,
    "extcli.logs": lambda found: [[each["endpoint"], each["status"], each["reason"]] for each in found],
    "extcli.reset": lambda found: None,
    "extcli.drop": lambda found: None,
    "clock.advance": lambda found: sorted([each["kind"], each["at"]] for each in found),
    "clock.unfreeze": lambda found: None,
    "game.update": lambda found: found["data"],
    "viewer.redeem": sorted,
}
"""What to compare of results that differ from run to run, or from language to language."""

RUNNER = """
import { readFileSync } from 'node:fs';
import { namespace } from './extcli.mjs';

const camel = (name) => name.replace(/_(.)/g, (_, letter) => letter.toUpperCase());
const extcli = namespace();
const made = {};
const targets = {
  extcli: () => extcli, viewer: () => extcli.viewer('U1'), broadcaster: () => extcli.broadcaster,
  backend: () => extcli.backend, clock: () => extcli.clock, faults: () => extcli.faults, wait: () => extcli.wait,
  game: async () => (made.game ??= await extcli.game()),
  events: async () => (made.events ??= await extcli.listen('round')),
};
const results = [];
for (const [operation, args, given] of JSON.parse(readFileSync('rows.json'))) {
  const [target, name] = operation.split('.');
  const inMs = (key, value) => (key === 'timeout' ? value * 1000 : value);
  const options = Object.fromEntries(Object.entries(given ?? {}).map(([key, value]) => [camel(key), inMs(key, value)]));
  const words = Object.keys(options).length ? [...args, options] : args;
  try {
    results.push((await (await targets[target]())[camel(name)](...words)) ?? null);
  } catch (error) {
    results.push({ refused: error.status ?? String(error) });
  }
}
const members = {};
for (const name of ['extcli', 'viewer', 'clock', 'faults', 'wait']) members[name] = Object.keys(targets[name]());
for (const name of ['game', 'events']) members[name] = Object.keys(made[name]);
console.log(JSON.stringify({ results, members }));
process.exit();
"""
"""Runs the rows of `rows.json` in Node; prints their results, and the members of each target."""

TYPED_TARGETS = """
import { namespace } from './extcli.mjs';

type Known<T> = 0 extends 1 & T ? never : T; // `any` is not known
const extcli = namespace();
const targets = {
  extcli, viewer: extcli.viewer('U1'), broadcaster: extcli.broadcaster, backend: extcli.backend, clock: extcli.clock,
  faults: extcli.faults, wait: extcli.wait, game: await extcli.game(), events: await extcli.listen('round'),
};
"""
"""The targets of rows in TypeScript; more lines use them."""

TYPED_TEST = """
import { closeRound, winnerOf, type Round } from '../backend.mjs';
import { sign } from '../sign.mjs';
import { namespace, type Namespace, type Poll } from './extcli.mjs';

const extcli: Namespace = namespace();
const round: Round = { question: 'Which boss is next?', options: ['Dragon', 'Golem'], open: true };
const poll: Poll = await extcli.viewer('U1').vote('boss', 1);
const winner: string | null | undefined = (await closeRound()).winner ?? winnerOf(round.options, poll.specific);
const token: string = await sign('c2VjcmV0', 'backend', extcli.channel);
// @ts-expect-error a value is a number
await extcli.viewer().vote(winner ?? token, '1');
"""
"""A test of a new project, in strict TypeScript."""
