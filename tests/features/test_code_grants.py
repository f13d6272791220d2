"""Grants of codes: `mark_from_list` and `mark_from_poll` (rulings C3, C4)."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from support.codes import eligible
from support.service import Client


@pytest.fixture(autouse=True)
def sets(backend: Client) -> None:
    """Sets of ten codes at the indices 0, 1 and 4."""
    codes = [[f"{name}{number}" for number in range(10)] for name in "ABE"]
    backend.put("codes", json={"codes": codes, "names": ["A", "B", "E"], "indices": [0, 1, 4]}).raise_for_status()


def from_list(backend: Client, *users: str, prizes: list[int], limits: list[int]) -> httpx.Response:
    return backend.post("codes/mark_from_list", json={"prizes": prizes, "prize_limits": limits, "users": list(users)})


def from_poll(backend: Client, *, poll: str = "", channel: str = "", **body: Any) -> httpx.Response:
    query = {name: value for name, value in (("id", poll), ("channel_id", channel)) if value}
    default = {"prizes": [0], "prize_limits": [1], "correct": 2, "cutoff_timestamp": 4_000_000_000}
    return backend.post("codes/mark_from_poll", params=query, json=default | body)


def marked(answer: httpx.Response) -> int:
    assert (200, {}) == (answer.status_code, answer.json())
    return int(answer.headers["Extcli-Marked"])


def test_a_mark_returns_how_many_distinct_users_it_named(backend: Client, viewer):
    answers = [from_list(backend, "1", "2", "U1", prizes=[0], limits=[1]) for _ in range(2)]
    for user, value in (("1", 2), ("3", 2), ("4", 1)):
        viewer(user).post("vote?id=quiz", json={"value": value})
    answers.append(from_poll(backend, poll="quiz", channel="777"))

    assert [("2", "2"), ("2", "0"), ("2", "1")] == [
        (answer.headers["Extcli-Users"], answer.headers["Extcli-Marked"]) for answer in answers
    ]


def test_a_mark_does_not_count_users_who_had_the_limit_before(backend: Client, viewer):
    counts = [
        marked(from_list(backend, *users, prizes=prizes, limits=limits))
        for users, prizes, limits in (
            ("12", [0, 0], [2]),
            ("123", [0], [2]),  # "1" and "2" have the limit
            ("123", [0], [2]),  # "3" has one of two
            ("123", [0], [2]),
            ("1233", [0], [3]),
            ("14", [0, 1], [3, 1]),  # "1" gains a code of set 1
            ("14", [0, 1], [0, 0]),
        )
    ]

    assert [2, 1, 1, 0, 3, 2, 0] == counts
    assert [3, 1] == eligible(viewer("1"))[:2]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ('{"users":[""],"prizes":[0],"prize_limits":[1]}', "users[0]: "),
        ('{"users":["1"],"prizes":[0,2],"prize_limits":[1]}', "prizes[1]: "),
        ('{"users":["1"],"prizes":[0],"prize_limits":[-1]}', "prize_limits[0]: "),
    ],
)
def test_an_invalid_list_is_refused_by_place_and_grants_nothing(backend: Client, viewer, body: str, field: str):
    answer = backend.post("codes/mark_from_list", content=body)

    assert (400, True) == (answer.status_code, answer.json()["info"].startswith(field))
    assert [0, 0, 0, 0, 0] == eligible(viewer("1"))


@pytest.mark.long
def test_a_list_of_100_000_users_grants_to_each(backend: Client, viewer):
    users = [f"9{number:06}" for number in range(100_000)]

    answer = from_list(backend, *users, prizes=[1], limits=[1, 1])

    assert 200 == answer.status_code
    assert [[0, 1, 0, 0, 0]] * 3 == [eligible(viewer(user)) for user in (users[0], users[50_000], users[-1])]
