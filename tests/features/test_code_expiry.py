"""Expiry of code sets, eligibility and redeemed codes (Game codes, rulings C2, C6)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from emulator.clock import DAY
from support.codes import define, eligible, grant, redeem, redeemed
from support.service import Client, LiveServer


@pytest.mark.ruling("C6")
def test_redeemed_codes_stay_readable_until_90_days_after_the_last_put(live: LiveServer, backend: Client, viewer):
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
def test_a_set_expires_90_days_after_its_last_put(live: LiveServer, backend: Client, viewer):
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


def test_eligibility_expires_with_its_set(live: LiveServer, backend: Client, viewer):
    live.freeze()
    define(backend, ["A1"])
    grant(backend, "5551", prizes=[0])
    live.advance(60 * DAY)
    define(backend, ["A1"])

    live.advance(60 * DAY)

    assert "A1" == redeem(viewer())["code"]


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


def test_a_set_after_an_expired_one_starts_without_eligibility(live: LiveServer, backend: Client, viewer):
    live.freeze()
    define(backend, ["A1"])
    grant(backend, "5551", prizes=[0])
    live.advance(90 * DAY)

    define(backend, ["B1"])

    assert [0] == eligible(viewer())
