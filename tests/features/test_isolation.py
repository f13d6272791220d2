"""Extensions, channels, viewers and environments do not see each other's data (rulings A4, S6; Versioning 2)."""

from __future__ import annotations

from typing import Any

import pytest

from emulator.core.config.environment import PRODUCTION
from emulator.core.config.extensions import Extension
from emulator.core.config.settings import Settings
from support.service import CLIENT_ID, SECRET, Client, LiveServer, live_server, real_seconds

PATHS = (
    *("vote", "vote_logs", "vote_config", "rank", "accumulate", "all_state", "all_config", "extension_hidden_state"),
    *("json_store", "vote?id=global-x", "rank?id=global-x", "json_store?id=global-x", "user_ids"),
)
# All extensions in a channel share these (ruling S6), so they have tests of their own.
SHARED = ("channel_state", "channel_config")


def fill(client: Client, mark: int) -> None:
    """Write `mark` to every kind of data."""
    for poll in ("default", "global-x"):
        client.post("vote_config", json={"id": poll, "config": {"prompt": f"prompt {mark}"}}).raise_for_status()
        client.post("vote", params={"id": poll}, json={"value": mark}).raise_for_status()
        client.post("rank", params={"id": poll}, json={"key": f"answer {mark}"}).raise_for_status()
        client.post("json_store", params={"id": poll}, json={"mark": mark}).raise_for_status()
    client.post("accumulate", json={"mark": mark}).raise_for_status()
    for store in ("extension_state", "viewer_state", "extension_viewer_state", "extension_hidden_state"):
        client.post(store, json={"mark": mark}).raise_for_status()
    client.post("extension_config", json={"mark": mark}).raise_for_status()


def read_all(client: Client) -> dict[str, Any]:
    return {path: client.get(path).json() for path in PATHS}


def admin_of(live: LiveServer, client_id: str, channel: str = "777", **claims: Any) -> Client:
    return live.client("admin", user="9001", channel=channel, client_id=client_id, **claims)


@pytest.mark.parametrize("other", ["other-extension", "My-Extension", "my-extension2", "my", "ÿ"])
def test_an_extension_does_not_see_the_data_of_another(live: LiveServer, other: str):
    token = live.client("admin", user="9001", channel="777").headers["Authorization"].split(" ")[1]
    header = {b"Authorization": f"{other} {token}".encode("latin-1")}
    other_client = Client(base_url=f"{live.url}/v1/e/", headers=header)
    live.freeze()
    empty = read_all(other_client)

    fill(admin_of(live, CLIENT_ID), 3)

    assert empty == read_all(other_client)


def test_writes_and_deletes_do_not_affect_other_extensions(live: LiveServer):
    ours, theirs = admin_of(live, CLIENT_ID), admin_of(live, "other")
    fill(ours, 3)
    before = read_all(ours)

    fill(theirs, 5)
    for path in ("vote", "rank", "vote?id=global-x", "rank?id=global-x"):
        theirs.delete(path).raise_for_status()

    assert before == read_all(ours)


@pytest.mark.parametrize("store", SHARED)
def test_channel_stores_can_be_separate_per_extension(store: str):
    with live_server(Settings(channel_stores_per_extension=True)) as live:
        admin_of(live, CLIENT_ID).post(store, json={"a": 1}).raise_for_status()
        admin_of(live, "other").patch(store, json={"b": 2}).raise_for_status()

        stores = [admin_of(live, client_id).get(store).json() for client_id in (CLIENT_ID, "other")]

    assert [{"a": 1}, {"b": 2}] == stores


@pytest.mark.slow
def test_sandbox_and_production_share_no_data_in_one_file(tmp_path):
    data = f"sqlite:///{tmp_path}/shared.db"
    extensions = {CLIENT_ID: Extension(CLIENT_ID, (SECRET,))}
    with live_server(Settings(data=data)) as sandbox, live_server(Settings(PRODUCTION, data, extensions)) as production:
        sandboxed, real = admin_of(sandbox, CLIENT_ID), admin_of(production, CLIENT_ID, exp=real_seconds() + 600)
        empty = read_all(real)

        fill(sandboxed, 3)
        after_sandbox_wrote = read_all(real)
        fill(real, 5)
        sandbox.reset()

        assert empty == after_sandbox_wrote
        assert (1, 0) == (real.get("vote").json()["count"], sandboxed.get("vote").json()["count"])
        assert 5 == real.get("vote").json()["vote"]
