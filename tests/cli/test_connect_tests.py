"""`extcli connect node-test` and its relatives: what they print runs, or is valid."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
from pathlib import Path

import pytest
import yaml

from support.program import PROGRAM
from support.service import LiveServer

NODE_TEST = """
import assert from 'node:assert/strict';
import { after, beforeEach, test } from 'node:test';
import { namespace } from './extcli.mjs';

const extcli = namespace();
beforeEach(() => extcli.reset());

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

test('own code acts as a viewer', async () => {
  const headers = await extcli.viewer('U5').headers();
  const answer = await fetch(`${extcli.url}/v1/e/user_info`, { headers });
  assert.equal((await answer.json()).user_id, 'U5');
});
"""

TESTCONTAINERS = """
import { spawn } from 'node:child_process';
import { once } from 'node:events';

export const Wait = { forHealthCheck: () => {} };
export class GenericContainer {
  withEnvironment(variables) { this.variables = variables; return this; }
  withExposedPorts() { return this; }
  withWaitStrategy() { return this; }
  async start() {
    const options = { env: { ...process.env, ...this.variables }, stdio: ['ignore', 'pipe', 'inherit'] };
    const service = spawn('PROGRAM', ['serve', '--host', '0.0.0.0', '--port', '0', '--data', 'sqlite://'], options);
    const [line] = await once(service.stdout, 'data');
    const port = /:([0-9]+)/.exec(line)[1];
    return { getHost: () => '0.0.0.0', getMappedPort: () => port, stop: () => (service.kill(), once(service, 'exit')) };
  }
}
"""
"""Stands for the package: it starts the service on this machine, with the variables of the container."""
IN_CONTAINER = """
import { container } from './service.mjs';
const { namespace } = await import('./extcli.mjs');
try {
  const extcli = namespace();
  await extcli.reset();
  await extcli.drop();
  console.log('done');
} finally {
  await container.stop();
}
"""

needs_node = pytest.mark.skipif(not shutil.which("node"), reason="needs Node.js")


def run_node(folder: Path, *args: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("EXTCLI_")}
    command = ["node", *args]
    return subprocess.run(
        command, cwd=folder, env=kept | environment, capture_output=True, text=True, timeout=60, check=False
    )


@needs_node
@pytest.mark.slow
def test_the_module_for_node_passes_its_own_tests(extcli, live: LiveServer, tmp_path: Path):
    (tmp_path / "extcli.mjs").write_text(extcli("connect", "node-test").stdout)
    (tmp_path / "poll.test.mjs").write_text(NODE_TEST)

    before = live._http.get("/_ns").json()["namespaces"]

    result = run_node(tmp_path, "--test", EXTCLI_URL=live.url)

    assert (0, True) == (result.returncode, "# pass 4" in result.stdout), result.stdout
    assert before == live._http.get("/_ns").json()["namespaces"]


@needs_node
@pytest.mark.parametrize("is_red", [True, False])
def test_a_namespace_of_failed_tests_stays_for_the_report_of_exec(
    extcli, live: LiveServer, tmp_path: Path, is_red: bool
):
    (tmp_path / "extcli.mjs").write_text(extcli("connect", "node-test").stdout)
    test = (
        "import { test } from 'node:test'; import { namespace } from './extcli.mjs'; const extcli = namespace('job');"
    )
    failing = "throw new Error('red')" if is_red else ""
    (tmp_path / "a.test.mjs").write_text(f"{test} test('it', async () => {{ await extcli.reset(); {failing} }});")

    run_node(tmp_path, "--test", EXTCLI_URL=live.url, EXTCLI_ON_FAILURE="/report")
    kept = live._http.get("/_ns").json()["namespaces"]
    live._http.delete("/_ns/job").raise_for_status()

    assert is_red == ("job" in kept)


@needs_node
def test_at_exit_the_module_drops_its_namespace_of_a_service_with_a_token(extcli, guarded, tmp_path: Path):
    (tmp_path / "extcli.mjs").write_text(extcli("connect", "node-test").stdout)
    script = "import('./extcli.mjs').then(({ namespace }) => namespace('mine').reset())"

    result = run_node(tmp_path, "-e", script, **guarded)

    assert (0, "") == (result.returncode, result.stderr)
    assert [] == extcli("ns", "list", "-o", "json", env=guarded).json["namespaces"]


@needs_node
def test_the_module_for_testcontainers_gives_the_tests_the_control_token(extcli, tmp_path: Path):
    package = tmp_path / "node_modules" / "testcontainers"
    package.mkdir(parents=True)
    (package / "package.json").write_text('{"main": "index.mjs", "type": "module"}')
    (package / "index.mjs").write_text(TESTCONTAINERS.replace("PROGRAM", str(PROGRAM)))
    (tmp_path / "service.mjs").write_text(extcli("connect", "testcontainers").stdout)
    (tmp_path / "extcli.mjs").write_text(extcli("connect", "node-test").stdout)
    (tmp_path / "run.mjs").write_text(IN_CONTAINER)

    result = run_node(tmp_path, "run.mjs")

    assert (0, "done\n") == (result.returncode, result.stdout), result.stderr


@needs_node
def test_the_module_uses_the_address_that_was_printed(extcli, live: LiveServer, tmp_path: Path):
    printed = extcli("connect", "node-test", "--url", f"{live.url}/_ns/blue", "--client-id", "o'ther").stdout
    (tmp_path / "extcli.mjs").write_text(printed)

    script = "import('./extcli.mjs').then(({ namespace }) => console.log(namespace('mine').url))"
    assert f"{live.url}/_ns/mine\n" == run_node(tmp_path, "-e", script).stdout


@needs_node
@pytest.mark.parametrize(
    ("variables", "name"),
    [({"VITEST_POOL_ID": "3"}, "3"), ({"JEST_WORKER_ID": "2"}, "2"), ({"TEST_PARALLEL_INDEX": "1"}, "1"), ({}, "0")],
    ids=["Vitest", "Jest", "Playwright", "another"],
)
def test_each_worker_has_its_own_namespace(extcli, live, tmp_path: Path, variables: dict[str, str], name: str):
    (tmp_path / "extcli.mjs").write_text(extcli("connect", "node-test").stdout)

    script = "import('./extcli.mjs').then(({ namespace }) => console.log(process.pid, namespace().url))"
    pid, url = run_node(tmp_path, "-e", script, EXTCLI_URL=live.url, **variables).stdout.split()

    assert f"{live.url}/_ns/{pid}-{name}" == url


@needs_node
def test_without_a_service_the_module_says_how_to_run_the_tests(extcli, tmp_path: Path):
    (tmp_path / "extcli.mjs").write_text(extcli("connect", "node-test").stdout)
    script = "import('./extcli.mjs').then(({ namespace }) => namespace().viewer().vote('boss', 1))"

    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    result = run_node(tmp_path, "-e", script, EXTCLI_URL=url)

    assert f"{url} does not answer (ECONNREFUSED): run the tests with extcli exec" in result.stderr


@needs_node
@pytest.mark.parametrize("client", ["playwright", "testcontainers"])
def test_a_module_for_a_package_is_valid(extcli, tmp_path: Path, client: str):
    (tmp_path / "module.mjs").write_text(extcli("connect", client, "--url", "http://127.0.0.1:1").stdout)

    assert 0 == run_node(tmp_path, "--check", "module.mjs").returncode


def test_the_compose_file_and_the_workflow_are_valid(extcli):
    services = yaml.safe_load(extcli("connect", "compose").stdout)["services"]
    (job,) = yaml.safe_load(extcli("connect", "github").stdout)["jobs"].values()

    assert "http://extcli:8282" == services["tests"]["environment"]["EXTCLI_URL"]
    assert "extcli exec" in json.dumps(job)
