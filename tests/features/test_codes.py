"""Reward codes beyond the rules of `extcli conform` and the model in `tests/surface` (rulings C2, C5)."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from emulator.clock import DAY
from support.codes import define, eligible, grant, redeem
from support.service import Client, LiveServer


def codes_of(backend: Client, viewer, *users: str, prize: int = 0) -> list[str | None]:
    """Grant each user one code of a set, and redeem it."""
    grant(backend, *users, prizes=[prize])
    return [redeem(viewer(user), prize).get("code") for user in users]


@pytest.mark.parametrize("member", ["prize", "all_prizes", "index"])
@pytest.mark.ruling("C5")
def test_the_prize_has_three_names(backend: Client, viewer, member: str):
    define(backend, ["A1"], ["B1"])
    grant(backend, "5551", prizes=[1])

    answer = viewer().post("codes/redeem", json={member: 1})

    assert {"code": "B1", "all_prizes": ["B1"]} == answer.json()


def test_a_body_inside_a_json_string_is_accepted(backend: Client):
    body = json.dumps(json.dumps({"codes": [["A1"]], "names": ["Hat"]}))

    answer = backend.put("codes", content=body)

    assert (200, ["Hat"]) == (answer.status_code, backend.get("codes").json()["names"])


def test_eligibility_lasts_as_long_as_a_set_that_was_replaced_during_the_mark(
    live: LiveServer, backend: Client, viewer
):
    live.freeze()
    define(backend, ["A1"])

    def body() -> Iterator[bytes]:
        yield b'{"prizes":[0],"prize_limits":[1],"users":["5551"'
        live.advance(60 * DAY)
        define(backend, ["A1"])
        yield b"]}"

    backend.post("codes/mark_from_list", content=body()).raise_for_status()

    live.advance(89 * DAY)
    assert [1] == eligible(viewer())


@pytest.mark.ruling("C2")
def test_a_reset_forgets_the_codes_handed_out(live: LiveServer, backend: Client, viewer):
    define(backend, ["A1"])
    codes_of(backend, viewer, "1")
    live.reset()

    define(backend, ["A1"])

    assert ["A1"] == codes_of(backend, viewer, "2")


@pytest.mark.ruling("C2")
def test_dropping_a_namespace_forgets_which_codes_it_handed_out(live: LiveServer):
    backend, user = live.client("backend"), live.client("viewer", user="1", channel="777")
    backend.base_url, user.base_url = (f"{live.url}/_ns/codes/v1/e" for _ in range(2))

    for _ in range(2):
        define(backend, ["A1"])
        grant(backend, "1", prizes=[0])
        assert "A1" == redeem(user)["code"]
        Client().delete(f"{live.url}/_ns/codes").raise_for_status()


@pytest.mark.slow
@pytest.mark.ruling("C2")
def test_a_set_of_spent_codes_is_skipped_to_its_first_new_code(backend: Client, viewer):
    codes = [f"C{number}" for number in range(510)]
    for index, these in enumerate((codes, [*codes, "NEW"])):
        define(backend, these, names=[f"S{index}"], indices=[index])
    body = {"prizes": [0] * 510, "prize_limits": [510], "users": ["1"]}
    backend.post("codes/mark_from_list", json=body).raise_for_status()
    user = viewer("1")

    assert codes == [redeem(user)["code"] for _ in codes]
    assert ["NEW", None] == codes_of(backend, viewer, "4", "5", prize=1)
