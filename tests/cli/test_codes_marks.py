"""`extcli codes`: which users get how many codes (rulings C3, C4, C8), where they are masked, and other deployments."""

from __future__ import annotations

import re

import pytest

from extcli.codes.views import mask_code
from support.program import http_response

SECOND = 1_000


@pytest.fixture
def prizes(backend):
    """Upload ten codes at each of the indices 0, 1 and 3."""
    codes = [[f"{name}{number}" for number in range(10)] for name in "ABD"]
    backend.put("codes", json={"codes": codes, "names": ["A", "B", "D"], "indices": [0, 1, 3]}).raise_for_status()


@pytest.fixture
def mark(extcli, prizes):
    return lambda *args, **settings: extcli("codes", *args, **settings)


@pytest.fixture
def eligible(extcli):
    """Return how many codes of each of the sets 0 to 3 a user may redeem."""

    def read(user: str) -> list[int]:
        return [int(count) for _, count in extcli("codes", "eligible", "--as", f"viewer:{user}").rows]

    return read


def test_users_on_the_command_line_are_marked(mark, eligible):
    for newly in (2, 0):
        result = mark("mark-from-list", "U1", "U2", "--prize", "0", "--prize", "3", "--prize", "3", exits=0)
        assert ("", f"2 users sent; {newly} newly marked\n") == (result.stdout, result.stderr)

    assert [[1, 0, 0, 2], [1, 0, 0, 2], [0, 0, 0, 0]] == [eligible(user) for user in ("U1", "U2", "U3")]


@pytest.mark.parametrize(
    ("limits", "granted"),
    [
        ((), [2, 1, 0, 0]),
        (("1",), [1, 1, 0, 0]),
        (("0=1",), [1, 1, 0, 0]),
        (("0=2", "1=0"), [2, 0, 0, 0]),
    ],
)
def test_a_limit_applies_to_every_prize_or_to_one(mark, eligible, limits, granted):
    args = ("--prize", "0", "--prize", "1", "--prize", "0")

    assert 0 == mark("mark-from-list", "U1", *args, *[f"--limit={limit}" for limit in limits]).exit_code

    assert granted == eligible("U1")


# From a poll


def test_the_default_cutoff_is_the_service_s_time(extcli, mark, eligible, live):
    """This machine's time would be a year too early."""
    live.advance(365 * 24 * 3600 * SECOND)
    extcli("codes", "upload", "--set", "Z=-", "--index", "1", input="Z1\n")
    extcli("vote", "cast", "quiz", "--value", "2")

    assert 0 == mark("mark-from-poll", "quiz", "--correct", "2", "--prize", "1").exit_code

    assert 1 == eligible("U1")[1]


@pytest.mark.parametrize(
    ("typed", "unit", "sent"),
    [
        ("1893456060001", (), 1_893_456_061),
        ("2030-01-01T00:01:00.999Z", (), 1_893_456_061),
        ("1893456060", ("--cutoff-unit", "s"), 1_893_456_060),
        ("1893456060001", ("--cutoff-unit", "ms"), 1_893_456_060_001),
        ("1971-01-01T00:00:00Z", ("--cutoff-unit", "ms"), 31_536_000),
    ],
)
def test_a_cutoff_is_sent_in_whole_seconds_rounded_up_or_in_ms(mark, extcli, typed, unit, sent):
    extcli("codes", "upload", "--set", "Z=-", input="Z1\n")
    arguments = ("quiz", "--correct", "2", "--prize", "0", "--cutoff", typed, *unit, "-v")

    assert f'"cutoff_timestamp":{sent}}}' in mark("mark-from-poll", *arguments, exits=0).stderr


# From a file


def test_errors_are_named_by_line_and_no_user_is_marked(mark, eligible, file):
    result = mark("mark-from-list", "--from", file(b"U1\n" + b"x" * 257 + b"\n\xff\n"), "--prize", "0", "-v", exits=2)

    assert ["2", "3"] == re.findall(r"file\.txt:(\d+): ", result.stderr)
    assert ">" not in result.stderr
    assert 0 == eligible("U1")[0]


# `extcli codes redeem` and `redeemed`


CODE = "SECRET-0001-OF-HAT"


@pytest.fixture
def codes(extcli):
    return lambda *args, **settings: extcli("codes", *args, **settings)


@pytest.fixture
def sets(backend):
    """Upload `Hat` at 1 and `Cap` at 4, and let U1 and U2 redeem one hat each."""
    body = {"codes": [[CODE, "SECRET-0002-OF-HAT"], ["C1"]], "names": ["Hat", "Cap"], "indices": [1, 4]}
    backend.put("codes", json=body).raise_for_status()
    grant = {"users": ["U1", "U2"], "prizes": [1], "prize_limits": [0, 1]}
    backend.post("codes/mark_from_list", json=grant).raise_for_status()


@pytest.mark.usefixtures("sets")
def test_a_table_masks_codes_without_reveal(codes):
    for verb, *args in (("redeem", "1"), ("redeemed",)):
        shown = codes(verb, *args, "-o", "table")
        assert "SE" + "•" * 14 + "AT\n" in shown.stdout
        assert CODE not in shown.stdout + shown.stderr

    assert CODE in codes("redeemed", "-o", "table", "--reveal").stdout
    assert "SECRET-0002-OF-HAT\n" == codes("redeem", "1", "-o", "table", "--reveal", "--as", "viewer:U2").stdout


@pytest.mark.usefixtures("sets")
def test_a_terminal_masks_the_code(codes):
    shown = codes("redeem", "1", screen=True, exits=0).stdout

    assert "SE•" in shown
    assert CODE not in shown


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("A", "•"),
        ("AB", "••"),
        ("ABC", "A••"),
        ("ABCDEF", "A••••F"),
        ("ABCDEFGHI", "AB••••••I"),
        ("ABCDEFGHIJKL", "AB••••••••KL"),
        ("A" * 63, "AA" + "•" * 59 + "AA"),
        ("\x1bBC", "\\x1b••"),
    ],
)
def test_a_mask_shows_at_most_a_third_of_a_code(code, shown):
    assert shown == mask_code(code)


# Other deployments


@pytest.mark.parametrize(
    ("args", "body", "exit_code"),
    [
        (("list",), '{"names":null}', 0),
        (("list",), '{"names":["A"]}', 0),
        (("eligible",), '{"eligible":null}', 0),
        (("redeemed",), '{"redeemed":[null]}', 0),
        (("redeem", "0"), '{"code":null,"all_prizes":null}', 7),
        (("redeem", "0", "-o", "json"), "5", 7),
        (("rm", "--yes"), '{"names":[],"distributed":[1,2]}', 0),
        (("mark-from-list", "U1", "U2", "--prize", "0"), "{}", 0),
    ],
)
def test_responses_of_other_deployments_are_read_or_reported(codes, answering, args, body, exit_code):
    token = http_response("200 OK", '{"token":"t.o.k"}')

    result = codes(*args, "--url", answering(token, http_response("200 OK", body), http_response("200 OK", body)))

    assert exit_code == result.exit_code, result.stderr
    assert "Traceback" not in result.stderr
