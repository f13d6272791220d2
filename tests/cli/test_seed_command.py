"""`extcli seed`: checks a seed, prints an example, and applies a seed whole or not at all."""

from __future__ import annotations

import json
import re
import stat
from pathlib import Path

import pytest

from cli.faulty_seeds import CODES, FAULTY, FILES, HEAD, POLL, REFUSED
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


def places(stderr: str) -> list[str]:
    """The line, the column and the field of each of these."""
    return [found[0] for line in faults(stderr) if (found := re.match(r"\d+:\d+: (?:[^:\[]|\[[^\]]*\])+", line))]


@pytest.mark.parametrize("verb", ["check", "apply"])
def test_every_fault_is_named_by_line_and_field_and_changes_nothing(extcli, live, folder, verb):
    extcli("vote", "cast", "lunch", "--value", "3")
    before = records(live)

    for text, expected in FAULTY:
        assert expected == places(extcli("seed", verb, seed_file(folder, text), fails=2).stderr)
    assert before == records(live)


def test_a_seed_that_the_service_refuses_is_reported_by_line_and_changes_nothing(extcli, live, folder):
    extcli("vote", "cast", "lunch", "--value", "3")
    before = records(live)

    for text, expected in REFUSED:
        extcli("seed", "check", seed_file(folder, text), exits=0)
        assert expected == places(extcli("seed", "apply", "seed.toml", exits=2).stderr)
    assert before == records(live)


def test_fifty_faults_are_named_and_the_rest_is_counted(extcli, folder):
    votes = "".join(f"U{number} = 100\n" for number in range(60))

    result = extcli("seed", "check", seed_file(folder, f"{POLL}[polls.votes]\n{votes}"), "-o", "json")

    error = json.loads(result.stderr)["error"]
    assert (51, "and 10 more") == (len(error["faults"]), error["faults"][-1])


def test_the_example_is_valid_and_can_be_applied_again_and_again(extcli, live, folder):
    seed_file(folder, extcli("seed", "example").stdout)
    assert 0 == extcli("seed", "check", "seed.toml").exit_code

    states = []
    for _ in range(2):
        assert 0 == extcli("seed", "apply", "seed.toml").exit_code
        states.append(records(live))

    assert states[0] == states[1]
    assert [["0", "2"], ["2", "1"]] == extcli("vote", "get", "lunch").rows


def test_a_seed_goes_into_the_namespace_of_the_url(extcli, live):
    seed = json.dumps({"extcli": 1, "polls": [{"id": "lunch", "votes": {"U1": 4}}]})
    blue = ("--url", f"{live.url}/_ns/blue")

    assert [["polls", "1"], ["votes", "1"]] == extcli("seed", "apply", "-", *blue, input=seed).rows

    assert ([], [["4", "1"]]) == (extcli("vote", "get", "lunch").rows, extcli("vote", "get", "lunch", *blue).rows)


def test_a_value_from_the_environment_is_in_no_message(extcli, folder):
    text = "extcli = 1\nclient_id = '${SECRET}'\n[[polls]]\nid = '${SECRET}'"

    result = extcli("seed", "check", seed_file(folder, text), env={"SECRET": "the secret word"}, exits=2)

    assert "secret" not in result.stderr


def test_codes_come_from_a_file_next_to_the_seed(extcli, folder):
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
    extcli("seed", "apply", seed_file(folder, HEAD + "[[links]]\nrefresh_token_file = 'missing/token'"), exits=2)
