"""`extcli connect … --sign`: the printed code signs tokens that a service accepts, also after a move of its clock."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from support.program import SECRET_BASE64
from support.tokens_page import INFOS, PAGE, page

Header = Callable[..., dict[str, str]]


@pytest.fixture(
    params=[
        "python",
        pytest.param("node", marks=pytest.mark.skipif(not shutil.which("node"), reason="needs Node.js")),
    ]
)
def header(extcli, folder: Path, request: pytest.FixtureRequest) -> Header:
    """Run the printed program, and return the header that it prints."""
    client = request.param
    program, name = {"python": (sys.executable, "sign.py"), "node": ("node", "sign.mjs")}[client]
    (folder / name).write_text(extcli("connect", client, "--sign").stdout)
    (folder / "secret").write_text(f"{SECRET_BASE64}\n")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("EXTCLI_")}

    def run(*args: str, **variables: str) -> dict[str, str]:
        environment = {**kept, "EXTCLI_SECRET_FILE": "secret", **variables}
        printed = subprocess.run(
            [program, name, *args], env=environment, cwd=folder, capture_output=True, text=True, check=True, timeout=30
        ).stdout
        head, _, value = printed.strip().partition(": ")
        return {head: value}

    return run


def test_production_accepts_the_token_of_each_role(header: Header, production) -> None:
    for args in (("backend", "1001"), ("viewer", "1001", "7"), ("broadcaster", "1001", "1001")):
        info = httpx.get(f"{production.url}/v1/e/user_info", headers=header(*args))

        assert (200, *args[:2]) == (info.status_code, info.json()["role"], info.json()["channel_id"])


def test_the_token_follows_a_moved_clock(header: Header, live) -> None:
    live.advance(8 * 86_400_000)
    url = f"{live.url}/v1/e/vote"

    signed_by_the_machine = httpx.get(url, headers=header("viewer", "1001", "7"))
    signed_by_the_service = httpx.get(url, headers=header("viewer", "1001", "7", EXTCLI_URL=live.url))

    assert [401, 200] == [signed_by_the_machine.status_code, signed_by_the_service.status_code]


def test_a_service_beyond_loopback_tells_the_time_with_the_control_token(header: Header, guarded) -> None:
    info = httpx.get(f"{guarded['EXTCLI_URL']}/v1/e/user_info", headers=header("viewer", "1001", "7", **guarded))

    assert (200, "viewer") == (info.status_code, info.json()["role"])


def test_the_code_has_the_client_id_and_the_channel(extcli) -> None:
    for client in INFOS:
        code = extcli("connect", client, "--sign", "--client-id", "other", "--channel", "777").stdout
        assert ('"other"' in code, '"777"' in code) == (True, True)


def test_the_page_has_the_code_that_the_command_prints(extcli) -> None:
    text = PAGE.read_text()

    assert page() == text, "run make docs"
    assert [] == [each for each in INFOS if extcli("connect", each, "--sign").stdout not in text]


@pytest.mark.parametrize(("args", "error"), [
    (("cpp", "--sign"), "there is no code that signs a token for cpp"),
    (("python",), "`connect python` needs --sign"),
])  # fmt: skip
def test_code_that_does_not_exist_is_a_usage_error(extcli, args, error) -> None:
    result = extcli("connect", *args)

    assert (2, f"extcli: {error}") == (result.exit_code, result.stderr.splitlines()[0])
