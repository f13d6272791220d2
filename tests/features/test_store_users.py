"""An admin reads and patches many users' stores in one call (ruling S1)."""

from __future__ import annotations

import json
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


@USER_STORES
def test_the_commas_between_ids_need_no_encoding(viewer, admin: Client, store: str):
    viewer("1").post(store, json={"of": 1})

    assert {"1": {"of": 1}} == admin.get(f"{store}?user_ids=1,2").json()
    assert {} == admin.get(f"{store}?user_ids=,").json()


@pytest.mark.slow
@USER_STORES
@pytest.mark.ruling("S1")
def test_the_records_of_one_map_have_at_most_4_mib_together(viewer, admin: Client, store: str):
    for user in range(66):
        viewer(str(user)).post(store, json={"a": "x" * 64_000}).raise_for_status()
    small: dict[str, Any] = {str(user): {"n": 1} for user in range(66)}
    large: dict[str, Any] = {str(user): {"a": "y" * 64_000} for user in range(100, 165)}

    too_many = admin.patch(store, json={str(user): {"n": 1} for user in range(66)})
    fitting = [admin.patch(store, json=dict(list(each.items())[:64])) for each in (small, large)]

    assert (400, "Stores too large") == (too_many.status_code, too_many.json()["reason"])
    assert "the limit is 4194304 for one call: patch fewer at once" in too_many.json()["info"]
    assert [200, 200] == [answer.status_code for answer in fitting]
    assert 130 == len(states(admin, store, *small, *large))


@USER_STORES
def test_a_patch_in_a_large_map_has_at_most_64_kib(admin: Client, store: str):
    fitting = {"1": {"a": "x" * 64_000}, "2": {"a": "x" * 10_000}}

    answers = [
        admin.patch(store, json=users) for users in (fitting, {**fitting, "2": {"a": "x" * 64_000, "b": "y" * 2_000}})
    ]

    assert [200, 400] == [answer.status_code for answer in answers]
    assert "the patch of 2 has 66" in answers[1].json()["info"]
    assert fitting == states(admin, store, "1", "2")


@USER_STORES
@pytest.mark.ruling("S1", "S2")
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


@pytest.mark.slow
@USER_STORES
def test_many_large_records_are_read_in_one_call(viewer, admin: Client, store: str):
    written = {str(user): {"a": "x" * 60_000, "n": user} for user in range(100)}
    for user, record in written.items():
        viewer(user).post(store, json=record).raise_for_status()

    assert written == states(admin, store, *written, "absent1")


@USER_STORES
@pytest.mark.ruling("S1")
def test_a_map_may_contain_the_ids_of_anonymous_users(live: LiveServer, stranger: Client, admin: Client, store: str):
    token = stranger.post("/v1/e/authtoken", json={"channel_id": CHANNEL}).json()["token"]
    anonymous = live.bearer(token)
    opaque_id = anonymous.get("user_info").json()["opaque_user_id"]

    admin.patch(store, json={opaque_id: {"xp": 1}}).raise_for_status()

    assert {"xp": 1} == anonymous.get(store).json()


@USER_STORES
@pytest.mark.ruling("S1")
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


def test_an_admin_patches_the_config_of_many_channels(live: LiveServer, admin: Client):
    admin.patch("channel_config", json={"777": {"theme": "dark"}, "888": [{"op": "add", "path": "/a", "value": 1}]})

    configs = {
        channel: live.client("viewer", channel=channel).get("channel_config").json() for channel in ("777", "888")
    }

    assert {"777": {"theme": "dark"}, "888": {"a": 1}} == configs


@pytest.mark.parametrize("name", ["level1", "٣", "²", "7 "])
def test_a_member_that_is_not_a_channel_id_belongs_to_the_own_config(admin: Client, name: str):
    admin.patch("channel_config", json={name: {"a": 1}}).raise_for_status()

    assert {name: {"a": 1}} == admin.get("channel_config").json()


def test_a_broadcaster_cannot_patch_the_config_of_other_channels(live: LiveServer, broadcaster: Client):
    broadcaster.patch("channel_config", json={"888": {"theme": "dark"}}).raise_for_status()

    assert {} == live.client("viewer", channel="888").get("channel_config").json()
    assert {"888": {"theme": "dark"}} == broadcaster.get("channel_config").json()


def test_a_map_of_users_may_be_json_in_a_json_string(viewer, admin: Client):
    admin.patch("extension_viewer_state", json=json.dumps({"1": {"xp": 1}})).raise_for_status()

    assert {"xp": 1} == viewer("1").get("extension_viewer_state").json()


@pytest.mark.ruling("S1")
def test_keys_that_end_in_a_digit_count_as_user_ids(admin: Client):
    admin.patch("extension_viewer_state", json={"user-1": {"a": 1}, "user-2": {"a": 2}}).raise_for_status()

    assert {"user-1": {"a": 1}, "user-2": {"a": 2}} == admin.get("extension_viewer_state?user_ids=user-1,user-2").json()
