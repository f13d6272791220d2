"""Sets of reward codes: defined, listed, redeemed from and ended (Game codes, rulings C2, C5, C6)."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from support.service import OTHER_ID, Client, LiveServer

DAY = 86_400_000


def put(backend: Client, **body: Any) -> httpx.Response:
    return backend.put("codes", json=body)


def define(backend: Client, *codes: list[str], names: list[str] | None = None, **more: Any) -> None:
    """Define sets, named A, B, … unless told."""
    answer = put(backend, codes=list(codes), names=names or list("ABCDEFGHIJ"[: len(codes)]), **more)
    assert (200, {}) == (answer.status_code, answer.json())


def grant(backend: Client, *users: str, prizes: list[int], limits: list[int] | None = None) -> None:
    """Make users eligible."""
    body = {"prizes": prizes, "prize_limits": limits if limits is not None else [9] * 10, "users": list(users)}
    answer = backend.post("codes/mark_from_list", json=body)
    assert (200, {}) == (answer.status_code, answer.json())


def redeem(viewer: Client, prize: int = 0) -> dict[str, Any]:
    return dict(viewer.post("codes/redeem", json={"prize": prize}).raise_for_status().json())


def eligible(viewer: Client) -> list[int]:
    return list(viewer.get("codes/eligibility").raise_for_status().json()["eligible"])


def redeemed(viewer: Client) -> list[list[str]]:
    return list(viewer.get("codes/redeemed").raise_for_status().json()["redeemed"])


@pytest.fixture
def other_backend(live: LiveServer) -> Client:
    return live.client("backend", client_id=OTHER_ID)


def test_without_sets_there_is_nothing_to_list_to_have_and_to_end(backend: Client, viewer):
    assert {"names": [], "indices": []} == backend.get("codes").json()
    assert ([], []) == (eligible(viewer()), redeemed(viewer()))
    assert {"distributed": []} == backend.delete("codes").json()


def test_sets_are_listed_in_the_order_of_their_indices(backend: Client):
    define(backend, ["b"], ["a"], names=["Sword", "Hat"], indices=[5, 2])

    assert {"names": ["Hat", "Sword"], "indices": [2, 5]} == backend.get("codes").json()


def test_without_indices_sets_go_where_they_stand(backend: Client):
    define(backend, ["a"], ["b"], names=["Hat", "Sword"])

    assert [0, 1] == backend.get("codes").json()["indices"]


def test_codes_go_out_in_the_order_of_their_list_one_for_each_eligibility(backend: Client, viewer):
    define(backend, ["A1", "A2", "A3"])
    grant(backend, "5551", prizes=[0, 0])

    answers = [redeem(viewer()) for _ in range(3)]

    assert {"code": "A1", "all_prizes": ["A1"]} == answers[0]
    assert {"code": "A2", "all_prizes": ["A1", "A2"]} == answers[1]
    assert {"all_prizes": ["A1", "A2"]} == answers[2]


@pytest.mark.parametrize("member", ["prize", "all_prizes", "index"])
@pytest.mark.ruling("C5")
def test_published_clients_name_the_prize_in_three_ways(backend: Client, viewer, member: str):
    define(backend, ["A1"], ["B1"])
    grant(backend, "5551", prizes=[1])

    answer = viewer().post("codes/redeem", json={member: 1})

    assert {"code": "B1", "all_prizes": ["B1"]} == answer.json()


@pytest.mark.ruling("C5")
def test_eligibility_and_redeemed_are_dense_to_the_highest_index(backend: Client, viewer):
    define(backend, ["A1", "A2"], ["D1"], indices=[0, 3])
    grant(backend, "5551", prizes=[0, 0, 3])

    redeem(viewer(), 3)

    assert [2, 0, 0, 0] == eligible(viewer())
    assert [[], [], [], ["D1"]] == redeemed(viewer())


@pytest.mark.ruling("C5")
def test_without_eligibility_there_is_no_code(backend: Client, viewer):
    define(backend, ["A1"])

    assert {"all_prizes": []} == redeem(viewer())
    assert {"all_prizes": []} == redeem(viewer(), prize=7)


@pytest.mark.ruling("C5")
def test_an_empty_set_gives_no_code_and_eligibility_stays(backend: Client, viewer):
    define(backend, ["A1"])
    grant(backend, "1", "2", prizes=[0])

    first, second = redeem(viewer("1")), redeem(viewer("2"))

    assert ("A1", {"all_prizes": []}) == (first["code"], second)
    assert [1] == eligible(viewer("2"))


@pytest.mark.parametrize("body", ["{}", '{"prize": 10}', '{"prize": -1}', '{"prize": "0"}', '{"prize": 0, "index": 1}'])
def test_a_prize_that_is_no_index_is_refused(backend: Client, viewer, body: str):
    define(backend, ["A1"])

    assert 400 == viewer().post("codes/redeem", content=body).status_code


@pytest.mark.ruling("C2")
def test_sets_at_other_indices_stay(backend: Client, viewer):
    define(backend, ["A1"], names=["Hat"], indices=[0])
    define(backend, ["B1"], names=["Sword"], indices=[1])
    grant(backend, "5551", prizes=[0, 1])

    assert ["A1", "B1"] == [redeem(viewer(), index)["code"] for index in (0, 1)]


@pytest.mark.ruling("C2")
def test_a_set_put_again_is_renamed_and_has_another_list_and_eligibility_stays(backend: Client, viewer):
    define(backend, ["A1", "A2"], names=["Hat"])
    grant(backend, "5551", prizes=[0, 0])
    redeem(viewer())

    define(backend, ["Z1"], names=["Cap"])

    assert ["Cap"] == backend.get("codes").json()["names"]
    assert ([1], [["A1"]]) == (eligible(viewer()), redeemed(viewer()))
    assert {"code": "Z1", "all_prizes": ["A1", "Z1"]} == redeem(viewer())


@pytest.mark.ruling("C2")
def test_a_code_handed_out_is_never_handed_out_again(backend: Client, viewer):
    define(backend, ["A1", "A2"])
    grant(backend, "1", prizes=[0])
    assert "A1" == redeem(viewer("1"))["code"]

    define(backend, ["A1", "A2", "A2", "A3"])
    grant(backend, "2", "3", "4", prizes=[0])

    assert ["A2", "A3", None] == [redeem(viewer(user)).get("code") for user in ("2", "3", "4")]


@pytest.mark.ruling("C2")
def test_nor_when_the_set_was_ended_in_between(backend: Client, viewer):
    define(backend, ["A1", "A2"])
    grant(backend, "1", prizes=[0])
    redeem(viewer("1"))
    backend.delete("codes")

    define(backend, ["A1", "A2"])
    grant(backend, "2", prizes=[0])

    assert "A2" == redeem(viewer("2"))["code"]


@pytest.mark.ruling("C6")
def test_ending_tells_what_each_set_had_handed_out(backend: Client, viewer):
    define(backend, ["A1", "A2"], ["B1"], ["C1"], indices=[4, 0, 2])
    grant(backend, "1", "2", prizes=[4, 2])
    for user, index in (("1", 4), ("2", 4), ("1", 2)):
        redeem(viewer(user), index)

    assert {"distributed": [0, 1, 2]} == backend.delete("codes").json()
    assert {"distributed": []} == backend.delete("codes").json()


@pytest.mark.ruling("C6")
def test_ending_ends_eligibility_also_for_later_sets(backend: Client, viewer):
    define(backend, ["A1"])
    grant(backend, "5551", prizes=[0])

    backend.delete("codes")
    define(backend, ["B1"])

    assert [0] == eligible(viewer())
    assert {"all_prizes": []} == redeem(viewer())


@pytest.mark.ruling("C6")
def test_what_a_user_holds_stays_readable_until_90_days_after_the_last_put(live: LiveServer, backend: Client, viewer):
    live.freeze()
    define(backend, ["A1"])
    grant(backend, "5551", prizes=[0])
    redeem(viewer())
    backend.delete("codes")

    live.advance(90 * DAY - 1)
    before = redeemed(viewer())
    live.advance(1)

    assert ([["A1"]], []) == (before, redeemed(viewer()))


@pytest.mark.ruling("C2")
def test_a_set_lives_90_days_from_its_last_put(live: LiveServer, backend: Client, viewer):
    live.freeze()
    define(backend, ["A1"], names=["Hat"])
    live.advance(60 * DAY)
    define(backend, ["A2"], names=["Hat"])
    grant(backend, "5551", prizes=[0])

    live.advance(90 * DAY - 1)
    before = (backend.get("codes").json()["names"], eligible(viewer()))
    expired = live.advance(1)

    assert (["Hat"], [1]) == before
    assert ([], []) == (backend.get("codes").json()["names"], eligible(viewer()))
    assert ["0"] == [each["id"] for each in expired if each["kind"] == "codes"]


def test_eligibility_lives_as_long_as_its_set(live: LiveServer, backend: Client, viewer):
    live.freeze()
    define(backend, ["A1"])
    grant(backend, "5551", prizes=[0])
    live.advance(60 * DAY)
    define(backend, ["A1"])

    live.advance(60 * DAY)

    assert "A1" == redeem(viewer())["code"]


def test_a_set_that_follows_an_expired_one_begins_without_eligibility(live: LiveServer, backend: Client, viewer):
    live.freeze()
    define(backend, ["A1"])
    grant(backend, "5551", prizes=[0])
    live.advance(90 * DAY)

    define(backend, ["B1"])

    assert [0] == eligible(viewer())


def test_an_extensions_codes_are_no_concern_of_another(backend: Client, other_backend: Client, viewer):
    define(backend, ["A1"])
    grant(backend, "5551", prizes=[0])
    define(other_backend, ["X1"])

    assert [0] == eligible(viewer(client_id=OTHER_ID))
    assert {"distributed": [0]} == other_backend.delete("codes").json()
    assert "A1" == redeem(viewer())["code"]


def test_codes_are_the_extensions_in_every_channel(backend: Client, viewer):
    define(backend, ["A1", "A2"])
    grant(backend, "5551", prizes=[0, 0])

    codes = [redeem(viewer(channel=channel))["code"] for channel in ("777", "888")]

    assert ["A1", "A2"] == codes


def test_a_user_who_shares_no_id_may_be_granted_prizes_by_the_opaque_one(backend: Client, viewer):
    define(backend, ["A1"])
    grant(backend, "Aabc", prizes=[0])

    assert "A1" == redeem(viewer(None, opaque="Aabc"))["code"]


def test_a_thousand_redeemers_of_500_codes_get_500_distinct_ones(live: LiveServer, backend: Client):
    define(backend, [f"C{number:03}" for number in range(500)])
    users = [f"{number}" for number in range(1_000)]
    grant(backend, *users, prizes=[0])
    tokens = [live.client("viewer", user=user, channel="777").headers["Authorization"] for user in users]

    def redeem_as(share: list[str]) -> list[str | None]:
        with Client(base_url=f"{live.url}/v1/e/") as client:
            answers = [client.post("codes/redeem", json={"prize": 0}, headers={"Authorization": a}) for a in share]
        return [answer.raise_for_status().json().get("code") for answer in answers]

    with ThreadPoolExecutor(20) as pool:
        got = [code for share in pool.map(redeem_as, [tokens[start::20] for start in range(20)]) for code in share]

    codes = [code for code in got if code is not None]
    assert (500, 500) == (len(codes), len(set(codes)))
    assert {"distributed": [500]} == backend.delete("codes").json()


def test_codes_are_redeemed_whatever_else_is_asked_at_the_same_time(live: LiveServer, backend: Client, viewer):
    define(backend, [f"C{number}" for number in range(100)])
    grant(backend, "5551", prizes=[0] * 60, limits=[60])
    header = viewer().headers["Authorization"]

    def once(_: int) -> str | None:
        with Client(base_url=f"{live.url}/v1/e/", headers={"Authorization": header}) as client:
            code: str | None = redeem(client).get("code")
            return code

    with ThreadPoolExecutor(8) as pool:
        got = [code for code in pool.map(once, range(80)) if code]

    assert (60, 60) == (len(got), len(set(got)))
    assert sorted(got) == sorted(redeemed(viewer())[0])


def test_a_body_inside_a_json_string_is_taken_too(backend: Client):
    body = json.dumps(json.dumps({"codes": [["A1"]], "names": ["Hat"]}))

    answer = backend.put("codes", content=body)

    assert (200, ["Hat"]) == (answer.status_code, backend.get("codes").json()["names"])
