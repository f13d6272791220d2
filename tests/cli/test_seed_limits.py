"""The limits that `seed check` knows are those of the service: what one accepts, the other does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from extcli.errors import UsageError
from extcli.seeds import read
from support.service import Client, LiveServer

PLACE = {"extcli": 1, "client_id": "my-extension", "channel": "777"}


def poll(**fields: Any) -> dict[str, Any]:
    return {"polls": [{"id": "lunch", **fields}]}


def text(size: int) -> str:
    """A text whose JSON has `size` bytes."""
    return "x" * (size - 2)


def members(size: int) -> dict[str, str]:
    """An object whose compact JSON has `size` bytes."""
    return {"a": "x" * (size - len('{"a":""}'))}


def codes(**fields: Any) -> dict[str, Any]:
    return {"codes": [{"index": 0, "name": "Hat", "codes": ["A"], **fields}]}


LIMITS: dict[str, tuple[Any, list[Any], list[Any]]] = {
    # Makes a seed from a value, values at the limits, values beyond them
    "the value of a vote": (lambda value: poll(votes={"U1": value}), [-99, 99], [-100, 100]),
    "the id of a poll": (
        lambda id: {"polls": [{"id": id, "votes": {"U1": 1}}]}, ["x" * 64, "global-x"], ["x" * 65, "global-", "é"]
    ),
    "the number of options": (lambda size: poll(options=["x"] * size), [1, 64], [0, 65]),
    "the bytes of an option": (lambda size: poll(options=["é" * (size // 2)]), [128], [130]),
    "the bytes of a prompt": (lambda size: poll(prompt="é" * (size // 2)), [256], [258]),
    "the bytes of user data": (lambda size: poll(user_data=text(size)), [1_024], [1_025]),
    "total votes": (lambda number: poll(total_votes_per_user=number), [1, 1_024], [0, 1_025]),
    "votes per option": (lambda number: poll(votes_per_option=number), [1, 1_024], [0, 1_025]),
    "distinct options": (lambda number: poll(distinct_options_per_user=number), [1, 258], [0, 259]),
    "votes of one user": (
        lambda votes: poll(
            total_votes_per_user=3, votes_per_option=2, distinct_options_per_user=2, votes={"U1": votes}
        ),
        [[0, 0, 1], [0, 1, 0]], [[0, 0, 0], [0, 0, 1, 1], [0, 1, 2]],
    ),
    "the window of a poll": (
        lambda ends_at: poll(starts_at="2026-01-01T00:00:00Z", ends_at=ends_at),
        ["2026-01-01T00:00:00Z"], ["2025-12-31T23:59:59Z"],
    ),
    "the id of a ranking": (
        lambda id: {"rankings": [{"id": id, "answers": {"U1": "a"}}]}, ["é" * 64], ["x" * 65, "\n"]
    ),
    "the bytes of an entry": (
        lambda size: {"buffers": [{"id": "b", "entries": [{"user": "U1", "data": text(size)}]}]}, [255], [256]
    ),
    "the bytes of a store": (
        lambda size: {"stores": [{"store": "channel_state", "data": members(size)}]}, [65_536], [65_537]
    ),
    "the bytes of a JSON store": (lambda size: {"json_stores": [{"id": "j", "data": members(size)}]}, [2_048], [2_049]),
    "the characters of a code": (lambda size: codes(codes=["é" * size]), [1, 63], [0, 64]),
    "the name of a set": (lambda size: codes(name="é" * size), [1, 256], [0, 257]),
    "the index of a set": (lambda index: codes(index=index), [0, 9], [-1, 10]),
    "the codes of a marked user": (lambda number: codes(marked={"U1": number}), [1, 1_000], [0, 1_001]),
    "the name of a marked user": (lambda size: codes(marked={"é" * size: 1}), [1, 256], [0, 257]),
    "the time of the clock": (
        lambda at: {"clock": {"at": at}},
        ["1970-01-01T00:00:00Z", "9999-12-31T23:59:59Z"], ["1969-12-31T23:59:59Z", "9999-12-31T23:59:59-01:00"],
    ),
}  # fmt: skip


def accepted(folder: Path, live: LiveServer, parts: dict[str, Any]) -> tuple[bool, bool]:
    """Whether `seed check` accepts a seed, and whether the service does."""
    document = json.dumps(PLACE | parts)
    path = folder / "seed.json"
    path.write_text(document)
    try:
        read(path, {})
        is_valid = True
    except UsageError:
        is_valid = False
    with Client(base_url=live.url) as client:
        return is_valid, client.put("/_emulator/seed", content=document).status_code == 200


@pytest.mark.parametrize("limit", LIMITS)
def test_the_check_and_the_service_have_the_same_limit(live: LiveServer, tmp_path: Path, limit: str):
    seed_of, inside, beyond = LIMITS[limit]

    assert {(True, True)} == {accepted(tmp_path, live, seed_of(value)) for value in inside}
    assert {(False, False)} == {accepted(tmp_path, live, seed_of(value)) for value in beyond}
