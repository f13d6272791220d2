"""Reward codes beyond the rules of `extcli conform` and the model in `tests/surface` (rulings C2, C5)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from emulator.core.clock import DAY
from support.codes import define, eligible, grant, redeem
from support.service import CLIENT_ID, OTHER_ID, Client, LiveServer


def codes_of(backend: Client, viewer, *users: str, prize: int = 0) -> list[str | None]:
    """Grant each user one code of a set, and redeem it."""
    grant(backend, *users, prizes=[prize])
    return [redeem(viewer(user), prize).get("code") for user in users]


@pytest.mark.parametrize("member", ["prize", "all_prizes", "index"])
def test_the_prize_has_three_names(backend: Client, viewer, member: str):
    define(backend, ["A1"], ["B1"])
    grant(backend, "5551", prizes=[1])

    answer = viewer().post("codes/redeem", json={member: 1})

    assert {"code": "B1", "all_prizes": ["B1"]} == answer.json()


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


def test_codes_are_of_the_extension_in_every_channel_and_of_no_other(live: LiveServer, backend: Client, viewer):
    other = live.client("backend", client_id=OTHER_ID)
    define(backend, ["A1", "A2"])
    grant(backend, "5551", prizes=[0, 0])
    define(other, ["X1"])

    assert [0] == eligible(viewer(client_id=OTHER_ID))
    assert {"distributed": [0]} == other.delete("codes").json()
    assert ["A1", "A2"] == [redeem(viewer(channel=channel))["code"] for channel in ("777", "888")]


def test_an_expired_set_leaves_its_codes_handed_out_for_its_extension_only(live: LiveServer, backend: Client, viewer):
    define(backend, ["A1", "A2"])
    codes_of(backend, viewer, "1")
    live.advance(1_000 * DAY)
    other = live.client("backend", client_id=OTHER_ID)
    for each in (backend, other):
        define(each, ["A1", "A2"])
        grant(each, "2", prizes=[0])

    codes = [redeem(viewer("2", client_id=client_id))["code"] for client_id in (CLIENT_ID, OTHER_ID)]

    assert ["A2", "A1"] == codes


def test_a_reset_and_a_dropped_namespace_forget_which_codes_were_handed_out(live: LiveServer):
    backend, user = live.client("backend"), live.client("viewer", user="1", channel="777")
    backend.base_url, user.base_url = (f"{live.url}/_ns/codes/v1/e" for _ in range(2))

    for end in (("POST", "/_emulator/reset"), ("DELETE", ""), ("DELETE", "")):
        define(backend, ["A1"])
        grant(backend, "1", prizes=[0])
        assert "A1" == redeem(user)["code"]
        Client().request(end[0], f"{live.url}/_ns/codes{end[1]}").raise_for_status()


@pytest.mark.slow
def test_a_set_of_spent_codes_is_skipped_to_its_first_new_code(backend: Client, viewer):
    codes = [f"C{number}" for number in range(510)]
    for index, these in enumerate((codes, [*codes, "NEW"])):
        define(backend, these, names=[f"S{index}"], indices=[index])
    body = {"prizes": [0] * 510, "prize_limits": [510], "users": ["1"]}
    backend.post("codes/mark_from_list", json=body).raise_for_status()
    user = viewer("1")

    assert codes == [redeem(user)["code"] for _ in codes]
    assert ["NEW", None] == codes_of(backend, viewer, "4", "5", prize=1)
