"""A wrong command line: exit code 2, the option by name, where to read its usage, and no request that writes; help."""

from __future__ import annotations

import re
import shlex
from itertools import takewhile

import pytest

from extcli.app import NOUNS
from extcli.cli.parsing import REMOVED
from extcli.config.settings import SETTINGS
from extcli.errors import ExitCode

WRONG = {
    "votes": ("vote", "extcli"),
    "token sign": ("sign", "extcli token"),
    "vote cast lunch 3 4": ("4", "extcli vote cast"),
    "vote cast --vlaue 3": ("--value", "extcli vote cast"),
    "codes upload": ("--set", "extcli codes upload"),
    "state get chanel": ("SCOPE", "extcli state get"),
}
"""What an error names: the option, argument or command, and the command whose help has the usage."""


@pytest.mark.parametrize("words", WRONG)
def test_a_usage_error_names_the_option_and_the_help(extcli, words: str):
    named, command = WRONG[words]

    what, advice = extcli(*words.split(), exits=2).stderr.splitlines()
    assert what.startswith("extcli: ")
    assert named in what
    assert f"`{command} -h`" in advice


@pytest.mark.parametrize("words", REMOVED)
def test_a_removed_command_or_option_names_what_to_use_instead(extcli, words: str):
    assert REMOVED[words] in extcli(*words.split(), exits=2).stderr


GET_STATE = "socket send get state"
REFUSED = [
    # what is missing, given twice, or does not fit
    *((f"accumulate add {words}", "document") for words in ("", "a b c", "a b --from -", "a 1 x=1", "x=1 a", "b -")),
    ("codes upload --set A=- --set B=-", "standard input"),
    ("codes upload --set A=a --index 3 --index x", "--index"),
    ("codes mark-from-list --from - --prize 0", "no entries"),
    ("fault add 'POST /v1/e/vote'", "(POST /v1/e/vote)"),
    ("fault add --match 'POST /v1/e/vote' --drop --retry-after 1", "--retry-after"),
    ("socket close 1 --all", "--all"),
    ("state get channel --user U7", "users"),
    ("token mint", "EXTCLI_SECRET_FILE"),
    ("trivia move q1 results", "--winner"),
    ("vote edit lunch", "nothing to change"),
    *((f"vote cast {words}", "--from") for words in ("", "--value 3 --from -", "--value 3 --skip 5")),
    ("vote define p --ends-at 90s --ends-in 90s", "--ends-in"),
    ("connect cpp --sign", "cpp"),
    ("profile rm dev --dry-run", "--dry-run"),
    ("serve -p dev", "-p"),
    ("user info --as broadcaster:77 --channel 5", "--channel"),
    *((f"vote rm x --all-channels {words}", "--all-channels") for words in ("--channel 5", "--as broadcaster")),
    # values
    *((f"clock advance -- {each!r}", "duration") for each in ("", "5", "5 s", "-5m", "5m!")),
    *((f"{line} {'9' * 320}d", "3652500d") for line in ("vote get --timeout", "clock advance")),
    ("clock set tomorrow", "point in time"),
    ("reset --keep 1900ms", "--keep"),
    *((f"serve {words}", words.split()[0]) for words in ("--port 65536", "--name ../x", "--journal 16MB")),
    *((f"ns rm {each!r}", "namespace") for each in ("", "a/v1", "a.b", "a" * 65)),
    *((f"{line} ''", "id is empty") for line in ("vote rm --yes", "json-store get")),
    *((f"vote get --client-id {each!r}", "client id") for each in ("two words", "umläut")),
    *((f"vote cast --value {value}", "--value") for value in ("1.5", "Pizza", "9" * 5000)),
    *((f"codes mark-from-list U1 --prize 0 --limit {each}", named)
      for each, named in (("x", "--limit"), ("10=1", "set 10"), ("1=1", "--limit"))),
    ("vote cast lunch --value 3 --dry-run=wget", "--dry-run"),
    ("vote cast --value 1 -o env", "env"),
    ("-o tsv vote get", "--output"),
    *((f"user info --as {each}", "--as") for each in ("moderator:U1", "viewer:", "''")),
    ("token sandbox --role moderator", "--role"),
    ("user info --channel ''", "--channel"),
    *((f"vote list --query {each}", "--query") for each in ("'polls['", "''")),
    *((f"state set channel {words}", "JSON") for words in ("{broken", "a={broken", "a=1 b")),
    (f"{GET_STATE} --data {{bad", "--data"),
    ("rank submit --key \udcff", "not UTF-8"),
    # files, addresses, variables
    *((f"{line} /absent/a", "/absent/a") for line in ("snapshot load", "snapshot save", "fault load", "seed check",
      "vote cast --from", "conform --only W3 --junit", "codes upload --set A=absent --set")),
    *((f"{name}=/dev/zero vote get", "/dev/zero") for name in ("EXTCLI_CONFIG", "EXTCLI_SECRET_FILE")),
    ("EXTCLI_CONFIG=/proc/extcli/config.toml profile add dev --url https://ext.example", "/proc/extcli/"),
    *((f"vote get --url '{url}'", "--url") for url in ("localhost:8282", "ftp://x", "http://x:port", "http://[::1",
      "http://x/?", "http://u:hunter2@x", "http://u:hunter2@host:port", "")),
    ("vote get --url 'http://x\n'", "http://x"),
    *((f"EXTCLI_WS_URL={url} {GET_STATE}", "EXTCLI_WS_URL")
      for url in ("http://h/ws", "ws://", "ws://h/ws?a=1", "wss://u:hunter2@host/ws")),
    *((f"EXTCLI_PIN_PATH='{path}' pin request", "EXTCLI_PIN_PATH") for path in ("link/pin?x=1", "../vote", "/")),
    *((f"EXTCLI_{name}={value} vote get", f"EXTCLI_{name}") for name, value in (
        ("URL", "nonsense"), ("TIMEOUT", "soon"), ("AS", "moderator"), ("PROFILE", "dev"),
        ("SECRET", "not/base64!hunter2"), ("TOKEN", "'my-extension hunter2'"),
    )),
    ("EXTCLI_SERVE_PORT=abc serve", "PORT"),
    ("EXTCLI_TOKEN=abc conform --only A1", "not a JWT"),
    # secrets among the arguments
    ("pin login A7K9QF", "command line"),
    ("""socket send authenticate --no-auth --data '{"client_id": "my-extension", "pin": "A7K9QF"}'""", "histories"),
    ("vote get --secret x", "--secret"),
]  # fmt: skip
"""Command lines that cannot be meant, with variables in front, and what is named in the error about each."""


@pytest.mark.parametrize(("line", "named"), REFUSED, ids=[ascii(line)[:80] for line, _ in REFUSED])
def test_a_command_line_that_cannot_be_meant_is_refused_before_a_write(extcli, line: str, named: str):
    words = shlex.split(line)
    variables = dict(word.split("=", 1) for word in takewhile(re.compile("[A-Z_]+=").match, words))
    shown = () if "serve" in words else ("-v",)

    result = extcli(*shown, *words[len(variables) :], env=variables, fails=2)

    assert re.search(r"^extcli( serve)?: ", result.stderr, re.MULTILINE)
    assert named in result.stderr
    assert not re.search("^> ((?!GET)[A-Z]+ |CONNECT)", result.stderr, re.MULTILINE)
    assert not {"hunter2", "A7K9QF"} & set(re.findall(r"\w+", result.stderr)), "secrets are not quoted"


@pytest.mark.parametrize("words", [("-o", "json"), ("-ojson",), ("--output=json",)])
def test_words_after_two_dashes_do_not_choose_the_format_of_errors(extcli, words: tuple[str, ...]):
    after = extcli("vote", "get", "--bogus", "--", *words, exits=2)
    before = extcli("vote", "get", "--bogus", *words, exits=2)

    assert ("extcli: ", "{") == (after.stderr[:8], before.stderr[:1])


def test_a_noun_without_a_verb_prints_its_help(extcli):
    assert extcli("vote", exits=2).stderr.startswith("Usage: extcli vote [OPTIONS] COMMAND")
    assert '"what": "missing command"' in extcli("vote", exits=2, env={"EXTCLI_OUTPUT": "json"}).stderr


# `extcli help TOPIC`, and errors as JSON


def test_every_exit_code_has_a_meaning(extcli):
    assert sorted(ExitCode) == [int(code) for code, _ in extcli("help", "exit-codes").rows]


def test_every_variable_of_a_setting_and_of_serve_is_listed(extcli):
    listed = dict(extcli("help", "env").rows)

    assert {each.variable for each in SETTINGS.values() if each.variable} < set(listed)
    assert "serve --port: Port to listen on; 0 chooses a free port." == listed["EXTCLI_SERVE_PORT"]
    assert all(listed.values())


def test_the_help_is_one_screen_with_every_noun(extcli):
    screen = extcli("--help", env={"COLUMNS": "80"}).stdout

    assert len(screen.splitlines()) <= 24
    assert set(NOUNS) <= set(screen.split())


def test_commands_of_other_programs_are_understood(live, extcli):
    assert "U7" == extcli("--as", "viewer:U7", "whoami", "-o", "json").json["opaque_user_id"]
    assert extcli("--version").stdout == extcli("version").stdout

    assert 1 == extcli("vote", "cast", "lunch", "3", "-o", "json").json["stats"]["count"]
    assert -3 == extcli("vote", "cast", "lunch", "-3", "-o", "json").json["vote"]
    extcli("vote", "cast", "lunch", "3", "--value", "3", fails=2)
    assert extcli("vote", "list", "-o", "json").json == extcli("vote", "ls", "-o", "json").json
    extcli("vote", "delete", "lunch", exits=0)
    assert 0 == extcli("vote", "get", "lunch", "-o", "json").json["stats"]["count"]


def test_help_with_the_name_of_a_command_prints_its_help_page(extcli):
    for words in (["vote"], ["vote", "cast"], ["doctor"]):
        assert extcli(*words, "--help").stdout == extcli("help", *words).stdout
    extcli("help", "vot", exits=2)
