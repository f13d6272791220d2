"""Reward codes beyond the rules of `extcli conform` and the model: races, names and renewals (rulings C2, C5)."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from emulator.core.clock import DAY
from support.codes import define, eligible, grant
from support.service import Client, LiveServer


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


@pytest.mark.slow
def test_200_users_redeem_100_codes_once_each(live: LiveServer, backend: Client):
    define(backend, [f"C{number:03}" for number in range(100)])
    users = [f"{number}" for number in range(200)]
    grant(backend, *users, prizes=[0])
    tokens = [live.client("viewer", user=user, channel="777").headers["Authorization"] for user in users]

    def redeem_as(share: list[str]) -> list[str | None]:
        with Client(base_url=f"{live.url}/v1/e/") as client:
            answers = [client.post("codes/redeem", json={"prize": 0}, headers={"Authorization": a}) for a in share]
        return [answer.raise_for_status().json().get("code") for answer in answers]

    with ThreadPoolExecutor(10) as pool:
        got = [code for share in pool.map(redeem_as, [tokens[start::10] for start in range(10)]) for code in share]

    codes = [code for code in got if code is not None]
    assert (100, 100) == (len(codes), len(set(codes)))
    assert {"distributed": [100]} == backend.delete("codes").json()
