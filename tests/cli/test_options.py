"""The shared options, their variables, help and usage errors."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    "args",
    [
        ("--as", "viewer:U5", "--channel", "9", "-o", "json", "user", "info"),
        ("user", "--as", "viewer:U5", "--channel", "9", "-o", "json", "info"),
        ("user", "info", "--as", "viewer:U5", "--channel", "9", "-o", "json"),
        ("--as", "viewer:U1", "--channel", "9", "user", "-o", "json", "info", "--as", "viewer:U5"),
    ],
    ids=["before", "between", "after", "the last counts"],
)
def test_shared_options_work_before_and_after_the_command(extcli, args):
    info = extcli(*args).json

    assert ("U5", "9") == (info["user_id"], info["channel_id"])


def test_an_empty_variable_counts_as_not_set(extcli):
    assert 0 == extcli("vote", "get", env={"EXTCLI_TOKEN": "", "EXTCLI_OUTPUT": "", "EXTCLI_SECRET": ""}).exit_code


@pytest.mark.parametrize(("error", "code"), [(ZeroDivisionError, 1), (KeyboardInterrupt, 130)])
def test_a_bug_exits_1_and_an_interrupt_130(extcli, monkeypatch, error, code):
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("extcli.api.client.Service.read_poll", fail)

    assert (code == 1) == ("this is a bug in extcli" in extcli("vote", "get", fails=code).stderr)


@pytest.mark.parametrize(
    "form", [("-5",), ("-qo", "plain", "-5"), ("--as=viewer:U1", "-5"), ("--", "-5")], ids=" ".join
)
def test_a_negative_number_can_be_an_argument(extcli, form):
    assert 0 == extcli("accumulate", "add", "numbers", *form).exit_code
    assert ["-5"] == [row[-1] for row in extcli("accumulate", "get", "numbers").rows]


@pytest.mark.parametrize("more", [(), ("--channel", "77")], ids=["default channel", "named channel"])
def test_a_named_broadcaster_owns_the_channel(extcli, more):
    info = extcli("user", "info", "-o", "json", "--as", "broadcaster:77", *more).json

    assert ("broadcaster", "77", "77") == (info["role"], info["user_id"], info["channel_id"])


WITHOUT_PRIVATE_PARTS = """
from extcli.cli import fast_start
fast_start._type_of = lambda parameter: None  # as with a version of Typer that has renamed it
from extcli.main import main
main()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "args",
    [
        ("vote", "cast", "lunch", "--value", "3", "--as", "viewer:U5", "--dry-run"),
        ("vote", "logs", "lunch", "--limit", "2", "--dry-run"),
        ("codes", "mark-from-list", "U1", "U2", "--prize", "0", "--prize", "1", "--dry-run"),
        ("contents", "json-stores", "--dry-run"),
        ("help", "exit-codes", "-o", "jsonl"),
        ("config", "list", "--show-origin"),
    ],
    ids=["text", "a number", "several numbers", "a choice", "a list", "a flag"],
)
def test_commands_work_without_the_private_parts_of_typer(args):
    ours, theirs = (
        subprocess.run([sys.executable, "-c", code, *args], capture_output=True, text=True, timeout=60)
        for code in ("from extcli.main import main; main()", WITHOUT_PRIVATE_PARTS)
    )

    assert (ours.returncode, ours.stdout, ours.stderr) == (theirs.returncode, theirs.stdout, theirs.stderr)
    assert ours.stdout + ours.stderr
