"""A wrong command line: one form for all commands, which names the option and where to read its usage."""

from __future__ import annotations

import re
import shlex

import pytest

WRONG = {
    ("votes",): ("no such command 'votes'. Did you mean 'vote', 'contents', 'codes'?", "extcli"),
    ("token", "sign"): ("no such command 'sign'. Commands: mint, sandbox, inspect", "extcli token"),
    ("token", "mnt"): ("no such command 'mnt'. Did you mean 'mint'?", "extcli token"),
    ("vote", "cast", "lunch", "3"): ("unexpected argument: 3. Did you mean --value 3?", "extcli vote cast"),
    ("vote", "cast", "--vlaue", "3"): ("no such option: --vlaue (Possible options: --value)", "extcli vote cast"),
    ("logs", "--limit", "x"): ("--limit: 'x' is not a whole number of at least 1", "extcli logs"),
    ("codes", "upload"): ("missing option --set", "extcli codes upload"),
    ("explain", "--timeout"): ("option --timeout requires an argument", ""),
    ("state", "get", "chanel"): (
        "SCOPE: 'chanel' is not one of extension, channel, viewer, extension-viewer, hidden",
        "extcli state get",
    ),
    ("trivia", "move", "q1", "open"): (
        "STATE: 'open' is not one of inactive, unlocked, locked, results",
        "extcli trivia move",
    ),
}


@pytest.mark.parametrize("words", WRONG, ids=" ".join)
def test_a_usage_error_names_the_option_and_the_help(extcli, words: tuple[str, ...]):
    what, command = WRONG[words]

    result = extcli(*words, exits=2)

    advice = [f"  `{command} -h` shows the usage"] if command else []
    assert [f"extcli: {what}", *advice] == result.stderr.splitlines()


DOCUMENT = "no document, or several"
PURCHASE = "no purchase, or two"
ONE_SOCKET = "give the number of one socket, or --all"
FOR_A_POLL = "NAME and --present need the screen poll"
ANSWER = "give either --key TEXT or --from FILE"
VOTE = "give either --value N or --from FILE"
WINNER = "the state `results` needs --winner OPTION; other states do not take it"
REFUSED = [
    ("accumulate add", DOCUMENT),
    ("accumulate add a b c", DOCUMENT),
    ("accumulate add a b --from -", DOCUMENT),
    ("accumulate add a 1 x=1", DOCUMENT),
    ("accumulate add x=1 a", "the document is not JSON"),
    *((f"accumulate add x=1 {each} 5", f"{each} requires --from") for each in ("--user-field", "--skip")),
    ("bits validate", PURCHASE),
    ("bits validate t1 --sku hat", PURCHASE),
    ("bits validate --sku hat", PURCHASE),
    ("bits validate --user 7", PURCHASE),
    ("bits validate ''", "the purchase's id is empty"),
    ("bits validate --sku '' --user 7", "--sku is empty"),
    ("bits validate --sku hat --user ''", "--user is empty"),
    ("bits purchase", PURCHASE),
    ("bits purchase hat --receipt -", PURCHASE),
    *((f"clock advance -- {each!r}", f"{each!r} is not a duration") for each in ("", "5", "m", "5 s", "-5m", "5m!")),
    ("conform --only Q9", "no rule is named 'Q9'"),
    ("connect fortran", "CLIENT: 'fortran' is not one of js, node, cpp, "),
    ("connect cpp --sign", "there is no code that signs a token for cpp"),
    ("connect python", "`connect python` needs --sign"),
    ("contents cats", "KIND: 'cats' is not one of polls, rankings, "),
    ("datastream send click", "the event is not JSON"),
    ("doctor --url ftp://127.0.0.1", "'ftp://127.0.0.1' (--url) is not a URL with http or https"),
    ("expect parity stages", "there is no rule 'stages'"),
    ("logs --count 1", "--count needs -f"),
    ("logs export", "nothing to write"),
    ("logs export --har x --jsonl x", "--har and --jsonl name the same file"),
    *((f"ns rm {each!r}", f"{each!r} is not a namespace") for each in ("", "a/v1", "a.b", "a" * 65)),
    *((f"ns fork {names}", "is not a namespace") for names in ("blue a.b", "a.b blue", "'' blue", "blue ''")),
    ("open requets", "did you mean requests?"),
    *((f"open {words}", FOR_A_POLL) for words in ("requests boss", "polls --present", "--present")),
    ("pin request --game --unbound", "--game and --unbound exclude each other"),
    ("policies Q9", "no ruling has the id 'Q9'"),
    ("rank submit", ANSWER),
    ("rank submit --key x --from -", ANSWER),
    ("rank submit --key x --columns user,key", "--columns requires --from"),
    ("serve -p dev", "no such option: -p"),
    *((f"serve --port 0 --namespace-idle {each}", "--namespace-idle: ") for each in ("soon", "10ms", "-1h")),
    *((f"socket {verb} {which}", ONE_SOCKET) for verb in ("close", "stall") for which in ("", "1 --all")),
    ("state get channel --user U7", "the store channel has no users"),
    ("state get channel --users U7", "the store channel has no users"),
    ("state get viewer --user 1 --users 1,2", "--user and --users exclude each other"),
    ("trivia move q1 results", WINNER),
    ("trivia move q1 locked --winner red", WINNER),
    *((f"{line} ''", "the id is empty") for line in ("vote rm --yes", "vote restart --yes", "rank rm --yes")),
    *((f"{line} ''", "the id is empty") for line in ("vote cast --value 1", "rank submit --key a", "json-store get")),
    ("accumulate add '' 1", "the id is empty"),
    ("vote edit lunch", "nothing to change"),
    ("vote cast", VOTE),
    ("vote cast --value 3 --from -", VOTE),
    ("vote cast --from - --count 3", "--count and --from exclude each other"),
    ("vote cast --value 3 --skip 5", "--skip requires --from"),
    ("vote define p --starts-at 90s --starts-in 90s", "--starts-at and --starts-in exclude each other"),
    ("vote define p --ends-at 90s --ends-in 90s", "--ends-at and --ends-in exclude each other"),
    *((f"vote get --client-id {each!r}", "is not a valid client id") for each in ("two words", "umläut")),
    ("vote get --client-id 'line\nbreak'", "is not a valid client id"),
    ("rank submit --key \udcff", "an argument is not UTF-8 text"),
    ("vote get \udcff", "an argument is not UTF-8 text"),
    ("snapshot load /absent/a.json", "cannot read /absent/a.json: No such file or directory"),
    ("snapshot show /absent/a.json", "cannot read /absent/a.json: No such file or directory"),
    ("snapshot save /absent/a.json", "cannot write /absent/a.json: No such file or directory"),
    ("fault load /absent/a.toml", "cannot read /absent/a.toml\n  No such file or directory\n"),
    ("seed check /absent/a.toml", "cannot read /absent/a.toml\n  No such file or directory\n"),
    ("conform --only W3 --junit /absent/a.xml", "cannot write /absent/a.xml"),
    ("conform --only W3 --record /absent/a.json", "cannot write /absent/a.json"),
]
"""Command lines that cannot be meant, and a part of what is said about each."""


@pytest.mark.parametrize(("line", "reason"), REFUSED, ids=[ascii(line) for line, _ in REFUSED])
def test_a_command_line_that_cannot_be_meant_is_refused(extcli, line: str, reason: str):
    result = extcli(*shlex.split(line), exits=2)

    assert re.match(r"extcli( serve)?: ", result.stderr)
    assert reason in result.stderr


@pytest.mark.parametrize(
    ("noun", "names"), [("serve", "--port or EXTCLI_SERVE_PORT"), ("exec", "--port")], ids=["serve", "exec"]
)
def test_serve_and_exec_name_the_option_on_one_line_as_in_their_log(extcli, noun: str, names: str):
    result = extcli(noun, "--port", "abc", "--", "true", exits=2)

    assert f"extcli {noun}: {names}: 'abc' is not a whole number from 0 to 65535\n" == result.stderr


@pytest.mark.parametrize("words", [("-o", "json"), ("-ojson",), ("--output=json",)])
def test_words_after_two_dashes_do_not_choose_the_format_of_errors(extcli, words: tuple[str, ...]):
    after = extcli("vote", "get", "--bogus", "--", *words, exits=2)
    before = extcli("vote", "get", "--bogus", *words, exits=2)

    assert ("extcli: ", "{") == (after.stderr[:8], before.stderr[:1])


def test_a_noun_without_a_verb_prints_its_help(extcli):
    assert extcli("vote", exits=2).stderr.startswith("Usage: extcli vote [OPTIONS] COMMAND")
    assert '"what": "missing command"' in extcli("vote", exits=2, env={"EXTCLI_OUTPUT": "json"}).stderr
