"""Which service and tokens the tests of an extension use, what is left of them, and what the plugin imports."""

from __future__ import annotations

import ast
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from emulator.core.extensions import Extension
from emulator.core.settings import Settings
from extcli.testing.server import find_server, run_server
from support.exec_process import refuses
from support.extension_files import write_extensions
from support.plugin_runs import run_pytest
from support.process import wait_until
from support.program import SECRET_BASE64
from support.service import CLIENT_ID, SECRET, LiveServer, live_server
from support.verdicts import rules

pytestmark = pytest.mark.slow


def namespaces_of_tests(live: LiveServer) -> list[str]:
    """Return the namespaces that the plugin has made: a service has others, too."""
    return [name for name in live._http.get("/_ns").json()["namespaces"] if name.startswith("test_")]


@pytest.fixture
def known() -> Iterator[LiveServer]:
    """A sandbox that knows the secret of an extension."""
    with live_server(Settings(extensions={CLIENT_ID: Extension(CLIENT_ID, (SECRET,))})) as live:
        yield live


TEST = """
    import httpx, jwt, os

    def test_the_tokens_follow_the_clock(extcli, extcli_server):
        assert extcli_server.process is None
        held = extcli.viewer("U1")
        extcli.clock.advance("8d")
        assert 1 == held.vote("boss", 1)["stats"]["count"]
        assert 200 == httpx.get(f"{extcli.url}/v1/e/user_info", headers=held.headers()).status_code
        events = extcli.listen("round")
        extcli.backend.broadcast("round", 1)
        assert 1 == events.next().data
        extcli.wait.journal("POST /v1/e/vote", count="=1", timeout=0)
        header = jwt.get_unverified_header(held.headers()["Authorization"].split()[1])
        assert {"alg": "HS256", "typ": "JWT"} == header

    def test_fails(extcli):
        assert not extcli.viewer().vote("boss", 1), extcli.url
"""


def test_a_running_service_is_used_and_left_empty_and_production_would_take_its_tokens(known, tmp_path: Path):
    run = run_pytest(tmp_path, "--extcli-url", known.url, files={"test": TEST}, EXTCLI_CLIENT_ID=CLIENT_ID)

    assert "1 failed, 1 passed" in run.output, run.output
    assert f"{known.url}/_ns/test_fails-" in run.output
    assert f"see the log of the service at {known.url}, which this run did not start" in run.output
    assert ([], {}) == (namespaces_of_tests(known), rules(known, "service"))


def test_with_a_secret_tokens_are_signed_and_failed_namespaces_stay_for_the_report_of_exec(known, tmp_path: Path):
    (tmp_path / "secret").write_text(SECRET_BASE64)
    (tmp_path / "secret").chmod(0o600)
    variables = {"EXTCLI_URL": f"{known.url}/_ns/job", "EXTCLI_CLIENT_ID": CLIENT_ID, "EXTCLI_ON_FAILURE": "/report"}

    run = run_pytest(tmp_path, files={"test": TEST}, **variables, EXTCLI_SECRET_FILE=str(tmp_path / "secret"))

    assert "1 failed, 1 passed" in run.output, run.output
    (kept,) = namespaces_of_tests(known)
    assert kept.startswith("test_fails-")
    assert f"after the run, its data and journal are in /report/namespaces/{kept}" in run.output
    assert {} == rules(known, "service")


def test_a_service_that_cannot_be_used_is_one_readable_error(running_production, live, tmp_path: Path, monkeypatch):
    url = running_production.url
    with pytest.raises(pytest.fail.Exception, match=f"{url} .--extcli-url. has no namespaces for tests") as no_sandbox:
        find_server(url, "--extcli-url")
    with (
        pytest.raises(
            pytest.fail.Exception, match="extcli serve did not start:\nextcli serve: No such option: --max-bdy"
        ),
        run_server(["--max-bdy", "1"], tmp_path, may_stay=False),
    ):
        pass
    monkeypatch.setenv("EXTCLI_SECRET_FILE", str(tmp_path / "absent"))
    with pytest.raises(pytest.fail.Exception, match="cannot read"):
        find_server(live.url, "EXTCLI_URL")

    assert not no_sandbox.value.pytrace


def test_a_secret_in_the_environment_of_the_run_comes_first(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("EXTCLI_SECRET_FILE", "of-the-user")

    with run_server([], tmp_path, may_stay=False) as server:
        assert server.secret_file is None


def test_the_service_has_the_options_of_the_fixture_and_stops_if_pytest_is_killed(tmp_path: Path):
    conftest = f"""
        import pytest
        @pytest.fixture(scope="session")
        def extcli_serve_args(): return ["--extensions", {write_extensions(tmp_path)!r}]
    """
    test = """
        import os, signal
        def test_it(extcli, extcli_server):
            assert "EXTCLI_SECRET_FILE" not in extcli.env
            with open("url", "w") as file:
                file.write(extcli_server.url)
            os.kill(os.getpid(), signal.SIGKILL)
    """
    run = run_pytest(tmp_path, files={"conftest": conftest, "test": test})
    assert -signal.SIGKILL == run.exit_code, run.output
    url = urlsplit((tmp_path / "url").read_text())

    wait_until(lambda: refuses(url.port or 0))


HEAVY = {"httpx", "httpcore", "litestar", "rich", "websockets", "typer", "emulator", "msgspec", "uvicorn"}
"""Packages that fixtures or the service need."""


def test_a_run_without_fixtures_imports_no_client_and_no_service(tmp_path: Path):
    test = """
        import sys
        def test_no_fixture_is_used():
            print(sorted(sys.modules))
    """
    run = run_pytest(tmp_path, "-s", files={"test": test})

    assert 0 == run.exit_code, run.output
    names = set(ast.literal_eval(re.findall(r"^\[.*\]", run.output, re.MULTILINE)[0]))
    assert set() == {name.partition(".")[0] for name in names} & HEAVY
    assert {"extcli", "extcli.pytest_plugin"} == {name for name in names if name.partition(".")[0] == "extcli"}


# In parallel


PARALLEL = """
    import pytest

    @pytest.mark.parametrize("number", range(60))
    def test_sees_only_its_own_vote(extcli, number):
        viewer = extcli.viewer("U%d" % number)
        assert [1, 1] == [viewer.vote("boss", number % 3)["count"] for _ in range(2)]
"""


@pytest.mark.long
@pytest.mark.parametrize("shared", [True, False], ids=["one service", "a service for each worker"])
def test_parallel_tests_see_only_their_own_data(live: LiveServer, tmp_path: Path, shared: bool):
    run = run_pytest(tmp_path, "-n", "3", *(["--extcli-url", live.url] if shared else []), files={"test": PARALLEL})

    assert (0, True) == (run.exit_code, "60 passed" in run.output), run.output
    assert [] == namespaces_of_tests(live)
