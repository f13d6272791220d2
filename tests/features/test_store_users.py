"""An admin reads and patches many users' stores in one call (ruling S1)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from support.service import CHANNEL, Client, LiveServer

USER_STORES = pytest.mark.parametrize("store", ["viewer_state", "extension_viewer_state"])


def states(client: Client, store: str, *users: str) -> dict[str, Any]:
    """Read these users' records of a store, by id."""
    answer = client.get(store, params={"user_ids": ",".join(users)})
    assert 200 == answer.status_code
    return dict(answer.json())


@pytest.mark.slow
def test_the_records_of_one_map_have_at_most_4_mib_together(viewer, admin: Client):
    for user in range(66):
        viewer(str(user)).post("viewer_state", json={"a": "x" * 64_000}).raise_for_status()
    small: dict[str, Any] = {str(user): {"n": 1} for user in range(66)}
    large: dict[str, Any] = {str(user): {"a": "y" * 64_000} for user in range(100, 165)}

    too_many = admin.patch("viewer_state", json={str(user): {"n": 1} for user in range(66)})
    fitting = [admin.patch("viewer_state", json=dict(list(each.items())[:64])) for each in (small, large)]

    assert (400, "Stores too large") == (too_many.status_code, too_many.json()["reason"])
    assert "the limit for one call is 4194304: patch fewer users" in too_many.json()["info"]
    assert [200, 200] == [answer.status_code for answer in fitting]
    assert 130 == len(states(admin, "viewer_state", *small, *large))


@USER_STORES
def test_a_large_map_applies_to_records_as_they_are_when_it_is_written(live: LiveServer, admin: Client, store: str):
    users = {str(user): [{"op": "add", "path": f"/of{user}", "value": "x" * 1_000}] for user in range(200)}

    with ThreadPoolExecutor(4) as pool:
        maps = [pool.submit(live.client("admin", user="1", channel=CHANNEL).patch, store, json=users)]
        more = [
            pool.submit(live.client("viewer", user=str(user), channel=CHANNEL).patch, store, json={"own": user})
            for user in range(200)
        ]
    statuses = {each.result().status_code for each in (*maps, *more)}

    assert {200} == statuses
    assert {str(user): {"own": user, f"of{user}": "x" * 1_000} for user in range(200)} == states(admin, store, *users)


@USER_STORES
def test_an_admin_patches_at_most_1000_users(admin: Client, store: str):
    answers = [admin.patch(store, json={str(user): {"n": user} for user in range(users)}) for users in (1_000, 1_001)]

    assert [200, 400] == [answer.status_code for answer in answers]
    assert "Too many ids specified" == answers[1].json()["reason"]
    assert 1_000 == len(states(admin, store, *map(str, range(1_000))))


@pytest.mark.parametrize(
    "body", [{}, {"a": {"b": 1}}, {"12": {"a": 1}, "b": {"a": 1}}, {"12": 5}, {"12": None}, {"٣": {"a": 1}}]
)
@USER_STORES
def test_an_object_that_is_not_a_map_of_users_patches_the_admins_own_record(
    admin: Client, store: str, body: dict[str, Any]
):
    admin.patch(store, json=body).raise_for_status()

    assert {name: value for name, value in body.items() if value is not None} == admin.get(store).json()


@pytest.mark.parametrize("store", ["extension_state", "channel_state", "extension_hidden_state", "extension_config"])
def test_in_a_store_without_users_ids_are_ordinary_keys(admin: Client, store: str):
    admin.patch(store, json={"12": {"a": 1}}).raise_for_status()

    assert {"12": {"a": 1}} == admin.get(store).json()


def test_an_admin_patches_the_config_of_many_channels_and_a_broadcaster_their_own(live, admin, broadcaster: Client):
    def configs() -> list[object]:
        return [live.client("viewer", channel=each).get("channel_config").json() for each in ("777", "888")]

    broadcaster.patch("channel_config", json={"888": {"theme": "dark"}}).raise_for_status()
    assert [{"888": {"theme": "dark"}}, {}] == configs()
    admin.patch("channel_config", json={"777": {"888": None}, "888": [{"op": "add", "path": "/a", "value": 1}]})
    assert [{}, {"a": 1}] == configs()
    admin.patch("channel_config", json={"level1": {"a": 1}}).raise_for_status()
    assert [{"level1": {"a": 1}}, {"a": 1}] == configs()
