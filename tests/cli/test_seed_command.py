"""`extcli seed`: checks a seed, prints an example, and applies a seed whole or not at all."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from support.examples import spread
from support.faulty_seeds import CODES, FAULTY, FILES, HEAD, POLL, REFUSED
from support.records import records
from support.service import CHANNEL


def seed_file(folder: Path, text: str, name: str = "seed.toml") -> str:
    """Write a seed and the files that some seeds name into the working directory."""
    for other, content in FILES.items():
        (folder / other).write_text(content)
    (folder / name).write_text(text)
    return name


def faults(stderr: str) -> list[str]:
    """The lines of an error message that begin with the file, without it."""
    lines = [line.strip() for line in stderr.splitlines()]
    return [line.removeprefix("seed.toml:") for line in lines if line.startswith("seed.toml:")]


@pytest.mark.parametrize("verb", ["check", "apply"])
@pytest.mark.parametrize(("text", "expected"), spread(FAULTY, 6), ids=[found[0] for _, found in FAULTY])
def test_every_fault_is_named_by_line_and_field_and_changes_nothing(extcli, live, folder, verb, text, expected):
    extcli("vote", "cast", "lunch", "--value", "3")
    before = records(live)

    result = extcli("seed", verb, seed_file(folder, text))

    assert (2, expected, "") == (result.exit_code, faults(result.stderr), result.stdout)
    assert before == records(live)


@pytest.mark.parametrize(("text", "expected"), REFUSED, ids=[found[0] for _, found in REFUSED])
def test_a_refusal_of_the_service_is_named_alike_and_changes_nothing(extcli, live, folder, text, expected):
    extcli("vote", "cast", "lunch", "--value", "3")
    before = records(live)

    checked = extcli("seed", "check", seed_file(folder, text))
    result = extcli("seed", "apply", "seed.toml")

    assert (0, 2) == (checked.exit_code, result.exit_code)
    assert expected == faults(result.stderr)
    assert before == records(live)


def test_the_first_line_of_an_error_counts_the_faults(extcli, folder):
    result = extcli("seed", "check", seed_file(folder, CODES + "file = 'codes.txt'"))

    assert "extcli: seed.toml has 2 errors; nothing was changed" == result.stderr.splitlines()[0]


def test_fifty_faults_are_named_and_the_rest_is_counted(extcli, folder):
    votes = "".join(f"U{number} = 100\n" for number in range(60))

    result = extcli("seed", "check", seed_file(folder, f"{POLL}[polls.votes]\n{votes}"), "-o", "json")

    error = json.loads(result.stderr)["error"]
    assert "seed.toml has 60 errors; nothing was changed" == error["what"]
    assert (51, "and 10 more") == (len(error["faults"]), error["faults"][-1])


def test_a_valid_seed_is_reported_as_valid(extcli, folder):
    result = extcli("seed", "check", seed_file(folder, POLL))

    assert (0, "", "seed.toml is valid\n") == (result.exit_code, result.stdout, result.stderr)


def test_a_missing_seed_is_a_usage_error(extcli, folder):
    result = extcli("seed", "check", "seed.toml")

    assert (2, "extcli: cannot read seed.toml\n  No such file or directory\n") == (result.exit_code, result.stderr)


def test_the_example_is_valid_and_can_be_applied_again_and_again(extcli, live, folder):
    seed_file(folder, extcli("seed", "example").stdout)
    assert 0 == extcli("seed", "check", "seed.toml").exit_code

    states = []
    for _ in range(2):
        assert 0 == extcli("seed", "apply", "seed.toml").exit_code
        states.append(records(live))

    assert states[0] == states[1]
    assert [["0", "2"], ["2", "1"]] == extcli("vote", "get", "lunch").rows


def test_apply_prints_how_much_of_each_kind_it_applied(extcli, folder):
    seed_file(folder, POLL + "votes = { U1 = 0, U2 = 1 }")

    assert [["polls", "1"], ["votes", "2"]] == extcli("seed", "apply", "seed.toml").rows


def test_a_seed_can_be_json_from_standard_input(extcli):
    text = json.dumps({"extcli": 1, "polls": [{"id": "lunch", "votes": {"U1": 4}}]})

    assert 0 == extcli("seed", "apply", "-", input=text).exit_code
    assert [["4", "1"]] == extcli("vote", "get", "lunch").rows


def test_a_seed_goes_into_the_namespace_of_the_url(extcli, live, folder):
    seed_file(folder, "extcli = 1\n[[polls]]\nid = 'lunch'\nvotes = { U1 = 4 }")
    blue = f"{live.url}/_ns/blue"

    extcli("seed", "apply", "seed.toml", "--url", blue)

    assert ([], [["4", "1"]]) == (
        extcli("vote", "get", "lunch").rows,
        extcli("vote", "get", "lunch", "--url", blue).rows,
    )
    extcli("ns", "rm", "blue")


def test_variables_are_replaced_in_texts_and_nowhere_else(extcli, folder):
    text = """
        extcli = 1
        channel = "${PLACE}"
        [[json_stores]]
        id = "greeting"
        data = { text = "${WORD}, $${WORD} for $5", "${WORD}" = "${TRAP}" }
    """
    environment = {"PLACE": CHANNEL, "WORD": "hello", "TRAP": "${WORD}"}

    extcli("seed", "apply", seed_file(folder, text), env=environment, exits=0)

    stored = extcli("json-store", "get", "greeting", "--channel", CHANNEL, "-o", "json").json
    assert {"text": "hello, ${WORD} for $5", "${WORD}": "${WORD}"} == stored


def test_a_value_from_the_environment_is_in_no_message(extcli, folder):
    text = "extcli = 1\nclient_id = '${SECRET}'\n[[polls]]\nid = '${SECRET}'"

    result = extcli("seed", "check", seed_file(folder, text), env={"SECRET": "the secret word"})

    assert (2, False) == (result.exit_code, "secret" in result.stderr)


def test_codes_come_from_a_file_beside_the_seed(extcli, folder):
    (folder / "data").mkdir()
    (folder / "data" / "hats.csv").write_text("code;note\nHAT-1;a\nHAT-2;b\n")
    seed_file(folder / "data", CODES + "file = 'hats.csv'\ncolumn = 'code'\nmarked = { U1 = 2 }")

    assert 0 == extcli("seed", "apply", "data/seed.toml").exit_code
    assert ["HAT-1", "HAT-2"] == [extcli("codes", "redeem", "0").stdout.split()[0] for _ in range(2)]


def test_a_refresh_token_is_written_to_a_file_and_not_printed(extcli, folder):
    (folder / "data").mkdir()
    seed_file(folder / "data", HEAD + "[[links]]\nrefresh_token_file = 'game.token'")

    result = extcli("seed", "apply", "data/seed.toml", "-o", "json")

    token = folder / "data" / "game.token"
    assert 0o600 == stat.S_IMODE(token.stat().st_mode)
    assert 3 == len(token.read_text().strip().split("."))
    assert [{"client_id": "my-extension", "channel_id": CHANNEL}] == result.json["links"]


def test_a_token_file_that_cannot_be_written_is_reported(extcli, folder):
    seed_file(folder, HEAD + "[[links]]\nrefresh_token_file = 'missing/game.token'")

    result = extcli("seed", "apply", "seed.toml")

    assert (2, "extcli: cannot write missing/game.token: No such file or directory\n") == (
        result.exit_code,
        result.stderr,
    )
