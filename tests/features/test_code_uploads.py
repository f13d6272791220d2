"""Limits, errors and atomicity of `PUT codes` (Game codes, Limits; rulings C2, C7)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from emulator.core.settings import Limits, Settings
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


@pytest.mark.parametrize("code", ["x" * 64, "", 7, None, True, "a\nb", "a\x00"])
@pytest.mark.usefixtures("hat")
def test_an_error_names_set_and_position_and_nothing_changes(backend: Client, code: object):
    found = errors(backend, codes=[["fine"], ["fine", "fine too", code]], names=["Cap", "Sword"])

    assert ["codes[1][2]"] == [each.partition(": ")[0] for each in found]
    assert ["Hat"] == names(backend)


def test_members_come_in_any_order_and_pieces_and_the_last_of_repeated_ones_counts(backend: Client, viewer):
    pieces = [b'{"x":{"codes":[["no"]]},"codes":[["A', b'1",""],["B1"]],"indices":[3],"na', b'mes":["Hat"],']

    backend.put("codes", content=iter([*pieces, b'"codes":[["A1"]],"y":[[1,[2]],null]}'])).raise_for_status()

    assert ([3], [1]) == tuple(backend.get("codes").json()[name] for name in ("indices", "left"))


def test_no_error_quotes_the_body(backend: Client):
    answer = backend.put("codes", content='{"codes":[["SECRET-1","SECRET-2\xff')

    assert (400, False) == (answer.status_code, "SECRET" in answer.text)


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        ([["x", "A"], ["B"], ["C", "B", "A"]], ["codes[1][0] and codes[2][1]", "codes[0][1] and codes[2][2]"]),
        ([["A", "A", "A"]], ["codes[0][0] and codes[0][1]", "codes[0][0] and codes[0][2]"]),
        ([[], ["ü"], ["", "ü"]], ["codes[2][0]"]),
        ([["A"] * 30], [f"codes[0][0] and codes[0][{number}]" for number in range(1, 21)]),
    ],
)
@pytest.mark.usefixtures("hat")
def test_a_code_that_stands_twice_is_refused_with_both_places(
    backend: Client, codes: list[list[str]], expected: list[str]
):
    found = errors(backend, codes=codes, names=[f"S{number}" for number, _ in enumerate(codes)])

    assert expected == [each.partition(": ")[0] for each in found]
    assert ["Hat"] == names(backend)


def test_codes_that_differ_in_case_spaces_or_unicode_form_are_different(backend: Client):
    body = {"codes": [["a", "A", "a ", " a"], ["\u00e9", "e\u0301", "\U0001f381" * 63]], "names": ["A", "B"]}

    assert 200 == backend.put("codes", json=body).status_code


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
