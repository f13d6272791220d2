"""The tokens of the fixtures: production would take them, and they follow the clock of the namespace."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from emulator.core.extensions import Extension
from emulator.core.settings import Settings
from support.plugin_runs import run_pytest
from support.program import SECRET_BASE64
from support.service import CLIENT_ID, SECRET, LiveServer, live_server
from support.verdicts import rules

pytestmark = pytest.mark.slow

TEST = """
    import httpx, jwt, os

    def test_it(extcli):
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
"""


@pytest.fixture
def known() -> Iterator[LiveServer]:
    """A sandbox that knows the secret of an extension."""
    with live_server(Settings(extensions={CLIENT_ID: Extension(CLIENT_ID, (SECRET,))})) as live:
        yield live


@pytest.mark.parametrize("has_secret", [True, False])
def test_production_would_take_the_tokens_of_the_fixtures(known: LiveServer, tmp_path: Path, has_secret: bool):
    variables = {"EXTCLI_URL": known.url, "EXTCLI_CLIENT_ID": CLIENT_ID}
    if has_secret:
        (tmp_path / "secret").write_text(SECRET_BASE64)
        (tmp_path / "secret").chmod(0o600)
        variables["EXTCLI_SECRET_FILE"] = str(tmp_path / "secret")

    run = run_pytest(tmp_path, files={"test": TEST}, **variables)

    assert (0, {}) == (run.exit_code, rules(known, "service")), run.output


def test_a_secret_that_cannot_be_read_is_one_readable_error(known: LiveServer, tmp_path: Path):
    run = run_pytest(tmp_path, files={"test": TEST}, EXTCLI_URL=known.url, EXTCLI_SECRET_FILE=str(tmp_path / "absent"))

    assert (1, True) == (run.exit_code, "cannot read" in run.output), run.output
    assert "Traceback" not in run.output
