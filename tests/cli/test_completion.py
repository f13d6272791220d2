"""Completion: live names, without secrets, and silent if nothing answers."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator

import platformdirs
import pytest

from emulator.config.environment import PRODUCTION
from emulator.config.settings import Settings
from extcli.completion.shells import LINE, VARIABLE, candidates, complete
from extcli.config.precedence import profiles_file
from support.process import STOP_TIMEOUT
from support.profile_files import write_profiles
from support.program import PROGRAM, SECRET_BASE64, http_response
from support.service import live_server
from support.typing_shell import SHELLS, Shell
from tools import completion_table
from tools.cli_reference import commands


def completed(line: str, **more: str) -> list[str]:
    """Return the candidates for the last word of this line."""
    return [name for name, _ in candidates(line, {**os.environ, **more})[1]]


def test_the_table_of_commands_is_up_to_date():
    text = completion_table.FILE.read_text(encoding="utf-8")

    assert completion_table.page() == text, "run: make docs"


def test_every_kind_of_the_table_belongs_to_a_command():
    used = {key for name, command in commands() for each in command.params for key in completion_table.keys(name, each)}

    assert set() == completion_table.KINDS.keys() - used


def test_live_names_complete(extcli):
    extcli("vote", "cast", "lunch", "--value", "1")
    extcli("rank", "submit", "color", "--key", "blue")
    extcli("accumulate", "add", "ratings", "1")
    extcli("ns", "list", env={"EXTCLI_URL": f"{os.environ['EXTCLI_URL']}/_ns/blue"})
    extcli("vote", "list", env={"EXTCLI_URL": f"{os.environ['EXTCLI_URL']}/_ns/blue"})

    assert ["lunch"] == completed("extcli vote get ")
    assert ["color"] == completed("extcli rank rm c")
    assert ["ratings"] == completed("extcli accumulate get ") == completed("extcli accumulate add ")
    assert "blue" in completed("extcli ns rm b")
    assert [] == completed("extcli vote get x")


def test_code_sets_complete_by_index(extcli, lines):
    extcli("codes", "upload", "--set", f"Hat={lines('A-1')}", "--set", f"Cap={lines('B-1', name='caps.txt')}", "--yes")

    kind, found = candidates("extcli codes redeem ", os.environ)

    assert ("sets", [("0", "Hat"), ("1", "Cap")]) == (kind, found)


def test_the_channel_of_the_line_selects_polls(extcli):
    extcli("vote", "cast", "lunch", "--value", "1", "--channel", "1001")
    extcli("vote", "cast", "dinner", "--value", "1", "--channel", "1002")

    assert ["dinner", "lunch"] == sorted(completed("extcli vote get "))
    assert ["dinner"] == completed("extcli --channel 1002 vote get ")


def test_names_of_profiles_complete(environment):
    write_profiles(dev={"url": "http://127.0.0.1:1"}, live={"url": "http://127.0.0.1:2", "production": True})

    assert ["dev", "live"] == completed("extcli -p ")
    assert ["live"] == completed("extcli profile use l")


def test_the_address_has_the_precedence_of_commands(extcli, live, monkeypatch):
    extcli("vote", "cast", "lunch", "--value", "1")
    write_profiles(dev={"url": live.url}, other={"url": "http://127.0.0.1:1"})

    assert [] == completed("extcli -p other vote get ")
    assert ["lunch"] == completed(f"extcli -p other --url {live.url} vote get ")
    monkeypatch.setenv("EXTCLI_URL", "http://127.0.0.1:1")
    assert ["lunch"] == completed("extcli -p dev vote get ")
    assert [] == completed("extcli vote get ")


def test_a_production_profile_is_not_asked_for_names(extcli, live):
    extcli("vote", "cast", "lunch", "--value", "1")
    write_profiles(live={"url": live.url, "production": True})

    assert [] == completed("extcli vote get ")
    assert [] == completed("extcli -p live vote get ")


def test_secrets_and_tokens_are_not_sent(monkeypatch):
    listener = socket.create_server(("127.0.0.1", 0))
    monkeypatch.setenv("EXTCLI_URL", f"http://127.0.0.1:{listener.getsockname()[1]}")
    secrets = {"EXTCLI_SECRET": SECRET_BASE64, "EXTCLI_TOKEN": "a.secret.b"}
    process = subprocess.Popen(
        [PROGRAM],
        env={**os.environ, **secrets, VARIABLE: "bash", LINE: "extcli vote get "},
        stdout=subprocess.PIPE,
    )
    connection, _ = listener.accept()
    request = connection.recv(65536).decode()
    connection.close()
    output, _ = process.communicate(timeout=STOP_TIMEOUT)

    assert b"" == output
    assert "a.secret.b" not in request
    assert request.split("authorization: ")[1].split("\r\n")[0].endswith(".AA")


def test_a_production_service_gives_no_names():
    with live_server(Settings(environment=PRODUCTION)) as production:
        assert [] == completed("extcli vote get ", EXTCLI_URL=production.url)


@pytest.mark.parametrize(
    "answer",
    [
        http_response("200 OK", "[1]"),
        http_response("200 OK", "<html>"),
        http_response("200 OK", '{"polls": [{"id": 1}]}'),
        http_response("500 Internal Server Error"),
        b"nothing\r\n\r\n",
        b"",
    ],
)
def test_unexpected_responses_give_no_names(environment, answering, answer):
    assert [] == completed("extcli vote get ", EXTCLI_URL=answering(answer))


@pytest.mark.parametrize(
    "url", ["", "nonsense", "http://127.0.0.1:1", "https://127.0.0.1:1", "http://h\r\nx: y", "http://"]
)
def test_a_useless_address_gives_no_names(environment, url):
    assert [] == completed("extcli vote get ", EXTCLI_URL=url or "http://127.0.0.1:1")


def test_a_service_that_does_not_respond_is_left_alone(environment, answering):
    assert [] == completed("extcli vote get ", EXTCLI_URL=answering(hold=True))


def test_a_broken_profiles_file_gives_no_names(environment, tmp_path):
    (tmp_path / "config.toml").write_text("[")

    assert [] == completed("extcli -p ")


def test_names_that_a_terminal_would_interpret_are_left_out(environment, answering):
    url = answering(http_response("200 OK", '{"polls": [{"id": "a\\u001b[2J", "channel_id": ""}], "next": "0"}'))

    assert [] == completed("extcli vote get ", EXTCLI_URL=url)


def test_completion_imports_neither_typer_nor_httpx():
    process = subprocess.run(
        [sys.executable, "-X", "importtime", PROGRAM],
        env={**os.environ, VARIABLE: "bash", LINE: "extcli vote get ", "EXTCLI_URL": "http://127.0.0.1:1"},
        capture_output=True,
        text=True,
        check=True,
        timeout=STOP_TIMEOUT,
    )

    unused = ("typer", "pydantic", "rich", "httpx", "http", "inspect", "email", "ssl", "platformdirs", "logging")
    assert [] == [name for name in unused if f" {name}\n" in process.stderr]


def test_the_profiles_file_is_the_one_of_commands(monkeypatch, tmp_path):
    own = platformdirs.user_config_path
    for variables in ({}, {"XDG_CONFIG_HOME": str(tmp_path)}, {"XDG_CONFIG_HOME": " "}):
        monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        assert str(own("extcli", appauthor=False) / "config.toml") == profiles_file(variables)


def test_files_complete_in_the_shell(environment):
    assert 10 == complete({VARIABLE: "bash", LINE: "extcli vote cast --from "})


def test_the_script_for_powershell_is_typers(extcli):
    script = extcli("completion", "powershell").stdout

    assert script.startswith("# Written by Typer, and not tested")
    assert '"complete_powershell"' in script


# Completion in real shells on a terminal: `benchmarks/completion.py` prints how long it takes


@pytest.fixture(params=SHELLS)
def typing(request, extcli, environment, tmp_path) -> Iterator[Shell]:
    """A shell with completion, and one poll in the service."""
    if shutil.which(request.param) is None:
        pytest.skip(f"needs {request.param}")
    extcli("vote", "cast", "lunch-menu", "--value", "1")
    extcli("vote", "cast", "my$poll", "--value", "1")
    home = tmp_path / "home"
    home.mkdir()
    (home / "ballots.csv").touch()
    shell = Shell(request.param, PROGRAM.parent, home, {"EXTCLI_URL": environment["EXTCLI_URL"]})
    yield shell
    shell.close()


@pytest.mark.slow
def test_a_shell_completes_commands_options_files_and_live_names(typing):
    typing.shown_after_tab("extcli acc", "umulate ")
    typing.shown_after_tab("extcli connect un", "ity ")
    typing.shown_after_tab("extcli vote get --prof", "ile ")
    typing.shown_after_tab("extcli vote cast --from bal", "lots.csv ")
    typing.shown_after_tab("extcli vote get lun", "ch-menu ")
    typing.shown_after_tab("extcli vote get my", "$poll ")


@pytest.mark.slow
def test_completion_is_silent_if_no_service_responds(typing):
    typing.nothing_after_tab("extcli --url http://127.0.0.1:1 vote get lun")
