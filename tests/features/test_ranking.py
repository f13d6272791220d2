"""Rankings: one answer per user, most frequent first (Ranking; rulings R1, W8)."""

from __future__ import annotations

import httpx
import pytest

from support.service import Client

pytestmark = pytest.mark.ruling("R1")


def submit(client: Client, answer: str, where: str = "") -> dict:
    return client.post(f"rank{where}", json={"key": answer}).raise_for_status().json()


def ranking(client: Client, where: str = "") -> list[tuple[str, int]]:
    return [(row["key"], row["score"]) for row in client.get(f"rank{where}").raise_for_status().json()["data"]]


def reason(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["reason"]


@pytest.mark.parametrize(
    "answer",
    ["a\u0000b", '"quoted"\\', "\u2028\u200b\ufeff", "x" * 60_000],
    ids=["nul", "quotes", "invisible", "long"],
)
def test_an_answer_is_stored_byte_for_byte(viewer, broadcaster, answer):
    submit(viewer(), answer)

    assert [(answer, 1)] == ranking(broadcaster)


@pytest.mark.ruling("W8")
@pytest.mark.parametrize("buffer", ["a b&c", "caf\u00e9", "\U0001f600" * 64, "x" * 64, "a/b?c#d", "%", "+", "global-"])
def test_an_id_is_1_to_64_printable_characters(viewer, broadcaster, buffer):
    viewer().post("rank", params={"id": buffer}, json={"key": "blue"})

    rows = broadcaster.get("rank", params={"id": buffer}).json()["data"]

    assert [{"key": "blue", "score": 1}] == rows
    assert [] == ranking(broadcaster)


@pytest.mark.ruling("W8")
@pytest.mark.parametrize("buffer", ["x" * 65, "\U0001f600" * 65, "a\u0000", "a\nb", "\u200b", "\u2028"])
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_an_invalid_id_is_refused(broadcaster, method, buffer):
    answer = broadcaster.request(method, "rank", params={"id": buffer}, json={"key": "blue"})

    assert (400, "Invalid id") == reason(answer)


@pytest.mark.ruling("W8")
def test_an_absent_or_empty_id_is_default(viewer, broadcaster):
    for user, where in enumerate(["", "?id=", "?id=default"]):
        submit(viewer(str(user)), "blue", where)

    assert [("blue", 3)] == ranking(broadcaster)


def test_a_poll_and_a_ranking_with_the_same_id_are_separate(viewer, broadcaster):
    submit(viewer(), "5")
    broadcaster.delete("vote")

    assert 0 == viewer().get("vote").json()["count"]
    assert [("5", 1)] == ranking(broadcaster)
