"""The shared options, their variables, help and usage errors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial

import pytest
from typer.main import get_command

from extcli.app import NOUNS, app
from support.program import PROGRAM
from tools.cli_reference import commands

INFO = ("user", "info", "-o", "json")


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


def test_a_flag_precedes_the_environment(extcli):
    variables = {"EXTCLI_CHANNEL": "7", "EXTCLI_AS": "viewer:U7", "EXTCLI_OUTPUT": "json", "EXTCLI_CLIENT_ID": "other"}

    by_environment = extcli("user", "info", env=variables).json
    by_flag = extcli("user", "info", "--channel", "8", "--as", "viewer:U8", "--client-id", "third", env=variables).json

    assert ("U7", "7", "other") == tuple(by_environment[name] for name in ("user_id", "channel_id", "extension_id"))
    assert ("U8", "8", "third") == tuple(by_flag[name] for name in ("user_id", "channel_id", "extension_id"))


def test_an_empty_variable_counts_as_not_set(extcli):
    assert 0 == extcli("vote", "get", env={"EXTCLI_TOKEN": "", "EXTCLI_OUTPUT": "", "EXTCLI_SECRET": ""}).exit_code


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("EXTCLI_URL", "nonsense"),
        ("EXTCLI_OUTPUT", "xml"),
        ("EXTCLI_TIMEOUT", "soon"),
        ("EXTCLI_AS", ":U1"),
        ("EXTCLI_CLIENT_ID", "two words"),
    ],
)
def test_an_invalid_variable_is_an_error_that_names_it(extcli, variable, value):
    result = extcli("vote", "get", env={variable: value}, fails=2)

    assert variable in result.stderr


@pytest.mark.parametrize("args", [("vot",), ("vote", "gett"), ("vote", "get", "--nope"), ("vote", "get", "a", "b")])
def test_a_usage_error_exits_2(extcli, args):
    result = extcli(*args, fails=2)

    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("vote", "cast", "--value", "1.5"), "--value: '1.5' is not a whole number"),
        (("vote", "cast", "--value", "9" * 5000), f"--value: '{'9' * 39}…' has too many digits"),
        (("vote", "cast", "--value", "-" + "9" * 20), f"--value: '-{'9' * 20}' has too many digits"),
        (("vote", "logs", "--limit", "-3"), "--limit: '-3' is not a whole number of at least 0"),
        (("vote", "cast", "--concurrency", "0"), "--concurrency: '0' is not a whole number from 1 to 1024"),
        (("codes", "upload", "--set", "A=a", "--index", "3", "--index", "x"), "--index: 'x' is not a whole number"),
        (
            ("-o", "tsv", "vote", "get"),
            "'tsv' (--output) is not an output format\n  use table, plain (tab-separated), json",
        ),
        (("vote", "cast", "--value", "1", "-o", "env"), "this command has no output format env"),
    ],
)
def test_an_invalid_value_is_an_error_that_names_its_limits(extcli, args, message):
    result = extcli(*args, exits=2)

    assert message in result.stderr


def test_a_misspelled_noun_gets_a_suggestion(extcli):
    assert "Did you mean 'vote'?" in extcli("vot").stderr


def test_version_prints_the_version(extcli):
    assert extcli("--version").stdout.startswith("extcli 0.")


@pytest.mark.parametrize("noun", NOUNS)
def test_every_noun_has_help_with_verbs_or_an_example(extcli, noun):
    result = extcli(noun, "--help", exits=0)

    assert "Commands:" in result.stdout or "xample" in result.stdout or noun == "serve"


@pytest.mark.parametrize("noun", sorted(set(NOUNS) - {"serve"}))
def test_the_help_of_a_noun_has_at_most_80_columns(extcli, noun):
    assert max(map(len, extcli(noun, "--help").stdout.splitlines())) <= 80


def test_every_verb_has_help_with_an_example_within_80_columns(extcli):
    root = get_command(app)
    for noun in set(NOUNS) - {"serve"}:
        _, group, _ = root.resolve_command(None, [noun])
        for verb in getattr(group, "commands", {}):
            stdout = extcli(noun, verb, "--help").stdout
            assert f"extcli {noun} {verb}" in stdout, (noun, verb)
            assert "xample" in stdout, (noun, verb)
            assert max(map(len, stdout.splitlines())) <= 80, (noun, verb)


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


@pytest.mark.parametrize(("args", "env"), [(("-o", "json", *INCOMPLETE), {}), (INCOMPLETE, {"EXTCLI_OUTPUT": "json"})])
def test_with_json_output_a_usage_error_is_json(extcli, args, env):
    result = extcli(*args, env=env, fails=2)

    assert 2 == json.loads(result.stderr)["error"]["exit_code"]


def test_with_an_invalid_output_format_errors_are_text(extcli):
    stderr = extcli(*INCOMPLETE, env={"EXTCLI_OUTPUT": "xml"}).stderr

    assert stderr.startswith("extcli: 'xml' (EXTCLI_OUTPUT) is not an output format")


@pytest.mark.slow
@pytest.mark.parametrize("command", [("api",), ("token", "sandbox")])
def test_the_shell_examples_in_help_work(extcli, live, command):
    """The examples that contain shell syntax, run by a shell."""
    shown = extcli(*command, "--help").stdout
    examples = [line.strip() for line in shown.splitlines() if line.strip().startswith(("extcli ", "curl "))]

    for example in examples:
        line = example.replace("http://127.0.0.1:8282", live.url).replace("curl -H", "curl -sSf -H")
        variables = {**os.environ, "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}"}
        ran = subprocess.run(["sh", "-c", line], capture_output=True, text=True, env=variables, timeout=20)
        assert (0, "") == (ran.returncode, ran.stderr), example
    assert len(examples) >= 2


def test_a_negative_number_gets_the_suggestion_value(extcli):
    assert "--value -15" in extcli("vote", "cast", "lunch", "-15").stderr


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


@pytest.mark.parametrize(
    ("arguments", "suggestion"),
    [
        (("vote", "cast", "lunch", "3"), ": 3. Did you mean --value 3?"),
        (("rank", "submit", "color", "blue"), ": blue. Did you mean --key blue?"),
        (("fault", "add", "POST /v1/e/vote"), ": POST /v1/e/vote. Did you mean --match 'POST /v1/e/vote'?"),
        (("vote", "get", "lunch", "3"), ": 3"),
        (("vote", "cast", "lunch", "-3"), ": -3 (Possible options: --value -3)"),
        (("rank", "submit", "color", "-5"), ": -5 (Possible options: --key -5)"),
    ],
)
def test_a_value_without_its_option_gets_the_name_of_the_option(extcli, arguments: tuple[str, ...], suggestion: str):
    assert extcli(*arguments).stderr.splitlines()[0].endswith(suggestion)


@pytest.mark.parametrize("typed", [("logs", "-n", "5"), ("logs", "--tail=5"), ("clock", "next", "-n", "5")])
def test_an_option_of_tail_gets_the_name_that_it_has_here(extcli, typed: tuple[str, ...]):
    option = typed[-2 if typed[-1] == "5" else -1].partition("=")[0]

    assert f"extcli: no such option: {option} (Possible options: --limit)" == extcli(*typed).stderr.splitlines()[0]


@pytest.mark.parametrize("noun", ["", *NOUNS])
def test_no_summary_in_a_list_of_commands_is_cut_off(extcli, noun):
    summaries = extcli(*[noun] * bool(noun), "--help").stdout.partition("Commands:" if noun else "The emulator:")[2]

    assert [] == [line for line in summaries.splitlines() if line.endswith("...")]


@pytest.mark.parametrize(
    ("args", "variables"),
    [
        (("user", "info", "--as", "moderator:U1"), {}),
        (("user", "info"), {"EXTCLI_AS": "moderator"}),
        (("token", "sandbox", "--role", "moderator"), {}),
        (("token", "mint", "--role", "moderator"), {"EXTCLI_SECRET": "c2VjcmV0"}),
    ],
    ids=["--as", "EXTCLI_AS", "token sandbox", "token mint"],
)
def test_an_unknown_role_is_an_error_that_lists_the_roles(extcli, args, variables):
    """The service would treat it as viewer."""
    result = extcli(*args, env=variables, fails=2)

    assert "'moderator' " in result.stderr
    assert "use viewer, broadcaster, admin or backend" in result.stderr


@pytest.mark.parametrize(
    ("args", "variables"),
    [
        (("user", "info", "--as", "viewer:"), {}),
        (("user", "info"), {"EXTCLI_AS": "viewer:"}),
        (("user", "info", "--as", ""), {}),
        (("user", "info", "--channel", ""), {}),
        (("user", "info", "--client-id", ""), {}),
        (("user", "info", "--url", ""), {}),
        (("user", "info", "-p", ""), {}),
        (("token", "sandbox", "--user", ""), {}),
        (("token", "sandbox", "--role", ""), {}),
    ],
    ids=lambda words: " ".join(words),
)
def test_an_empty_argument_is_a_usage_error(extcli, args, variables):
    extcli(*args, env=variables, fails=2)


@pytest.mark.parametrize("more", [(), ("--channel", "77")], ids=["default channel", "named channel"])
def test_a_named_broadcaster_owns_the_channel(extcli, more):
    info = extcli("user", "info", "-o", "json", "--as", "broadcaster:77", *more).json

    assert ("broadcaster", "77", "77") == (info["role"], info["user_id"], info["channel_id"])


@pytest.mark.parametrize(
    "args",
    [
        ("user", "info", "--as", "broadcaster:77"),
        ("token", "sandbox", "--role", "broadcaster", "--user", "77"),
        ("pin", "revoke", "--as", "broadcaster:77"),
        ("broadcast", "send", "e", "1", "--as", "broadcaster:77"),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_a_broadcaster_cannot_act_for_the_channel_of_another(extcli, args):
    result = extcli(*args, "--channel", "5", fails=2)

    assert "broadcaster 77 does not own channel 5 (--channel)" in result.stderr


def test_the_help_of_serve_lists_no_shared_options(extcli):
    assert "Options of every command but serve and exec:" in extcli("--help").stdout
    assert "Options of every command" not in extcli("serve", "--help").stdout


def test_an_invalid_url_is_quoted_without_its_password(extcli):
    result = extcli("vote", "get", "--url", "http://somebody:hunter2@host:port", fails=2)

    assert "hunter2" not in result.stderr


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
