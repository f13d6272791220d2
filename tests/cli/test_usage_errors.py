"""A wrong command line: one form for all commands, which names the option and where to read its usage."""

from __future__ import annotations

import re
import shlex
from itertools import takewhile

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
NO_URL = "is not a URL with http or https"
NO_ROLE = "is not a role\n  use viewer, broadcaster, admin or backend"
NO_TIME = (
    "'tomorrow' is not a point in time\n"
    '  write local time ("2026-11-22 18:00"), RFC 3339 (2026-11-22T18:00:00Z), a duration (5m) or Unix time\n'
)
OF_ANOTHER = "broadcaster 77 does not own channel 5 (--channel)"
NINES = "9" * 20
MARKS = ("codes mark-from-list U1", "codes mark-from-poll --correct 1")
FAULT = "fault add --match 'POST /v1/e/vote'"
GET_STATE = "socket send get state"
NO_PIN = (
    "a PIN cannot be given on the command line\n"
    "  process lists and shell histories show it\n  type it at the prompt, or pipe it in\n"
)
WORDS_OF_A_PIN = """'{"client_id": "my-extension", "pin": "A7K9QF"}'"""
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
    ("accumulate add b '{nonsense'", """JSON such as '{"stars": 5}', or members such as stars=5"""),
    *((f"accumulate add b {document}", "the document is not JSON") for document in ("-", "stars")),
    ("EXTCLI_BROADCAST_METHOD=PUT broadcast send round 1", "EXTCLI_BROADCAST_METHOD"),
    ("broadcast send round left", "DATA is not JSON"),
    ("broadcast send round 1 --channel 777 --extension-wide", "--extension-wide"),
    ("vote cast --from /absent/ballots.csv", "cannot read /absent/ballots.csv"),
    *((f"vote rm x --all-channels {words}", "--all-channels needs the role backend or admin, and no channel")
      for words in ("--channel 5", "--as broadcaster")),
    ("codes check", "missing option --set"),
    ("codes check --set A", "'A' is not NAME=FILE"),
    ("codes check --set =codes", "use 1 to 256 printable characters"),
    ("codes check --set A=codes --set A=codes", "two sets are named 'A'"),
    ("codes check --set A=- --set B=-", "only one set can come from standard input"),
    ("codes check --set A=absent.txt", "cannot read absent.txt"),
    ("codes check --set A=/", "cannot read /"),
    ("codes check" + "".join(f" --set S{number}=codes" for number in range(11)), "11 sets were given"),
    ("codes upload --set A=a --index 3 --index x", "--index: 'x' is not a whole number"),
    *((f"{mark} {words}", reason) for mark in MARKS for words, reason in (
        ("", "--prize"),
        ("--prize x", "--prize"),
        ("--prize 10", "invalid set index 10"),
        ("--prize 0 --limit x", "invalid --limit 'x'"),
        ("--prize 0 --limit -1", "invalid --limit '-1'"),
        ("--prize 0 --limit 10=1", "invalid set index 10"),
        ("--prize 0 --limit 1=1", "set 1 has a --limit but no --prize"),
    )),
    *((f"codes mark-from-list {users} --prize 0", "no users, or two lists of users") for users in ("", "U1 --from -")),
    ("codes mark-from-list '' --prize 0", "user 1: is empty"),
    ("codes mark-from-list U\x07 --prize 0", "user 1: has unprintable characters"),
    ("codes mark-from-list --from - --prize 0", "standard input: has no users"),
    ("config get colour", "one of profile, url, ws_url, client_id"),
    ("EXTCLI_CONFIG=/proc/extcli/config.toml profile add dev --url https://ext.example", "cannot write /proc/extcli/"),
    ("EXTCLI_PROFILE=dev vote get", "no profile 'dev' (EXTCLI_PROFILE)"),
    ("EXTCLI_PROFILE=dev vote get", "create it with `extcli profile add dev --url URL`"),
    ("EXTCLI_TOKEN=abc conform --only A1", "the given token is not a JWT\n  check it with"),
    *((f"conform --url http://127.0.0.1:1 {option} /", f"{option}: cannot write /")  # it has sent nothing so far
      for option in ("--record", "--junit")),
    *((f"reset --keep {keep}", f"--keep: {keep} is not a time of whole seconds from 1s to 10m")
      for keep in ("0s", "999ms", "1900ms", "601s")),
    ("vote cast lunch --value 3 --dry-run=wget", "'wget' (--dry-run) is not a form"),
    ("profile rm dev --dry-run", "--dry-run prints requests, and this command sends none"),
    ("socket repl --dry-run", "--dry-run cannot show a session"),
    *((f"expect {words}", reason) for words, reason in (
        ("poll --count 0", "count: at least 0 is always true; =0 means exactly 0"),
        ("poll --value 3", "value: '3' is not VALUE=COUNT"),
        ("pin lost", "id: 'lost' is not one of issued, used, revoked"),
        ("state channel --path round", "path: 'round' is not a JSON pointer"),
        ("state channel --equals {", "the value of --equals is not JSON"),
        ("sockets chat", "id: 'chat' is not one of connected, poll:NAME"),
        ("poll --since 99999", "since: 99999 is after the latest mark"),
    )),
    *((f"{FAULT} {words}", reason) for words, reason in (
        ("", "give one effect: --status, --delay, --drop, --reset, --truncate, --stall, --close, --lose, --double or"),
        ("--status 503 --drop", "--drop: a fault has one effect, and --status is also given"),
        ("--drop --retry-after 1", "--retry-after: is for --status only"),
        ("--drop --seed 1", "--seed: is for --share, or a range of --delay, only"),
        ("--lose", "--lose: does not act on requests; use --status, --delay, --drop, --reset, --truncate or --"),
        ("--delay 200", "--delay: '200' is not a duration; write it like 500ms"),
        ("--delay 2s..1s", "--delay: '2s..1s' is not a delay"),
        ("--drop --for long", "--for: 'long' is not a duration"),
        ("--drop --share half", "--share: 'half' is not a share from 0% to 100%"),
        ("--status x", "--status: 'x' is not a whole number"),
    )),
    ("fault add --match 'SOCKET *' --close 1005", "--close: 1005 may not be sent; use 1000 to 1003, 1007 to 1014, "),
    ("fault add --match 'SOCKET connect' --drop --role viewer",
     "--role: must be absent: handshakes have only the conditions --client-id"),
    ("fault add --drop", "give --match, such as 'POST /v1/e/vote'"),
    ("fault add --lose", "give --match, such as 'BROADCAST *', or --event for the broadcasts of an event"),
    ("fault add 'POST /v1/e/vote'", ": POST /v1/e/vote. Did you mean --match 'POST /v1/e/vote'?\n"),
    ("open poll", "NAME is missing: the id of the poll"),
    *((f"EXTCLI_PIN_PATH='{path}' pin request", "EXTCLI_PIN_PATH")
      for path in ("link/pin?x=1", "../vote", "http://x/pin", "link//pin", "link pin", "/")),
    *((f"pin {verb} A7K9QF", NO_PIN) for verb in ("login", "validate")),
    ("vote list --query 'polls['", "not JMESPath at character 7"),
    ("vote list --query 'a b'", "not JMESPath at character 3"),
    ("vote list --query ''", "cannot be empty"),
    ("rank submit color blue", ": blue. Did you mean --key blue?\n"),
    ("rank submit color -5", ": -5 (Possible options: --key -5)\n"),
    (f"{GET_STATE} --data {{bad", "--data is not JSON"),
    (f"socket send authenticate --no-auth --data {WORDS_OF_A_PIN}", "process lists and shell histories show them"),
    *((f"EXTCLI_WS_URL={url} {GET_STATE}", "(EXTCLI_WS_URL) is not a URL with ws or wss\n  write it like ws://")
      for url in ("http://h/ws", "nonsense", "ws://", "ws://h:x/")),
    *((f"EXTCLI_WS_URL=ws://h/ws{more} {GET_STATE}", "(EXTCLI_WS_URL) has a query or fragment")
      for more in ("?a=1", "#a")),
    (f"EXTCLI_WS_URL=wss://somebody:hunter2@host/ws {GET_STATE}", "EXTCLI_WS_URL"),
    ("state set channel", "the object is missing"),
    *((f"state set channel {words}", "the object is not JSON") for words in ("{broken", "nothing")),
    ("state set channel a={broken", "the value of a is not JSON"),
    ("state set channel a=1 b", "'b' is not a KEY=JSON pair"),
    *((f"{line} tomorrow", NO_TIME) for line in (
        "clock set", "vote define p --ends-at", "vote logs --since", "accumulate get --start",
        "codes mark-from-poll --correct 1 --prize 0 --cutoff",
    )),
    *((f"{line} {'9' * digits}d", "is longer than 3652500d, ten thousand years") for digits in (9, 300, 320)
      for line in ("vote get --timeout", "clock advance", "vote define p --ends-in")),
    ("token mint", "set EXTCLI_SECRET, or name its file in EXTCLI_SECRET_FILE"),
    ("EXTCLI_SECRET=not/base64!hunter2 vote get", "EXTCLI_SECRET is not base64"),
    ("EXTCLI_TOKEN='my-extension hunter2' vote get", "EXTCLI_TOKEN"),
    ("EXTCLI_CONFIG=/dev/zero vote get", "cannot read /dev/zero"),
    ("EXTCLI_SECRET_FILE=/dev/zero vote get", "cannot read /dev/zero"),
    *((f"vote get --url '{url}'", f"'{url}' (--url) {NO_URL}")
      for url in ("localhost:8282", "ftp://x", "http://", "http://x:port", "http://[::1")),
    *((f"vote get --url '{url}'", f"'{url}' (--url) has a query or fragment")
      for url in ("http://x/?a=1", "http://x/?", "http://x/#", "http://x#a")),
    ("vote get --url http://u:hunter2@x", "the URL in --url contains a user name or password"),
    ("vote get --url http://u:hunter2@host:port", f"its value (--url) {NO_URL}"),
    ("vote get --url 'http://x\n'", "cannot build this request to http://x\n"),
    ("EXTCLI_URL=nonsense vote get", "'nonsense' (EXTCLI_URL) is not a URL"),
    ("EXTCLI_OUTPUT=xml vote get", "'xml' (EXTCLI_OUTPUT) is not an output format"),
    ("EXTCLI_TIMEOUT=soon vote get", "EXTCLI_TIMEOUT"),
    ("EXTCLI_AS=:U1 vote get", "EXTCLI_AS"),
    ("EXTCLI_CLIENT_ID='two words' vote get", "EXTCLI_CLIENT_ID"),
    ("-o tsv vote get", "'tsv' (--output) is not an output format\n  use table, plain (tab-separated), json"),
    ("vote cast --value 1 -o env", "this command has no output format env"),
    ("vote cast --value 1.5", "--value: '1.5' is not a whole number"),
    ("vote cast lunch --value Pizza", "--value: 'Pizza' is not a whole number\n  a vote is a number from -99 to 99; "
     "the options of a poll have the numbers from 0\n  `extcli vote config lunch` lists its options\n"),
    (f"vote cast --value {'9' * 5000}", f"--value: '{'9' * 39}…' has too many digits"),
    (f"vote cast --value -{NINES}", f"--value: '-{NINES}' has too many digits"),
    ("vote cast --concurrency 0", "--concurrency: '0' is not a whole number from 1 to 1024"),
    ("vote cast lunch -3", ": -3 (Possible options: --value -3)\n"),
    ("vote get lunch 3", ": 3\n"),
    ("vote logs --limit -3", "--limit: '-3' is not a whole number of at least 0"),
    *((line, "no such option: -n (Possible options: --limit)\n") for line in ("logs -n 5", "clock next -n 5")),
    ("logs --tail=5", "no such option: --tail (Possible options: --limit)\n"),
    ("user info --as moderator:U1", f"'moderator' (--as) {NO_ROLE}"),
    ("EXTCLI_AS=moderator user info", f"'moderator' (EXTCLI_AS) {NO_ROLE}"),
    *((f"{line} --role moderator", f"'moderator' (--role) {NO_ROLE}")
      for line in ("token sandbox", "EXTCLI_SECRET=c2VjcmV0 token mint")),
    ("EXTCLI_AS=viewer: user info", "'viewer:' (EXTCLI_AS) names no user"),
    ("user info --as viewer:", "'viewer:' (--as) names no user"),
    ("user info --as ''", f"'' (--as) {NO_ROLE}"),
    ("token sandbox --role ''", f"'' (--role) {NO_ROLE}"),
    ("token sandbox --user ''", "'viewer:' (--user) names no user"),
    *((f"user info {option} ''", f"{option} is empty") for option in ("--channel", "--client-id")),
    ("user info --url ''", f"'' (--url) {NO_URL}"),
    ("user info -p ''", "no profile '' (--profile)"),
    *((f"{line} --channel 5", OF_ANOTHER) for line in (
        "user info --as broadcaster:77", "token sandbox --role broadcaster --user 77", "pin revoke --as broadcaster:77",
        "broadcast send e 1 --as broadcaster:77",
    )),
]  # fmt: skip
"""Command lines that cannot be meant, with variables in front, and a part of what is said about each."""


@pytest.mark.parametrize(("line", "reason"), REFUSED, ids=[ascii(line)[:80] for line, _ in REFUSED])
def test_a_command_line_that_cannot_be_meant_is_refused_before_a_write(extcli, line: str, reason: str):
    words = shlex.split(line)
    variables = dict(word.split("=", 1) for word in takewhile(re.compile("[A-Z_]+=").match, words))
    shown = () if "serve" in words else ("-v",)

    result = extcli(*shown, *words[len(variables) :], env=variables, fails=2)

    assert re.search(r"^extcli( serve)?: ", result.stderr, re.MULTILINE)
    assert reason in result.stderr
    assert not re.search("^> ((?!GET)[A-Z]+ |CONNECT)", result.stderr, re.MULTILINE)
    assert not {"hunter2", "A7K9QF"} & set(re.findall(r"\w+", result.stderr)), "secrets are not quoted"


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
