"""`extcli connect node-test` and its relatives: the module for Node does what the fixture for pytest does, and the
other files that it prints are valid.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.fixture_operations import MASKS, ROWS, RUNNER, SEED, TYPED_TARGETS, TYPED_TEST, Row
from extcli.errors import ErrorResponse
from extcli.testing.actor import Blocking
from extcli.testing.server import Namespace, Server
from support.program import PROGRAM, SECRET_BASE64
from support.service import LiveServer
from support.typescript import check_types

pytestmark = pytest.mark.slow
needs_node = pytest.mark.skipif(not shutil.which("node"), reason="needs Node.js")


def run_node(folder: Path, *args: str, **variables: str) -> str:
    """Run Node in a folder, and return what it prints."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("EXTCLI_")}
    kept["PATH"] = f"{PROGRAM.parent}{os.pathsep}{kept['PATH']}"
    run = subprocess.run(
        ["node", *args], cwd=folder, env=kept | variables, capture_output=True, text=True, timeout=90, check=False
    )
    return run.stdout + run.stderr


@pytest.fixture
def module(extcli, tmp_path: Path) -> Path:
    """A folder with the module."""
    (tmp_path / "extcli.mjs").write_text(extcli("connect", "node-test").stdout)
    return tmp_path


# The operations


def in_python(live: LiveServer, folder: Path) -> list[object]:
    """Run the rows against a namespace of the fixture, and return the results."""
    extcli: Namespace[Blocking] = Namespace(Server(live.url), "of-python")
    made: dict[str, Any] = {"extcli": extcli, "viewer": extcli.viewer("U1")}
    opened = {"game": extcli.game, "events": lambda: extcli.listen("round")}

    def result(row: Row) -> object:
        target, _, name = row.operation.partition(".")
        if target not in made:
            made[target] = opened[target]() if target in opened else getattr(extcli, target)
        args = [str(folder / each) if each == "seed.toml" else each for each in row.args]
        try:
            found = getattr(made[target], name)(*args, **(row.options or {}))
        except ErrorResponse as error:
            return {"refused": error.status}
        if isinstance(found, list):
            return [each._asdict() if isinstance(each, tuple) else each for each in found]
        return found._asdict() if isinstance(found, tuple) else found  # type: ignore[attr-defined]

    return json.loads(json.dumps([result(row) for row in ROWS]))


def in_node(folder: Path, **variables: str) -> dict[str, Any]:
    """Run the rows with the module, and return the results, and the members of its objects."""
    (folder / "run.mjs").write_text(RUNNER)
    (folder / "rows.json").write_text(json.dumps(ROWS))
    return dict(json.loads(run_node(folder, "run.mjs", **variables)))


@pytest.fixture
def found(live: LiveServer, module: Path) -> dict[str, Any]:
    """What the rows return in Node, with a secret that signs the tokens."""
    (module / "seed.toml").write_text(SEED)
    (module / "secret").write_text(SECRET_BASE64)
    return in_node(module, EXTCLI_URL=live.url, EXTCLI_SECRET_FILE=str(module / "secret"))


def camel(name: str) -> str:
    return re.sub(r"_(.)", lambda found: found[1].upper(), name)


@needs_node
def test_both_languages_have_the_same_operations_and_results(found: dict[str, Any], live: LiveServer, module: Path):
    for row, own, other in zip(ROWS, in_python(live, module), found["results"], strict=True):
        mask = MASKS.get(row.operation, lambda found: found)
        is_refused = [isinstance(each, dict) and "refused" in each for each in (own, other)]
        assert (own if is_refused[0] else mask(own)) == (other if is_refused[1] else mask(other)), row


def typed_call(row: Row, number: int, result: Any) -> str:
    """Return lines that compile if the types accept the call of a row, and describe what it returned."""
    target, name = row.operation.split(".")
    options = {camel(each): value for each, value in (row.options or {}).items()}
    words = [*row.args, options] if options else row.args
    arguments = ", ".join("undefined" if each is None else json.dumps(each) for each in words)
    call = f"const call{number} = () => targets.{target}.{camel(name)}({arguments});\n"
    if isinstance(result, dict) and "refused" in result:
        return call
    found = "undefined" if result is None else json.dumps(result)
    kind = ": never[]" if result == [] else ""
    return (
        f"{call}const found{number}{kind} = {found};\n"
        f"const row{number}: Known<Awaited<ReturnType<typeof call{number}>>> = found{number};\n"
    )


@pytest.mark.long
@needs_node
def test_the_types_describe_operations_results_and_the_backend_of_a_project(extcli, found, module: Path, monkeypatch):
    monkeypatch.chdir(module)
    extcli("new", "boss", exits=0)
    calls = [typed_call(row, number, found["results"][number]) for number, row in enumerate(ROWS)]
    members = [
        f"const of_{target}: Record<keyof typeof targets.{target}, true> = {{ {': true, '.join(names)}: true }};\n"
        for target, names in found["members"].items()
    ]
    tests = module / "boss" / "tests"
    (tests / "all.mts").write_text("".join([TYPED_TARGETS, *calls, *members]))
    (tests / "typed.test.mts").write_text(TYPED_TEST)

    assert "" == check_types(tests, "all.mts", "typed.test.mts")


# What holds for Node alone


OWN_TESTS = """
import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { namespace } from './extcli.mjs';

const extcli = namespace();
beforeEach(() => extcli.reset());
const again = async (variables, file = 'extcli') => { // the module as another process would load it
  const before = { ...process.env };
  Object.assign(process.env, variables);
  const loaded = await import(`./${file}.mjs?${JSON.stringify(variables)}`);
  for (const name of Object.keys(variables)) delete process.env[name];
  Object.assign(process.env, before);
  return loaded.namespace;
};

test('the clock is set to a point in time or a duration from now', async () => {
  const noon = Date.parse('2026-12-24T12:00:00Z');
  await extcli.clock.freeze(noon);
  for (const at of [noon, new Date(noon), '2026-12-24T12:00:00Z', `${noon / 1000}`, `${noon}`, '0s']) {
    await extcli.clock.set(at);
    assert.equal(await extcli.clock.now(), noon);
  }
  await extcli.clock.set('2026-12-24 12:00');
  assert.equal(await extcli.clock.now(), new Date(2026, 11, 24, 12).getTime());
  await extcli.clock.set('2026-12-24');
  await extcli.clock.set('+1d12h');
  assert.equal(await extcli.clock.now(), new Date(2026, 11, 25, 12).getTime());
});

test('a text that is no point in time or duration is refused', async () => {
  for (const at of ['garbage', 'round 1', '', null, NaN, {}, '2026-13-40', new Date(NaN)]) {
    await assert.rejects(extcli.clock.set(at), /is not a point in time/);
    await assert.rejects(extcli.clock.freeze(at), /is not a point in time/);
  }
  for (const text of ['8 days', 8, '']) await assert.rejects(extcli.advance(text), /is not a duration/);
});

test('a condition that is not met says what was wanted and found', async () => {
  await assert.rejects(extcli.wait('poll', 'boss', { count: 1, timeout: 0 }), /not met[^]*at least 1[^]*"found"/);
});

test('own code acts as a viewer, with a token of the sandbox', async () => {
  const headers = await extcli.viewer('U5').headers();
  const answer = await fetch(`${extcli.url}/v1/e/user_info`, { headers });
  assert.equal((await answer.json()).user_id, 'U5');
});

test('each worker has its own namespace', async () => {
  assert.equal(extcli.url, `${process.env.EXTCLI_URL}/_ns/${process.pid}-0`);
  const names = { VITEST_POOL_ID: '3', JEST_WORKER_ID: '2', TEST_PARALLEL_INDEX: '1' };
  for (const [name, value] of Object.entries(names)) {
    assert.ok((await again({ [name]: value }))().url.endsWith(`/_ns/${process.pid}-${value}`));
  }
});

test('without the variable, the module uses the address that was printed', async () => {
  const { EXTCLI_URL } = process.env;
  delete process.env.EXTCLI_URL;
  const printed = await again({}, 'printed');
  process.env.EXTCLI_URL = EXTCLI_URL;
  assert.equal(printed('mine').url, 'http://127.0.0.1:1/_ns/mine');
});

test('without a service, the module says how to run the tests', async () => {
  const lost = (await again({ EXTCLI_URL: 'http://127.0.0.1:1' }))('lost');
  await assert.rejects(lost.viewer().vote('boss', 1), /127.0.0.1:1 does not answer .*: run the tests with extcli exec/);
});
"""


@needs_node
def test_the_module_passes_its_own_tests_and_drops_its_namespaces(extcli, guarded: dict[str, str], module: Path):
    there = ("--url", "http://127.0.0.1:1/_ns/blue", "--client-id", "o'ther")
    (module / "printed.mjs").write_text(extcli("connect", "node-test", *there).stdout)
    (module / "own.test.mjs").write_text(OWN_TESTS)

    printed = run_node(module, "--test", **guarded, EXTCLI_ON_FAILURE="/report")

    assert "# pass 7" in printed, printed
    assert [] == extcli("ns", "list", "-o", "json", env=guarded).json["namespaces"]


@needs_node
def test_a_namespace_of_failed_tests_stays_for_the_report_of_exec(live: LiveServer, module: Path):
    (module / "red.test.mjs").write_text("""
        import { test } from 'node:test';
        import { namespace } from './extcli.mjs';
        test('it', async () => { await namespace('job').reset(); throw new Error('red'); });
    """)

    printed = run_node(module, "--test", EXTCLI_URL=live.url, EXTCLI_ON_FAILURE="/report")

    assert "# fail 1" in printed
    assert "job" in live._http.get("/_ns").json()["namespaces"]
    live._http.delete("/_ns/job").raise_for_status()


TESTCONTAINERS = """
export const Wait = { forHealthCheck: () => {} };
export class GenericContainer {
  withEnvironment(variables) { console.log(JSON.stringify(variables)); return this; }
  withExposedPorts() { return this; }
  withWaitStrategy() { return this; }
  async start() { return { getHost: () => '0.0.0.0', getMappedPort: () => process.env.PORT }; }
}
"""
"""Stands for the package: its container is a service of these tests."""
IN_CONTAINER = """
import { container } from './service.mjs';
const extcli = (await import('./extcli.mjs')).namespace();
await extcli.reset();
await extcli.drop();
console.log('done');
"""


@needs_node
def test_the_module_for_testcontainers_gives_service_and_tests_the_control_token(extcli, guarded, module: Path):
    package = module / "node_modules" / "testcontainers"
    package.mkdir(parents=True)
    (package / "package.json").write_text('{"main": "index.mjs", "type": "module"}')
    (package / "index.mjs").write_text(TESTCONTAINERS)
    (module / "service.mjs").write_text(extcli("connect", "testcontainers").stdout)
    (module / "run.mjs").write_text(IN_CONTAINER)
    token, port = guarded["EXTCLI_CONTROL_TOKEN"], guarded["EXTCLI_URL"].rpartition(":")[2]

    printed = run_node(module, "run.mjs", EXTCLI_CONTROL_TOKEN=token, PORT=port)

    assert f'{{"EXTCLI_SERVE_CONTROL_TOKEN":"{token}"}}\ndone\n' == printed


@needs_node
def test_other_files_of_connect_are_valid(extcli, module: Path):
    (module / "playwright.mjs").write_text(extcli("connect", "playwright", "--url", "http://127.0.0.1:1").stdout)
    services = yaml.safe_load(extcli("connect", "compose").stdout)["services"]
    (job,) = yaml.safe_load(extcli("connect", "github").stdout)["jobs"].values()

    assert "" == run_node(module, "--check", "playwright.mjs")
    assert "http://extcli:8282" == services["tests"]["environment"]["EXTCLI_URL"]
    assert "extcli exec" in json.dumps(job)
