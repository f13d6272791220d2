"""Extensions, channels, viewers and environments do not see each other's data (rulings A4, S6; Versioning 2)."""

from __future__ import annotations

from typing import Any

import pytest

from emulator.core.settings import Settings
from support.service import CLIENT_ID, Client, LiveServer, in_production, live_server, real_seconds


def admin_of(live: LiveServer, client_id: str, channel: str = "777", **claims: Any) -> Client:
    return live.client("admin", user="9001", channel=channel, client_id=client_id, **claims)


@pytest.mark.parametrize("store", ["channel_state", "channel_config"])
def test_channel_stores_can_be_separate_per_extension(store: str):
    with live_server(Settings(channel_stores_per_extension=True)) as live:
        admin_of(live, CLIENT_ID).post(store, json={"a": 1}).raise_for_status()
        admin_of(live, "other").patch(store, json={"b": 2}).raise_for_status()

        stores = [admin_of(live, client_id).get(store).json() for client_id in (CLIENT_ID, "other")]

    assert [{"a": 1}, {"b": 2}] == stores


@pytest.mark.slow
def test_sandbox_and_production_share_no_data_in_one_file(tmp_path):
    data = f"sqlite:///{tmp_path}/shared.db"
    with live_server(Settings(data=data)) as sandbox, live_server(in_production(data=data)) as production:
        sandboxed, real = admin_of(sandbox, CLIENT_ID), admin_of(production, CLIENT_ID, exp=real_seconds() + 600)

        sandboxed.post("vote", json={"value": 3}).raise_for_status()
        empty = real.get("vote").json()["count"]
        real.post("vote", json={"value": 5}).raise_for_status()
        sandbox.reset()

        assert (0, 1, 0) == (empty, real.get("vote").json()["count"], sandboxed.get("vote").json()["count"])
