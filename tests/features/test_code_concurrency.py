"""Concurrent redemption: each code is handed out once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from support.codes import define, grant, redeem, redeemed
from support.service import Client, LiveServer

pytestmark = pytest.mark.slow


def test_a_thousand_users_redeem_500_codes_once_each(live: LiveServer, backend: Client):
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


def test_one_user_redeeming_concurrently_gets_each_code_once(live: LiveServer, backend: Client, viewer):
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
