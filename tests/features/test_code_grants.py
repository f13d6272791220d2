"""Grants of codes: `mark_from_list` and `mark_from_poll` (rulings C3, C4)."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from support.codes import eligible
from support.service import Client, LiveServer


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


def test_a_mark_returns_how_many_distinct_users_it_marked(backend: Client):
    everyone = [f"{number}" for number in range(2_500)]

    assert 2 == marked(from_list(backend, "1", "2", "1", prizes=[0], limits=[1]))
    assert 2_498 == marked(from_list(backend, *everyone, *everyone, prizes=[0], limits=[1]))
    assert 0 == marked(from_list(backend, prizes=[0], limits=[1]))


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


def test_only_the_last_of_duplicate_lists_of_users_is_counted(backend: Client):
    body = '{"users":["1","2"],"prizes":[0],"prize_limits":[1],"users":["2","3","4"]}'

    assert 3 == marked(backend.post("codes/mark_from_list", content=body))


def test_the_openapi_document_describes_the_header_of_a_mark(live: LiveServer):
    paths = httpx.get(f"{live.url}/schema/openapi.json").json()["paths"]

    for name in ("mark_from_list", "mark_from_poll"):
        headers = paths[f"/v1/e/codes/{name}"]["post"]["responses"]["200"]["headers"]
        assert "integer" == headers["Extcli-Marked"]["schema"]["type"]


@pytest.mark.parametrize(
    ("prizes", "limits", "granted"),
    [
        ([4, 4], [1, 1, 1, 1, 2], 2),  # the entry at the index of the set
        ([4, 4], [1], 1),  # the array is shorter: the entry parallel to `prizes`
        ([0, 4, 4], [1, 2], 2),
        ([0, 4, 4], [5], 1),  # no such entry: 1
        ([4, 4], [], 1),
        ([4], [9, 9, 9, 9, 0], 0),
        ([4], [1, 0, 0, 0], 1),  # the array ends right before the set
    ],
)
@pytest.mark.ruling("C3")
def test_a_prize_limit_is_found_by_index_then_by_prize_and_defaults_to_1(
    backend: Client, viewer, prizes: list[int], limits: list[int], granted: int
):
    from_list(backend, "5551", prizes=prizes, limits=limits)

    assert granted == eligible(viewer())[4]


@pytest.mark.parametrize(
    "body",
    ['{"users":[""],"prizes":[0],"prize_limits":[1]}', '{"users":["1"],"prizes":[0],"prize_limits":[-1]}'],
)
def test_an_invalid_list_is_refused_and_grants_nothing(backend: Client, viewer, body: str):
    answer = backend.post("codes/mark_from_list", content=body)

    assert 400 == answer.status_code
    assert [0, 0, 0, 0, 0] == eligible(viewer("1"))


def test_the_error_names_the_sets_that_exist(backend: Client):
    answer = from_list(backend, "1", prizes=[0, 2], limits=[1])

    info = "prizes[1]: there is no code set at index 2; sets exist at 0, 1, 4"
    assert (400, info) == (answer.status_code, answer.json()["info"])


@pytest.mark.ruling("C3")
def test_redeemed_plus_eligible_never_exceeds_the_limit(backend: Client, viewer):
    from_list(backend, "5551", prizes=[0, 0], limits=[2])
    viewer().post("codes/redeem", json={"prize": 0})

    from_list(backend, "5551", prizes=[0, 0], limits=[2])
    after_two = eligible(viewer())
    from_list(backend, "5551", prizes=[0, 0, 0], limits=[4])

    assert (1, 3) == (after_two[0], eligible(viewer())[0])


@pytest.mark.ruling("C4")
def test_the_latest_vote_counts(backend: Client, viewer):
    for value in (2, 3):
        viewer("1").post("vote", json={"value": value})
    for value in (3, 2):
        viewer("2").post("vote", json={"value": value})

    from_poll(backend)

    assert [0, 1] == [eligible(viewer(user))[0] for user in ("1", "2")]


@pytest.mark.ruling("C4")
def test_an_extension_level_token_covers_all_channels_or_the_one_named(backend: Client, viewer):
    for user, channel in (("1", "777"), ("2", "888")):
        viewer(user, channel=channel).post("vote", json={"value": 2})

    from_poll(backend, channel="888")
    in_one = [eligible(viewer(user))[0] for user in ("1", "2")]
    from_poll(backend)

    assert ([0, 1], [1, 1]) == (in_one, [eligible(viewer(user))[0] for user in ("1", "2")])


@pytest.mark.ruling("C4")
def test_votes_after_the_call_do_not_count(backend: Client, viewer):
    from_poll(backend, channel="777")

    viewer("1").post("vote", json={"value": 2}).raise_for_status()

    assert 0 == eligible(viewer("1"))[0]


def test_the_error_names_the_position_of_an_invalid_user(backend: Client):
    answer = backend.post("codes/mark_from_list", json={"users": ["1", 2], "prizes": [0], "prize_limits": [1]})

    assert answer.json()["info"].startswith("users[1]:")


@pytest.mark.slow
def test_a_list_of_100_000_users_grants_to_each(backend: Client, viewer):
    users = [f"9{number:06}" for number in range(100_000)]

    answer = from_list(backend, *users, prizes=[1], limits=[1, 1])

    assert 200 == answer.status_code
    assert [[0, 1, 0, 0, 0]] * 3 == [eligible(viewer(user)) for user in (users[0], users[50_000], users[-1])]
