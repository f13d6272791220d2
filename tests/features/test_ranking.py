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


def test_an_absent_ranking_is_empty(broadcaster):
    assert {"data": []} == broadcaster.get("rank?id=never").json()


def test_a_first_answer_is_accepted_without_an_original(viewer):
    assert {"accepted": True} == submit(viewer(), "blue")


def test_a_second_answer_replaces_the_first_and_returns_it_as_original(viewer, broadcaster):
    submit(viewer(), "blue")

    answers = [submit(viewer(), "red"), submit(viewer(), "red"), submit(viewer(), "")]

    assert [{"accepted": True, "original": original} for original in ("blue", "red", "red")] == answers
    assert [("", 1)] == ranking(broadcaster)


def test_the_score_is_the_number_of_users_who_submitted_the_same_text(viewer, broadcaster):
    for user, answer in enumerate(["blue", "red", "red", "Red", "red ", "red"]):
        submit(viewer(str(user)), answer)

    assert [("red", 3), ("blue", 1), ("Red", 1), ("red ", 1)] == ranking(broadcaster)


def test_ties_are_in_order_of_first_submission(viewer, broadcaster):
    for user, answer in enumerate(["zebra", "ant", "mole", "ant", "zebra"]):
        submit(viewer(str(user)), answer)

    assert [("zebra", 2), ("ant", 2), ("mole", 1)] == ranking(broadcaster)


def test_an_answer_that_all_its_users_replaced_disappears(viewer, broadcaster):
    submit(viewer("U1"), "blue")
    submit(viewer("U2"), "red")
    submit(viewer("U1"), "red")

    assert [("red", 2)] == ranking(broadcaster)


def test_a_read_returns_at_most_100_answers(viewer, broadcaster):
    for user in range(101):
        submit(viewer(str(user)), f"answer {user}")
    submit(viewer("200"), "answer 100")

    rows = ranking(broadcaster)

    assert [("answer 100", 2), *((f"answer {user}", 1) for user in range(99))] == rows


@pytest.mark.parametrize(
    "answer",
    [
        "",
        " blue ",
        "caf\u00e9",
        "cafe\u0301",
        "a\u0000b",
        "\U0001f600",
        '"quoted"\\',
        "\u2028\u200b\ufeff",
        "x" * 60_000,
    ],
    ids=["empty", "spaces", "composed", "decomposed", "nul", "astral", "quotes", "invisible", "long"],
)
def test_an_answer_is_stored_byte_for_byte(viewer, broadcaster, answer):
    submit(viewer(), answer)

    assert [(answer, 1)] == ranking(broadcaster)


def test_similar_texts_are_different_answers(viewer, broadcaster):
    answers = ["caf\u00e9", "cafe\u0301", "a", "a\u0000", "a\u0000b", "1", "01", "\u0131", "i", "I"]
    for user, answer in enumerate(answers):
        submit(viewer(str(user)), answer)

    assert [(answer, 1) for answer in answers] == ranking(broadcaster)


@pytest.mark.parametrize(
    "body", ["{}", "[]", "null", '{"key":5}', '{"key":null}', '{"key":["blue"]}', '{"Key":"blue"}']
)
def test_an_answer_without_a_text_is_refused(viewer, broadcaster, body):
    assert (400, "Invalid body") == reason(viewer().post("rank", content=body))
    assert [] == ranking(broadcaster)


@pytest.mark.ruling("W2")
@pytest.mark.parametrize("body", [b"", b"blue", b'"blue"', b'{"key":"\\ud800"}', b'{"key":"\xff"}', b'{"key":"a\nb"}'])
def test_a_malformed_body_is_refused(viewer, body):
    assert (400, "Malformed json body") == reason(viewer().post("rank", content=body))


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


def test_delete_removes_the_answers(viewer, broadcaster):
    submit(viewer(), "blue")

    answer = broadcaster.delete("rank")

    assert (200, {}) == (answer.status_code, answer.json())
    assert [] == ranking(broadcaster)
    assert {"accepted": True} == submit(viewer(), "red")


def test_deleting_an_absent_ranking_is_not_an_error(broadcaster):
    answer = broadcaster.delete("rank?id=never")

    assert (200, {}) == (answer.status_code, answer.json())


def test_a_poll_and_a_ranking_with_the_same_id_are_separate(viewer, broadcaster):
    submit(viewer(), "5")
    broadcaster.delete("vote")

    assert 0 == viewer().get("vote").json()["count"]
    assert [("5", 1)] == ranking(broadcaster)
