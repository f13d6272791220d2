"""Rankings beyond the rules of `extcli conform` and the model in `tests/surface` (ruling R1)."""

from __future__ import annotations

import pytest

from support.service import Client

pytestmark = pytest.mark.ruling("R1")


def ranking(client: Client, where: str = "") -> dict[str, int]:
    rows = client.get(f"rank{where}").raise_for_status().json()["data"]
    return {row["key"]: row["score"] for row in rows}


def answer(client: Client, key: str, where: str = "") -> None:
    client.post(f"rank{where}", json={"key": key}).raise_for_status()


def test_an_answer_is_as_long_as_a_body_allows(viewer, broadcaster):
    answer(viewer(), "x" * 60_000)

    assert {"x" * 60_000: 1} == ranking(broadcaster)


@pytest.mark.ruling("A4")
def test_a_ranking_whose_id_is_the_prefix_alone_is_global(viewer, broadcaster):
    for user, channel in (("1", "777"), ("2", "888")):
        answer(viewer(user, channel=channel), "blue", "?id=global-")

    assert {"blue": 2} == ranking(broadcaster, "?id=global-")


@pytest.mark.ruling("A4")
def test_a_delete_in_one_channel_keeps_the_others(viewer, broadcaster, backend):
    for user, channel in (("1", "777"), ("2", "888"), ("3", "999")):
        answer(viewer(user, channel=channel), "blue")

    broadcaster.delete("rank?channel_id=888").raise_for_status()
    by_the_owner = ranking(broadcaster), ranking(backend)
    backend.delete("rank?channel_id=888").raise_for_status()

    assert (({}, {"blue": 2}), {"blue": 1}) == (by_the_owner, ranking(backend))


@pytest.mark.ruling("A4")
def test_a_delete_with_an_extension_level_token_is_of_all_channels(viewer, broadcaster, backend):
    for user, channel in (("1", "777"), ("2", "888")):
        answer(viewer(user, channel=channel), "blue")

    backend.delete("rank").raise_for_status()

    assert ({}, {}) == (ranking(broadcaster), ranking(backend))
