"""`extcli connect node-test` and its relatives: what they print runs, or is valid."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
from pathlib import Path

import pytest
import yaml

from support.service import LiveServer

ROOT = Path(__file__).parent.parent.parent
NODE_TEST = """
import assert from 'node:assert/strict';
import { after, beforeEach, test } from 'node:test';
import { namespace } from './extcli.mjs';

const extcli = namespace();
beforeEach(() => extcli.reset());

test('votes count', async () => {
  await extcli.viewer('U1').vote('boss', 1);
  await extcli.viewer('U2').vote('boss', 1);
  assert.equal((await extcli.broadcaster.poll('boss')).count, 2);
});

test('reset deletes the votes of the test before', async () => {
  assert.equal((await extcli.viewer().poll('boss')).count, 0);
});

test('time moves', async () => {
  await extcli.viewer().vote('boss', 1);
  const moved = await extcli.advance('7d1h');
  assert.deepEqual(moved.expired.map((each) => [each.kind, each.id]), [['poll', 'boss']]);
  assert.equal((await extcli.viewer().poll('boss')).count, 0);
});

test('a text that is no duration is refused', async () => {
  await assert.rejects(extcli.advance('8 days'), /8 days is not a duration/);
  await assert.rejects(extcli.advance(8), /8 is not a duration/);
});

test('a condition is met', async () => {
  setTimeout(() => extcli.viewer().vote('boss', 1), 20);
  await extcli.wait('poll', 'boss', { count: 1 });
});

test('a condition that is not met says what was wanted and found', async () => {
  await assert.rejects(extcli.wait('poll', 'boss', { count: 1, timeout: 0 }), /not met[^]*at least 1[^]*"found"/);
});

test('answers that faults gave are found', async () => {
  await extcli.faults.add('POST /v1/e/vote', { status: 503, times: 2 });
  for (const status of [503, 503]) await assert.rejects(extcli.viewer().vote('boss', 1), { status });
  await extcli.viewer().vote('boss', 1);
  await extcli.wait('journal', 'POST /v1/e/vote', { count: '=3', timeout: 0 });
  await extcli.wait.journal('POST /v1/e/vote', { status: 503, count: '=2', timeout: 0 });
});

test('a refusal has its status and reason', async () => {
  const message = { event: 'done', target: 'broadcast', data: {} };
  await assert.rejects(extcli.viewer().call('POST', 'broadcast', message), { status: 403, message: /role/ });
  await extcli.backend.call('POST', 'broadcast', message);
});

test('own code acts as a viewer', async () => {
  const headers = await extcli.viewer('U5').headers();
  const answer = await fetch(`${extcli.url}/v1/e/user_info`, { headers });
  assert.equal((await answer.json()).user_id, 'U5');
});
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
def test_the_module_for_node_does_what_its_tests_say(extcli, live: LiveServer, tmp_path: Path):
    (tmp_path / "extcli.mjs").write_text(extcli("connect", "node-test").stdout)
    (tmp_path / "poll.test.mjs").write_text(NODE_TEST)

    before = live._http.get("/_ns").json()["namespaces"]

    result = run_node(tmp_path, "--test", EXTCLI_URL=live.url)

    assert (0, True) == (result.returncode, "# pass 9" in result.stdout), result.stdout
    assert before == live._http.get("/_ns").json()["namespaces"]


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
def test_each_worker_has_a_namespace_of_its_own(extcli, live, tmp_path: Path, variables: dict[str, str], name: str):
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


def test_the_module_is_short_and_needs_no_package(extcli):
    lines = extcli("connect", "node-test").stdout.splitlines()

    assert len(lines) <= 280
    assert ["node:child_process", "node:crypto", "node:fs"] == [
        name for line in lines for name in re.findall(r"^import .* from '(.*)'", line)
    ]


@needs_node
@pytest.mark.parametrize("client", ["playwright", "testcontainers"])
def test_a_module_for_a_package_is_valid(extcli, tmp_path: Path, client: str):
    (tmp_path / "module.mjs").write_text(extcli("connect", client, "--url", "http://127.0.0.1:1").stdout)

    assert 0 == run_node(tmp_path, "--check", "module.mjs").returncode


def test_the_workflow_is_the_first_job_of_the_example(extcli):
    printed = yaml.safe_load(extcli("connect", "github").stdout)
    example = yaml.safe_load((ROOT / "examples" / "github-actions.yml").read_text())

    (own,) = printed["jobs"].values()
    first = example["jobs"]["exec"]
    assert [each.get("uses") for each in own["steps"]] == [each.get("uses") for each in first["steps"]]
    assert "extcli exec --log-requests --on-failure extcli-logs -- npm test" in json.dumps(own)


def test_the_compose_file_waits_for_the_service_and_names_its_host(extcli):
    services = yaml.safe_load(extcli("connect", "compose").stdout)["services"]

    assert "http://extcli:8282" == services["tests"]["environment"]["EXTCLI_URL"]
    assert {"extcli": {"condition": "service_healthy"}} == services["tests"]["depends_on"]
    assert "extcli" == services["extcli"]["environment"]["EXTCLI_SERVE_CONTROL_HOST"]
