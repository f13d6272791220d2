"""A wrong command line: one form for all commands, which names the option and where to read its usage."""

from __future__ import annotations

import pytest

WRONG = {
    ("votes",): ("no such command 'votes'. Did you mean 'vote', 'contents', 'codes'?", "extcli"),
    ("vote", "cast", "lunch", "3"): ("unexpected argument: 3. Did you mean --value 3?", "extcli vote cast"),
    ("vote", "cast", "--vlaue", "3"): ("no such option: --vlaue (Possible options: --value)", "extcli vote cast"),
    ("logs", "--limit", "x"): ("--limit: 'x' is not a whole number of at least 1", "extcli logs"),
    ("codes", "upload"): ("missing option --set", "extcli codes upload"),
    ("explain", "--timeout"): ("option --timeout requires an argument", ""),
}


@pytest.mark.parametrize("words", WRONG, ids=" ".join)
def test_a_usage_error_names_the_option_and_the_help(extcli, words: tuple[str, ...]):
    what, command = WRONG[words]

    result = extcli(*words, exits=2)

    advice = [f"  `{command} -h` shows the usage"] if command else []
    assert [f"extcli: {what}", *advice] == result.stderr.splitlines()


@pytest.mark.parametrize(
    ("noun", "names"), [("serve", "--port or EXTCLI_SERVE_PORT"), ("exec", "--port")], ids=["serve", "exec"]
)
def test_serve_and_exec_name_the_option_on_one_line_as_in_their_log(extcli, noun: str, names: str):
    result = extcli(noun, "--port", "abc", "--", "true", exits=2)

    assert f"extcli {noun}: {names}: 'abc' is not a whole number from 0 to 65535\n" == result.stderr


def test_a_noun_without_a_verb_prints_its_help(extcli):
    assert extcli("vote", exits=2).stderr.startswith("Usage: extcli vote [OPTIONS] COMMAND")
    assert '"what": "missing command"' in extcli("vote", exits=2, env={"EXTCLI_OUTPUT": "json"}).stderr
