"""The shared options, their variables, help and usage errors."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from extcli.app import NOUNS
from tools.cli_reference import commands

ROOT = Path(__file__).parents[2]


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


def test_version_prints_the_version(extcli):
    assert extcli("--version").stdout.startswith("extcli 0.")


def test_a_page_of_help_has_at_most_80_columns(extcli):
    pages = {name: extcli(*name.split(), "--help", exits=0).stdout for name, _ in commands() if name != "serve"}

    assert [] == [name for name, text in pages.items() if max(map(len, text.splitlines())) > 80]


def test_a_bug_exits_1_and_asks_for_a_report(extcli, monkeypatch):
    monkeypatch.setattr("extcli.api.client.Service.read_poll", lambda *_: 1 / 0)

    result = extcli("vote", "get", fails=1)

    assert "this is a bug in extcli" in result.stderr
    assert "ZeroDivisionError" in result.stderr


def test_an_interrupt_exits_130_without_a_traceback(extcli, monkeypatch):
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("extcli.api.client.Service.read_poll", interrupted)

    result = extcli("vote", "get")

    assert (130, "", "") == (result.exit_code, result.stdout, result.stderr)


INCOMPLETE = ("state", "set", "channel")


def test_with_an_invalid_output_format_errors_are_text(extcli):
    stderr = extcli(*INCOMPLETE, env={"EXTCLI_OUTPUT": "xml"}).stderr

    assert stderr.startswith("extcli: 'xml' (EXTCLI_OUTPUT) is not an output format")


def test_no_option_looks_like_a_number():
    """Words such as -1h are arguments."""
    names = {name for _, each in commands() for option in each.params for name in option.opts if name[0] == "-"}

    assert [] == [name for name in names if any(letter.isdigit() for letter in name)]


@pytest.mark.parametrize(
    "form", [("-5",), ("-qo", "plain", "-5"), ("--as=viewer:U1", "-5"), ("--", "-5")], ids=" ".join
)
def test_a_negative_number_can_be_an_argument(extcli, form):
    assert 0 == extcli("accumulate", "add", "numbers", *form).exit_code
    assert ["-5"] == [row[-1] for row in extcli("accumulate", "get", "numbers").rows]


@pytest.mark.parametrize("noun", ["", *NOUNS])
def test_no_summary_in_a_list_of_commands_is_cut_off(extcli, noun):
    summaries = extcli(*[noun] * bool(noun), "--help").stdout.partition("Commands:" if noun else "The emulator:")[2]

    assert [] == [line for line in summaries.splitlines() if line.endswith("...")]


@pytest.mark.parametrize("more", [(), ("--channel", "77")], ids=["default channel", "named channel"])
def test_a_named_broadcaster_owns_the_channel(extcli, more):
    info = extcli("user", "info", "-o", "json", "--as", "broadcaster:77", *more).json

    assert ("broadcaster", "77", "77") == (info["role"], info["user_id"], info["channel_id"])


def test_the_help_of_serve_lists_no_shared_options(extcli):
    assert "Options of every command but serve and exec:" in extcli("--help").stdout
    assert "Options of every command" not in extcli("serve", "--help").stdout


@pytest.mark.slow
def test_the_package_runs_as_a_module():
    """The version comes from the same entry point; `wait` ends with the same exit code."""
    run = partial(subprocess.run, capture_output=True, text=True, timeout=20)

    version = run([sys.executable, "-m", "extcli", "--version"])
    unreachable = run([sys.executable, "-m", "extcli", "wait", "--url", "http://127.0.0.1:1", "--timeout", "1ms"])

    assert (0, True) == (version.returncode, version.stdout.startswith("extcli "))
    assert 3 == unreachable.returncode


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


def _declaring(tree: ast.AST) -> dict[str, list[str]]:
    """Return the parameters of a module's functions whose default declares an option."""
    return {
        each.name: [
            argument.arg
            for argument, default in zip(each.args.args[::-1], each.args.defaults[::-1], strict=False)
            if isinstance(default, ast.Call)
        ]
        for each in ast.walk(tree)
        if isinstance(each, ast.FunctionDef)
    }


def test_a_function_that_declares_options_as_defaults_is_called_with_all_of_them():
    """The default is Typer's declaration, which no function expects as a value."""
    left_out = []
    for path in (ROOT / "src" / "extcli" / "commands").rglob("*.py"):
        tree = ast.parse(path.read_text())
        declaring = _declaring(tree)
        for call in ast.walk(tree):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
                given = {each.arg for each in call.keywords}
                left_out += [
                    (path.name, call.func.id, name) for name in declaring.get(call.func.id, ()) if name not in given
                ]

    assert [] == left_out
