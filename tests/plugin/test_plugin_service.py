"""Which service the tests of an extension use, and what is left of it afterwards."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from support.exec_process import refuses
from support.plugin_runs import run_pytest
from support.process import wait_until
from support.service import LiveServer, RunningService

pytestmark = pytest.mark.slow


def namespaces_of_tests(live: LiveServer) -> list[str]:
    """Return the namespaces that the plugin has made: a service has others, too."""
    return [name for name in live._http.get("/_ns").json()["namespaces"] if name.startswith("test_")]


def test_a_running_service_is_used_and_left_empty(live: LiveServer, tmp_path: Path):
    test = """
        def test_it(extcli, extcli_server):
            assert extcli_server.process is None
            extcli.viewer().vote("boss", 1)
            print(extcli.url)
            assert False
    """
    run = run_pytest(tmp_path, "--extcli-url", live.url, files={"test": test})

    assert 1 == run.exit_code
    assert f"{live.url}/_ns/test_it-" in run.output
    assert f"the log of {live.url} has its lines: this run did not start that service" in run.output
    assert [] == namespaces_of_tests(live)


def test_the_variable_names_a_running_service_as_the_option_does(live: LiveServer, tmp_path: Path):
    test = "def test_it(extcli_server): assert extcli_server.process is None"
    assert 0 == run_pytest(tmp_path, files={"test": test}, EXTCLI_URL=live.url + "/_ns/job").exit_code


def test_a_url_without_namespaces_is_one_readable_error(running_production: LiveServer, tmp_path: Path):
    run = run_pytest(tmp_path, "--extcli-url", running_production.url, files={"test": "def test_it(extcli): pass"})

    assert 1 == run.exit_code
    expected = (
        f"{running_production.url} (--extcli-url) has no namespaces for tests: it is not a sandbox with a control API"
    )
    assert expected in run.output
    assert "Traceback" not in run.output


def test_a_service_that_does_not_start_is_one_readable_error(tmp_path: Path):
    conftest = """
        import pytest
        @pytest.fixture(scope="session")
        def extcli_serve_args(): return ["--max-bdy", "1"]
    """
    run = run_pytest(tmp_path, files={"conftest": conftest, "test": "def test_it(extcli): pass"})

    assert 1 == run.exit_code
    assert "extcli serve did not start:\nextcli serve: No such option: --max-bdy" in run.output


@pytest.mark.parametrize("is_for_exec", [False, True])
def test_failed_namespaces_are_kept_on_request_and_for_the_report_of_exec(
    live: LiveServer, tmp_path: Path, is_for_exec: bool
):
    test = """
        def test_passes(extcli): extcli.viewer().vote("boss", 1)
        def test_fails(extcli): assert not extcli.viewer().vote("boss", 1)
    """
    variables = {"EXTCLI_ON_FAILURE": "/report"} if is_for_exec else {}
    options = [] if is_for_exec else ["--extcli-keep"]
    run = run_pytest(tmp_path, *options, "--extcli-url", live.url, files={"test": test}, **variables)
    (kept,) = namespaces_of_tests(live)
    live._http.delete(f"/_ns/{kept}").raise_for_status()

    assert kept.startswith("test_fails-")
    of_exec = f"its data and journal, after the run: /report/namespaces/{kept}"
    assert (of_exec if is_for_exec else f"{live.url}/_ns/{kept}") in run.output


def test_a_program_of_a_test_finds_a_secret(tmp_path: Path):
    test = """
        from base64 import b64decode
        from pathlib import Path
        def test_it(extcli, extcli_async):
            file = Path(extcli.env["EXTCLI_SECRET_FILE"])
            assert (32, 0o600) == (len(b64decode(file.read_text())), file.stat().st_mode & 0o777)
            assert extcli.env == extcli_async.env
    """
    run = run_pytest(tmp_path, files={"test": test})

    assert 0 == run.exit_code, run.output


@pytest.mark.parametrize("where", ["environment", "options"])
def test_a_secret_of_the_user_comes_first(tmp_path: Path, where: str):
    test = 'def test_it(extcli): assert "EXTCLI_SECRET_FILE" not in extcli.env'
    conftest = ""
    if where == "options":
        (tmp_path / "extensions.toml").write_text(
            '[extensions.mine]\nsecrets = ["c2VjcmV0LW9mLTMyLWJ5dGVzLWF0LWxlYXN0LTEyMzQ1"]'
        )
        conftest = """
            import pytest
            @pytest.fixture(scope="session")
            def extcli_serve_args(): return ["--extensions", "extensions.toml"]
        """
    variables = {"EXTCLI_SECRET_FILE": "of-the-user"} if where == "environment" else {}
    run = run_pytest(tmp_path, files={"test": test, "conftest": conftest}, **variables)

    assert 0 == run.exit_code, run.output


def test_a_kept_namespace_keeps_its_service(tmp_path: Path):
    test = """
        def test_fails(extcli):
            extcli.viewer().vote("boss", 1)
            assert False
    """
    run = run_pytest(tmp_path, "--extcli-keep", files={"test": test})
    kept = re.search(r"^(http\S+) \(its service runs on: stop it with kill (\d+)\)$", run.output, re.MULTILINE)
    assert kept, run.output
    try:
        viewer = RunningService(kept[1]).client("viewer", user="2", channel="1001")
        assert 1 == viewer.get("vote?id=boss").json()["count"]
    finally:
        os.kill(int(kept[2]), signal.SIGTERM)


def test_the_service_stops_if_pytest_is_killed(tmp_path: Path):
    test = """
        import os, signal
        def test_it(extcli, extcli_server):
            with open("url", "w") as file:
                file.write(extcli_server.url)
            os.kill(os.getpid(), signal.SIGKILL)
    """
    assert -signal.SIGKILL == run_pytest(tmp_path, files={"test": test}).exit_code
    url = urlsplit((tmp_path / "url").read_text())

    wait_until(lambda: refuses(url.port or 0))
