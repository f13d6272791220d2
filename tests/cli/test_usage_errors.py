"""A wrong command line: exit code 2, the option by name, where to read its usage, and no request that writes."""

from __future__ import annotations

import re
import shlex
from itertools import takewhile

import pytest

from extcli.cli.removed import REMOVED

WRONG = {
    "votes": ("vote", "extcli"),
    "token sign": ("mint", "extcli token"),
    "vote cast lunch 3 4": ("4", "extcli vote cast"),
    "vote cast --vlaue 3": ("--value", "extcli vote cast"),
    "codes upload": ("--set", "extcli codes upload"),
    "state get chanel": ("SCOPE", "extcli state get"),
    "logs -n 5": ("--limit", "extcli logs"),
}
"""What an error names: the option, argument or command, and the command whose help has the usage."""


@pytest.mark.parametrize("words", [name for name in REMOVED if not name.startswith("serve --")])
def test_a_removed_command_names_what_to_use_instead(extcli, words: str):
    assert REMOVED[words] in extcli(*words.split(), exits=2).stderr


@pytest.mark.parametrize("words", WRONG)
def test_a_usage_error_names_the_option_and_the_help(extcli, words: str):
    named, command = WRONG[words]

    what, advice = extcli(*words.split(), exits=2).stderr.splitlines()
    assert what.startswith("extcli: ")
    assert named in what
    assert f"`{command} -h`" in advice


NINES = "9" * 20
MARKS = ("codes mark-from-list U1", "codes mark-from-poll --correct 1")
FAULT = "fault add --match 'POST /v1/e/vote'"
GET_STATE = "socket send get state"
REFUSED = [
    *((f"accumulate add {words}", "document") for words in ("", "a b c", "a b --from -", "a 1 x=1", "x=1 a", "b -")),
    *((f"accumulate add x=1 {each} 5", each) for each in ("--user-field", "--skip")),
    *((f"bits validate {words}", "purchase") for words in ("", "t1 --sku hat", "--sku hat", "--user 7", "''")),
    *((f"bits purchase {words}", "purchase") for words in ("", "hat --receipt -")),
    *((f"clock advance -- {each!r}", "duration") for each in ("", "5", "m", "5 s", "-5m", "5m!")),
    ("conform --only Q9", "Q9"),
    ("connect cpp --sign", "cpp"),
    ("datastream send click", "not JSON"),
    ("logs --count 1", "--count"),
    ("logs export --har x --jsonl x", "--jsonl"),
    *((f"ns rm {each!r}", "namespace") for each in ("", "a/v1", "a.b", "a" * 65)),
    *((f"ns fork {names}", "namespace") for names in ("blue a.b", "'' blue")),
    *((f"open {words}", "screen poll") for words in ("requests boss", "polls --present")),
    ("pin request --game --unbound", "--unbound"),
    *((f"rank submit {words}", "--key") for words in ("", "--key x --from -", "color blue")),
    ("rank submit --key x --columns user,key", "--columns"),
    ("serve -p dev", "-p"),
    *((f"serve --port 0 --namespace-idle {each}", "--namespace-idle") for each in ("soon", "10ms", "-1h")),
    *((f"socket {verb} {which}", "--all") for verb in ("close", "stall") for which in ("", "1 --all")),
    *((f"state get channel {words} U7", "users") for words in ("--user", "--users")),
    ("state get viewer --user 1 --users 1,2", "--users"),
    *((f"trivia move q1 {words}", "--winner") for words in ("results", "locked --winner red")),
    *((f"{line} ''", "id is empty") for line in ("vote rm --yes", "vote restart --yes", "rank rm --yes")),
    *((f"{line} ''", "id is empty") for line in ("vote cast --value 1", "rank submit --key a", "json-store get")),
    ("vote edit lunch", "nothing to change"),
    *((f"vote cast {words}", "--from") for words in ("", "--value 3 --from -", "--value 3 --skip 5")),
    ("vote cast --from - --count 3", "--count"),
    *((f"vote define p --{each}-at 90s --{each}-in 90s", f"--{each}-in") for each in ("starts", "ends")),
    *((f"vote get --client-id {each!r}", "client id") for each in ("two words", "umläut")),
    *((f"{line} \udcff", "not UTF-8") for line in ("rank submit --key", "vote get")),
    *((f"{line} /absent/a", "/absent/a") for line in (
        "snapshot load", "snapshot save", "fault load", "seed check", "vote cast --from", "conform --only W3 --junit",
        "codes upload --set A=absent --set",
    )),
    ("EXTCLI_BROADCAST_METHOD=PUT broadcast send round 1", "EXTCLI_BROADCAST_METHOD"),
    ("broadcast send round left", "not JSON"),
    ("broadcast send round 1 --channel 777 --extension-wide", "--extension-wide"),
    *((f"vote rm x --all-channels {words}", "--all-channels") for words in ("--channel 5", "--as broadcaster")),
    *((f"codes upload --set {words}", named) for words, named in (
        ("A", "NAME=FILE"),
        ("=codes", "printable"),
        ("A=codes --set A=codes", "'A'"),
        ("A=- --set B=-", "standard input"),
        ("A=/", "cannot read /"),
        ("A=a --index 3 --index x", "--index"),
        (" --set ".join(f"S{number}=codes" for number in range(11)), "11 sets"),
    )),
    *((f"{mark} {words}", named) for mark in MARKS for words, named in (
        ("", "--prize"),
        ("--prize 10", "index 10"),
        ("--prize 0 --limit x", "--limit"),
        ("--prize 0 --limit -1", "--limit"),
        ("--prize 0 --limit 10=1", "index 10"),
        ("--prize 0 --limit 1=1", "--limit"),
    )),
    *((f"codes mark-from-list {users} --prize 0", "user") for users in ("", "U1 --from -", "''", "U\x07", "--from -")),
    ("EXTCLI_CONFIG=/proc/extcli/config.toml profile add dev --url https://ext.example", "/proc/extcli/"),
    ("EXTCLI_PROFILE=dev vote get", "EXTCLI_PROFILE"),
    ("EXTCLI_TOKEN=abc conform --only A1", "not a JWT"),
    *((f"conform --url http://127.0.0.1:1 {option} /", option)  # it has sent nothing so far
      for option in ("--record", "--junit")),
    *((f"reset --keep {keep}", "--keep") for keep in ("0s", "999ms", "1900ms", "601s")),
    ("vote cast lunch --value 3 --dry-run=wget", "--dry-run"),
    *((f"{line} --dry-run", "--dry-run") for line in ("profile rm dev", "socket repl")),
    *((f"expect {words}", named) for words, named in (
        ("poll --count 0", "count"),
        ("pin lost", "lost"),
        ("state channel --path round", "path"),
        ("poll --since 99999", "since"),
        ("parity stages", "stages"),
    )),
    *((f"{FAULT} {words}", named) for words, named in (
        ("", "effect"),
        ("--status 503 --drop", "--status"),
        ("--drop --retry-after 1", "--retry-after"),
        ("--lose", "--lose"),
        ("--delay 200", "--delay"),
        ("--drop --for long", "--for"),
    )),
    ("fault add --match 'SOCKET *' --close 1005", "--close"),
    *((f"fault add {words}", "--match") for words in ("--drop", "--lose", "'POST /v1/e/vote'")),
    *((f"EXTCLI_PIN_PATH='{path}' pin request", "EXTCLI_PIN_PATH") for path in ("link/pin?x=1", "../vote", "/")),
    *((f"pin {verb} A7K9QF", "command line") for verb in ("login", "validate")),
    *((f"vote list --query {each}", "--query") for each in ("'polls['", "'a b'", "''")),
    (f"{GET_STATE} --data {{bad", "--data"),
    ("""socket send authenticate --no-auth --data '{"client_id": "my-extension", "pin": "A7K9QF"}'""", "histories"),
    *((f"EXTCLI_WS_URL={url} {GET_STATE}", "EXTCLI_WS_URL")
      for url in ("http://h/ws", "ws://", "ws://h:x/", "ws://h/ws?a=1", "ws://h/ws#a", "wss://u:hunter2@host/ws")),
    *((f"state set channel {words}", "JSON") for words in ("{broken", "nothing", "a={broken", "a=1 b")),
    ("state set channel", "object"),
    *((f"{line} tomorrow", "point in time") for line in (
        "clock set", "vote define p --ends-at", "vote logs --since", "accumulate get --start",
        "codes mark-from-poll --correct 1 --prize 0 --cutoff",
    )),
    *((f"{line} {'9' * digits}d", "3652500d") for digits in (9, 320)
      for line in ("vote get --timeout", "clock advance", "vote define p --ends-in")),
    ("token mint", "EXTCLI_SECRET_FILE"),
    ("EXTCLI_SECRET=not/base64!hunter2 vote get", "EXTCLI_SECRET"),
    ("EXTCLI_TOKEN='my-extension hunter2' vote get", "EXTCLI_TOKEN"),
    *((f"{name}=/dev/zero vote get", "/dev/zero") for name in ("EXTCLI_CONFIG", "EXTCLI_SECRET_FILE")),
    *((f"vote get --url '{url}'", "--url") for url in (
        "localhost:8282", "ftp://x", "http://", "http://x:port", "http://[::1", "http://x/?", "http://x#a",
        "http://u:hunter2@x", "http://u:hunter2@host:port", "",
    )),
    ("vote get --url 'http://x\n'", "http://x"),
    *((f"EXTCLI_{name}={value} vote get", f"EXTCLI_{name}") for name, value in (
        ("URL", "nonsense"), ("OUTPUT", "xml"), ("TIMEOUT", "soon"), ("AS", ":U1"), ("AS", "moderator"),
        ("AS", "viewer:"), ("CLIENT_ID", "'two words'"),
    )),
    ("-o tsv vote get", "--output"),
    *((f"{line} --secret x", "--secret") for line in ("vote get", "token mint")),
    ("vote cast --value 1 -o env", "env"),
    *((f"vote cast --value {value}", "--value") for value in ("1.5", "Pizza", "9" * 5000, f"-{NINES}")),
    *((f"user info --as {each}", "--as") for each in ("moderator:U1", "viewer:", "''")),
    *((f"{line} --role moderator", "--role") for line in ("token sandbox", "EXTCLI_SECRET=c2VjcmV0 token mint")),
    *((f"token sandbox {option} ''", option) for option in ("--role", "--user")),
    *((f"user info {option} ''", option) for option in ("--channel", "--client-id")),
    ("user info -p ''", "--profile"),
    *((f"{line} --channel 5", "--channel") for line in (
        "user info --as broadcaster:77", "token sandbox --role broadcaster --user 77", "pin status --as broadcaster:77",
        "broadcast send e 1 --as broadcaster:77",
    )),
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
