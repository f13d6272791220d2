"""Limits, errors and atomicity of `PUT codes` (Game codes, Limits, ruling C2)."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from emulator.config.settings import Limits, Settings
from support.service import Client, LiveServer, live_server


def errors(backend: Client, **body: Any) -> list[str]:
    answer = backend.put("codes", json=body)
    assert 400 == answer.status_code, answer.text
    return [error["detail"] for error in answer.json()["errors"]]


@pytest.fixture
def hat(backend: Client) -> None:
    """An existing set."""
    backend.put("codes", json={"codes": [["OLD"]], "names": ["Hat"]}).raise_for_status()


def names(backend: Client) -> list[str]:
    return list(backend.get("codes").json()["names"])


@pytest.mark.parametrize(
    ("code", "rule"),
    [
        ("x" * 64, "has 64 characters; a code has 1 to 63"),
        ("", "has 0 characters; a code has 1 to 63"),
        (7, "must be a string"),
        (None, "must be a string"),
        (True, "must be a string"),
        ("a\nb", "has characters that cannot be printed"),
        ("a\x00", "has characters that cannot be printed"),
    ],
)
@pytest.mark.ruling("C7")
@pytest.mark.usefixtures("hat")
def test_an_error_names_set_position_and_rule_and_nothing_changes(backend: Client, code: object, rule: str):
    found = errors(backend, codes=[["fine"], ["fine", "fine too", code]], names=["Cap", "Sword"])

    assert [f"codes[1][2]: {rule}"] == found
    assert ["Hat"] == names(backend)


def test_the_first_20_errors_are_listed(backend: Client):
    found = errors(backend, codes=[[""] * 15, ["ok", *[7] * 50]], names=["A", "B"])

    assert 20 == len(found)
    assert "codes[0][0]: has 0 characters; a code has 1 to 63" == found[0]
    assert "codes[1][5]: must be a string" == found[-1]


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"codes": [["a"]], "names": []}, "names: 0 given for 1 sets"),
        ({"codes": [["a"]], "names": ["A", "B"]}, "names: 2 given for 1 sets"),
        ({"codes": [["a"], ["b"]], "names": ["A", "A"]}, "names: must be unique"),
        ({"codes": [["a"]], "names": [""]}, "names[0]: must be 1 to 256 printable characters"),
        ({"codes": [["a"]], "names": ["A"], "indices": [10]}, "indices[0]: 10 is not within 0 to 9"),
        ({"codes": [["a"]], "names": ["A"], "indices": [-1]}, "indices[0]: -1 is not within 0 to 9"),
        ({"codes": [["a"], ["b"]], "names": ["A", "B"], "indices": [1, 1]}, "indices: must be unique"),
        ({"codes": [["a"], ["b"]], "names": ["A", "B"], "indices": [1]}, "indices: 1 given for 2 sets"),
        ({"codes": [], "names": []}, "codes: 0 sets given; must be 1 to 10"),
    ],
)
@pytest.mark.usefixtures("hat")
def test_names_and_indices_match_the_sets_and_are_unique(backend: Client, body: dict[str, Any], error: str):
    assert error in errors(backend, **body)
    assert ["Hat"] == names(backend)


@pytest.mark.usefixtures("hat")
@pytest.mark.ruling("C2")
def test_a_name_is_unique_among_all_active_sets(backend: Client):
    found = errors(backend, codes=[["a"]], names=["Hat"], indices=[3])

    assert ["names[0]: the code set at index 0 has this name"] == found
    assert [0] == backend.get("codes").json()["indices"]


@pytest.mark.usefixtures("hat")
def test_sets_may_swap_their_names(backend: Client):
    backend.put("codes", json={"codes": [["x"]], "names": ["Cap"], "indices": [1]}).raise_for_status()

    answer = backend.put("codes", json={"codes": [["y"], ["z"]], "names": ["Cap", "Hat"]})

    assert (200, ["Cap", "Hat"]) == (answer.status_code, names(backend))


@pytest.mark.parametrize(
    "body",
    [
        '{"codes":[[["a"]]],"names":["A"]}',
        '{"codes":[["a\\ud800"]],"names":["A"]}',
        '{"codes":[["a"]],"names":["A"],"x":NaN}',
    ],
    ids=["list", "half of a surrogate pair", "NaN"],
)
@pytest.mark.usefixtures("hat")
def test_what_is_no_text_or_no_json_is_refused_and_changes_nothing(backend: Client, body: str):
    answer = backend.put("codes", content=body)

    assert 400 == answer.status_code
    assert ["Hat"] == names(backend)


def test_no_error_quotes_the_body(backend: Client):
    answer = backend.put("codes", content='{"codes":[["SECRET-1","SECRET-2\xff')

    assert (400, False) == (answer.status_code, "SECRET" in answer.text)


def test_members_may_come_in_any_order_and_unknown_ones_are_ignored(backend: Client):
    body = '{"x":{"codes":[["no"]]},"indices":[3],"names":["Hat"],"codes":[["A1"]],"y":[[1,[2]],null]}'

    answer = backend.put("codes", content=body)

    assert (200, [3]) == (answer.status_code, backend.get("codes").json()["indices"])


def test_the_last_of_duplicate_codes_members_counts(backend: Client, viewer):
    backend.put("codes", content='{"codes":[["A1",""],["B1"]],"names":["Hat"],"codes":[["Z1"]]}').raise_for_status()
    backend.post("codes/mark_from_list", json={"prizes": [0], "prize_limits": [1], "users": ["5551"]})

    assert "Z1" == viewer().post("codes/redeem", json={"prize": 0}).json()["code"]


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        ([["A", "B", "A"]], ["codes[0][0] and codes[0][2]: are the same code"]),
        ([["x", "A"], ["B"], ["C", "B", "A"]], ["codes[1][0] and codes[2][1]", "codes[0][1] and codes[2][2]"]),
        ([["A", "A", "A"]], ["codes[0][0] and codes[0][1]", "codes[0][0] and codes[0][2]"]),
        ([[], ["ü"], ["", "ü"]], ["codes[2][0]: has 0 characters"]),
        ([["A"] * 30], [f"codes[0][0] and codes[0][{number}]" for number in range(1, 21)]),
    ],
)
@pytest.mark.ruling("C2")
@pytest.mark.usefixtures("hat")
def test_a_code_that_stands_twice_is_refused_with_both_places(
    backend: Client, codes: list[list[str]], expected: list[str]
):
    found = errors(backend, codes=codes, names=[f"S{number}" for number, _ in enumerate(codes)])

    assert len(expected) == len(found)
    assert all(error.startswith(start) for error, start in zip(found, expected, strict=True))
    assert ["Hat"] == names(backend)


@pytest.mark.ruling("C2")
def test_codes_that_differ_in_case_spaces_or_unicode_form_are_different(backend: Client):
    body = {"codes": [["a", "A", "a ", " a"], ["\u00e9", "e\u0301", "\U0001f381" * 63]], "names": ["A", "B"]}

    assert 200 == backend.put("codes", json=body).status_code


def test_codes_of_a_repeated_member_are_not_duplicates(backend: Client):
    answer = backend.put("codes", content='{"codes":[["A1"],["B1"]],"names":["Hat"],"codes":[["A1"]]}')

    assert 200 == answer.status_code


@pytest.mark.slow
@pytest.mark.ruling("C2")
def test_a_duplicate_among_a_million_codes_is_found(backend: Client):
    sets = [[f"{first}{number:06}" for number in range(500_000)] for first in "AB"]
    sets[1][-1] = sets[0][17]

    found = errors(backend, codes=sets, names=["A", "B"])

    assert ["codes[0][17] and codes[1][499999]: are the same code"] == found


def test_a_code_is_refused_as_soon_as_it_is_too_long(live: LiveServer, backend: Client):
    """The response comes although most of the body is missing."""
    with live.connect() as connection:
        head = f"PUT /v1/e/codes HTTP/1.1\r\nHost: x\r\nAuthorization: {backend.headers['Authorization']}\r\n"
        part = b'{"codes":[["A1"],["B1","' + b"x" * 200_000
        connection.sendall(f"{head}Content-Length: 60000000\r\n\r\n".encode() + part)
        answer = connection.recv(65_536)

    assert b" 400 " in answer.splitlines()[0]
    assert b"codes[1][1]: has more than 63 characters" in answer


def test_a_body_over_the_limit_is_refused(backend: Client):
    with live_server(Settings(limits=Limits(codes=1_000))) as live:
        answer = live.client("backend").put("codes", json={"codes": [["x" * 60] * 20], "names": ["A"]})

    assert 413 == answer.status_code


def test_an_aborted_upload_changes_nothing(live: LiveServer, backend: Client, viewer):
    backend.put("codes", json={"codes": [["OLD"]], "names": ["Hat"]}).raise_for_status()
    with live.connect() as connection:
        head = f"PUT /v1/e/codes HTTP/1.1\r\nHost: x\r\nAuthorization: {backend.headers['Authorization']}\r\n"
        part = json.dumps({"codes": [[f"N{number}" for number in range(20_000)]], "names": ["New"]}).encode()
        connection.sendall(f"{head}Content-Length: {len(part)}\r\n\r\n".encode() + part[: len(part) // 2])

    backend.post("codes/mark_from_list", json={"prizes": [0], "prize_limits": [1], "users": ["5551"]})

    assert (["Hat"], "OLD") == (names(backend), viewer().post("codes/redeem", json={"prize": 0}).json()["code"])


def test_a_compressed_body_is_refused(backend: Client):
    answer = backend.put("codes", content=gzip.compress(b'{"codes":[["a"]],"names":["A"]}'))

    assert 400 == answer.status_code


def test_a_chunked_body_is_accepted(backend: Client):
    pieces = [b'{"codes":[["A', b'1"],["B1"]],"na', b'mes":["Hat","Cap"]}']

    answer = backend.put("codes", content=iter(pieces))

    assert (200, ["Hat", "Cap"]) == (answer.status_code, names(backend))
