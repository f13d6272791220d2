"""Completion: live names, without secrets, and silent if nothing answers."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator

import platformdirs
import pytest

from extcli.completion import LINE, VARIABLE, CommandLine, candidates, read_table
from extcli.config.flags import profiles_file
from support.process import STOP_TIMEOUT
from support.profile_files import config_file, write_profiles
from support.program import PROGRAM, SECRET_BASE64, http_response
from support.typing_shell import SHELLS, Shell


def completed(line: str, **more: str) -> list[str]:
    """Return the candidates for the last word of this line."""
    return [name for name, _ in described(line, **more)]


def described(line: str, **more: str) -> list[tuple[str, str]]:
    return candidates(CommandLine(read_table(), line), {**os.environ, **more})


@pytest.fixture
def patient(monkeypatch):
    """Let a slow machine answer."""
    monkeypatch.setattr("extcli.completion.TIMEOUT_SECONDS", STOP_TIMEOUT)


@pytest.mark.usefixtures("patient")
def test_live_names_complete(extcli, lines):
    extcli("vote", "cast", "lunch", "--value", "1", "--channel", "1001")
    extcli("vote", "cast", "dinner", "--value", "1", "--channel", "1002")
    extcli("rank", "submit", "color", "--key", "blue")
    extcli("accumulate", "add", "ratings", "1")
    extcli("ns", "new", "blue")
    extcli("codes", "upload", "--set", f"Hat={lines('A-1')}", "--yes")

    assert ["dinner", "lunch"] == sorted(completed("extcli vote get "))
    assert ["dinner"] == completed("extcli --channel 1002 vote get ")
    assert ["color"] == completed("extcli rank rm c")
    assert ["ratings"] == completed("extcli accumulate get ") == completed("extcli accumulate add ")
    assert "blue" in completed("extcli ns rm b")
    assert [("0", "Hat")] == described("extcli codes redeem ")
    assert [] == completed("extcli vote get x")


def test_names_of_profiles_complete(environment):
    write_profiles(dev={"url": "http://127.0.0.1:1"}, live={"url": "http://127.0.0.1:2", "production": True})

    assert ["dev", "live"] == completed("extcli -p ")
    assert ["live"] == completed("extcli profile use l")
    config_file().write_text("[")
    assert [] == completed("extcli -p ")


@pytest.mark.usefixtures("patient")
def test_the_address_has_the_precedence_of_commands(extcli, live, monkeypatch):
    extcli("vote", "cast", "lunch", "--value", "1")
    write_profiles(dev={"url": live.url}, other={"url": "http://127.0.0.1:1"})

    assert [] == completed("extcli -p other vote get ")
    assert ["lunch"] == completed(f"extcli -p other --url {live.url} vote get ")
    monkeypatch.setenv("EXTCLI_URL", "http://127.0.0.1:1")
    assert ["lunch"] == completed("extcli -p dev vote get ")
    assert [] == completed("extcli vote get ")


def test_production_is_not_asked_for_names(extcli, live, production):
    extcli("vote", "cast", "lunch", "--value", "1")
    write_profiles(live={"url": live.url, "production": True})

    assert [] == completed("extcli vote get ")
    assert [] == completed("extcli -p live vote get ")
    assert [] == completed("extcli vote get ", EXTCLI_URL=production.url)


def test_secrets_and_tokens_are_not_sent(monkeypatch):
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(STOP_TIMEOUT)
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


def test_unexpected_responses_and_useless_addresses_give_no_names(environment, answering):
    answers = [
        *(http_response("200 OK", body) for body in ("[1]", "<html>", '{"polls": [{"id": 1}]}')),
        http_response("200 OK", '{"polls": [{"id": "a\\u001b[2J", "channel_id": ""}], "next": "0"}'),
        http_response("500 Internal Server Error"),
        b"nothing\r\n\r\n",
    ]
    useless = ("nonsense", "http://127.0.0.1:1", "https://127.0.0.1:1", "http://h\r\nx: y", "http://")

    for url in (answering(hold=True), *map(answering, answers), *useless):
        assert [] == completed("extcli vote get ", EXTCLI_URL=url)


def test_the_profiles_file_is_the_one_of_commands(monkeypatch, tmp_path):
    own = platformdirs.user_config_path
    for variables in ({}, {"XDG_CONFIG_HOME": str(tmp_path)}, {"XDG_CONFIG_HOME": " "}):
        monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        assert str(own("extcli", appauthor=False) / "config.toml") == profiles_file(variables)


# Completion in real shells on a terminal


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
    typing.nothing_after_tab("extcli --url http://127.0.0.1:1 vote get lun")
