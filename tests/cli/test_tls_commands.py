"""Commands, completion, `exec` and the pytest plugin trust `extcli serve --tls` without an option."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import preloaded
from support.authority import STATE, authority_in
from support.browser import SDK, run_script
from support.exec_process import run_exec
from support.plugin_runs import run_pytest
from support.process import ServerProcess, server_process

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("state")


@pytest.fixture(scope="module")
def secure(state: Path) -> Iterator[ServerProcess]:
    """A service with a certificate of its own."""
    with server_process("--tls", **{STATE: str(state)}) as served:
        yield served


@pytest.fixture
def trusting(secure: ServerProcess, state: Path, tmp_path: Path) -> dict[str, str]:
    """The environment of a user of this authority, whose commands go to the service."""
    others = {name: value for name, value in os.environ.items() if not name.startswith("EXTCLI_")}
    return {**others, STATE: str(state), "EXTCLI_CONFIG": str(tmp_path / "config.toml"), "EXTCLI_URL": secure.url}


def printed(environment: dict[str, str], *args: str) -> str:
    """Run a command, and return what it prints."""
    with preloaded.start(args, environment) as process:
        output, errors = process.communicate(30)
    assert 0 == process.returncode, errors
    return output


def test_commands_and_completion_reach_the_service(trusting: dict[str, str]):
    for command in (
        "vote cast lunch --value 3",
        'socket send get state --data {"state_id":"channel"}',
        "simulate crowd --viewers 20 --mix 0:1,1:1 --yes",
        "simulate socket --connections 2 --broadcasts 2 --yes",
        "ns new purple",
    ):
        printed(trusting, *command.split())
    variables = {"_EXTCLI_COMPLETE": "complete_bash", "_EXTCLI_LINE": "extcli ns rm pur"}
    assert "purple\n" == printed(trusting | variables)


def test_without_the_authority_the_certificate_is_refused_unless_the_variable_names_it(
    trusting: dict[str, str], state: Path, tmp_path: Path
):
    elsewhere = {**trusting, STATE: str(tmp_path)}
    with preloaded.start(["vote", "get", "lunch"], elsewhere) as process:
        _, errors = process.communicate(30)

    assert "certificate verify failed" in errors
    assert "set SSL_CERT_FILE to the CA's file" in errors
    printed({**elsewhere, "SSL_CERT_FILE": str(authority_in(state))}, "vote", "get", "lunch")


@pytest.mark.long
def test_the_fixtures_of_the_plugin_use_the_service(secure: ServerProcess, state: Path, tmp_path: Path):
    test = """
        def test_a_game_hears_a_vote(extcli):
            game = extcli.game()
            game.subscribe("poll", "boss")
            extcli.viewer("U1").vote("boss", 1)
            assert extcli.url.startswith("https://")
    """
    run = run_pytest(tmp_path, "--extcli-url", secure.url, files={"test_tls.py": test}, **{STATE: str(state)})

    assert "1 passed" in run.output


def test_exec_gives_a_program_in_node_the_https_address_and_adds_the_trust(tmp_path: Path):
    if not shutil.which("node") or not (SDK / "node_modules" / "ws").is_dir():
        pytest.skip("needs Node.js and the packages that `make test` installs")
    (theirs := tmp_path / "theirs.pem").write_text("theirs\n")
    variables = {STATE: str(tmp_path), "NODE_EXTRA_CA_CERTS": str(theirs)}
    script = f'node {SDK / "tls_client.js"}; echo; cat "$NODE_EXTRA_CA_CERTS"'
    code, output, log = run_exec("--tls", "--quiet", "--", "sh", "-c", script, env=variables)
    assert 0 == code, log
    first, _, trusted = output.partition("\n")
    found = json.loads(first)

    assert (200, "my-extension") == (found["ready"], found["id"])
    assert authority_in(tmp_path).read_text() + "theirs\n" == trusted
    assert found["url"].startswith("https://127.0.0.1:")
    assert found["socket"].startswith("wss://127.0.0.1:")


def test_a_node_backend_is_redirected_over_https(
    secure: ServerProcess, trusting: dict[str, str], state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    preload = tmp_path / "emulator.cjs"
    preload.write_text(printed(trusting, "connect", "node"))
    monkeypatch.setenv("NODE_EXTRA_CA_CERTS", str(authority_in(state)))

    result = run_script("node_backend.js", secure.url, preload=preload)

    assert (2, {"round": 4}, {"text": "hi"}) == (result["vote"], result["state"], result["heard"])
