"""No code of an extension is handed out twice (ruling C2)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from emulator.clock import DAY
from support.codes import define, grant, redeem
from support.service import CLIENT_ID, OTHER_ID, Client, LiveServer

pytestmark = pytest.mark.ruling("C2")

Viewer = Callable[..., Client]


def codes_of(backend: Client, viewer: Viewer, *users: str, prize: int = 0) -> list[str | None]:
    """Grant each user one code of a set, and redeem it."""
    grant(backend, *users, prizes=[prize])
    return [redeem(viewer(user), prize).get("code") for user in users]


def test_a_code_is_not_handed_out_again_at_another_index_after_a_delete(backend: Client, viewer: Viewer):
    define(backend, ["filler"], ["GIFT-1", "GIFT-2"])
    first = codes_of(backend, viewer, "1", prize=1)
    backend.delete("codes")

    define(backend, ["GIFT-1", "GIFT-2"])

    assert (["GIFT-1"], ["GIFT-2", None]) == (first, codes_of(backend, viewer, "2", "3"))


def test_a_code_is_not_handed_out_again_at_another_index(backend: Client, viewer: Viewer):
    define(backend, ["filler"], ["GIFT-1", "GIFT-2"])
    codes_of(backend, viewer, "1", prize=1)

    define(backend, ["GIFT-1", "GIFT-2"], names=["G"], indices=[7])

    assert ["GIFT-2", None] == codes_of(backend, viewer, "2", "3", prize=7)


def test_a_code_of_two_sets_is_handed_out_once(backend: Client, viewer: Viewer):
    define(backend, ["A1", "A2", "A3"], names=["A"], indices=[0])
    define(backend, ["A2", "A1", "B1"], names=["B"], indices=[1])

    first, second, third, fourth = (codes_of(backend, viewer, f"{n}", prize=n % 2)[0] for n in range(4))

    assert ["A1", "A2", "A3", "B1"] == [first, second, third, fourth]


def test_a_code_is_not_handed_out_again_after_its_set_expired(live: LiveServer, backend: Client, viewer: Viewer):
    live.freeze()
    define(backend, ["A1", "A2"])
    codes_of(backend, viewer, "1")
    live.advance(91 * DAY)

    define(backend, ["A1", "A2"])

    assert ["A2", None] == codes_of(backend, viewer, "2", "3")
    backend.delete("codes")
    live.advance(1_000 * DAY)
    define(backend, ["A2", "A1", "A3"], names=["Later"], indices=[5])
    assert ["A3"] == codes_of(backend, viewer, "4", prize=5)


def test_another_extension_may_hand_out_the_same_code(live: LiveServer, backend: Client, viewer: Viewer):
    other = live.client("backend", client_id=OTHER_ID)
    for each in (backend, other):
        define(each, ["A1"])
        grant(each, "1", prizes=[0])

    codes = [redeem(viewer("1", client_id=client_id)).get("code") for client_id in (CLIENT_ID, OTHER_ID)]

    assert ["A1", "A1"] == codes


def test_a_reset_forgets_the_codes_handed_out(live: LiveServer, backend: Client, viewer: Viewer):
    define(backend, ["A1"])
    codes_of(backend, viewer, "1")
    live.reset()

    define(backend, ["A1"])

    assert ["A1"] == codes_of(backend, viewer, "2")


def test_dropping_a_namespace_forgets_which_codes_it_handed_out(live: LiveServer):
    backend, user = live.client("backend"), live.client("viewer", user="1", channel="777")
    backend.base_url, user.base_url = (f"{live.url}/_ns/codes/v1/e" for _ in range(2))

    for _ in range(2):
        define(backend, ["A1"])
        grant(backend, "1", prizes=[0])
        assert "A1" == redeem(user)["code"]
        Client().delete(f"{live.url}/_ns/codes").raise_for_status()


@pytest.mark.slow
def test_a_set_of_spent_codes_is_skipped_to_its_first_new_code(backend: Client, viewer: Viewer):
    codes = [f"C{number}" for number in range(510)]
    for index, these in enumerate((codes, [*codes, "NEW"])):
        define(backend, these, names=[f"S{index}"], indices=[index])
    body = {"prizes": [0] * 510, "prize_limits": [510], "users": ["1"]}
    backend.post("codes/mark_from_list", json=body).raise_for_status()
    user = viewer("1")

    assert codes == [redeem(user)["code"] for _ in codes]
    assert ["NEW", None] == codes_of(backend, viewer, "4", "5", prize=1)
