"""Polls: casting, replacing, reading and clearing votes (Poll, Voting; rulings P1, P2, A3, A4, W8)."""

from __future__ import annotations

import json

import httpx
import pytest

from support.service import Client


def cast(client: Client, value: object, where: str = "") -> dict:
    return client.post(f"vote{where}", json={"value": value}).raise_for_status().json()


def stats(client: Client, where: str = "") -> dict:
    return client.get(f"vote{where}").raise_for_status().json()["stats"]


def count(client: Client, where: str = "") -> int:
    return stats(client, where)["count"]


def reason(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["reason"]


@pytest.mark.ruling("P1")
def test_a_poll_without_votes_reads_as_zeros(viewer):
    poll = viewer().get("vote").json()

    empty = {"stddev": 0, "mean": 0, "sum": 0, "count": 0, "specific": [0] * 64}
    assert {"stats": empty, **empty} == poll


@pytest.mark.ruling("P1")
def test_a_vote_returns_the_poll_including_the_vote(viewer):
    cast(viewer("U1"), 1)

    poll = cast(viewer("U2"), 4)

    specific = [0, 1, 0, 0, 1] + [0] * 59
    expected = {"stddev": 1.5, "mean": 2.5, "sum": 5, "count": 2, "specific": specific}
    assert {"stats": expected, **expected, "vote": 4} == poll
    assert poll == viewer("U2").get("vote").json()


def test_a_second_vote_replaces_the_first(viewer):
    cast(viewer("U1"), 3)

    poll = cast(viewer("U1"), 5)

    assert (1, 5, 5) == (poll["stats"]["count"], poll["stats"]["sum"], poll["vote"])


def test_the_response_contains_the_callers_own_vote(viewer):
    cast(viewer("U1"), 3)
    cast(viewer("U2"), 7)

    votes = [viewer(user).get("vote").json().get("vote") for user in ("U1", "U2", "U3")]

    assert [3, 7, None] == votes


@pytest.mark.parametrize("role", ["viewer", "broadcaster", "admin", "backend"])
def test_any_role_may_vote_and_read(live, role):
    client = live.client(role, user="1", channel="777")

    cast(client, 2)

    assert 1 == count(client)


@pytest.mark.ruling("P2")
@pytest.mark.parametrize("value", [-99, -1, 0, 63, 64, 99])
def test_a_vote_is_any_integer_from_minus_99_to_99(viewer, value):
    assert value == cast(viewer(), value)["vote"]


@pytest.mark.ruling("P2")
@pytest.mark.parametrize("value", [-100, 100, 10**6, 2**63, -(2**64), 10**400])
def test_a_value_out_of_bounds_is_refused_and_changes_nothing(viewer, value):
    cast(viewer(), 3)

    answer = viewer().post("vote", json={"value": value})

    assert (400, "Value out of bounds") == reason(answer)
    assert 3 == viewer().get("vote").json()["vote"]


@pytest.mark.ruling("P2")
@pytest.mark.parametrize(
    "text", ["true", "false", "1.0", "1e0", "1.5", '"1"', '""', "null", "[]", "[1]", "{}", "1e400", "-1e400"]
)
def test_a_value_that_is_not_a_json_integer_is_refused(viewer, text):
    answer = viewer().post("vote", content=f'{{"value":{text}}}')

    assert (400, "Invalid body") == reason(answer)
    assert 0 == count(viewer())


@pytest.mark.parametrize("body", ["{}", "null", "[]", "3", '{"Value":3}', '[{"value":3}]', '"[]"', r'"\"{}\""'])
def test_a_body_without_a_value_is_refused(viewer, body):
    assert (400, "Invalid body") == reason(viewer().post("vote", content=body))


@pytest.mark.ruling("W2")
@pytest.mark.parametrize(
    "body",
    [b"", b" ", b"value=3", b'{"value":3', b'{"value":3,}', b'{"value":3}x', b'{"value":03}', b'{"value":NaN}',
     b'{"value":Infinity}', b"{'value':3}", b'"{\\"value\\""', b'{"value":3,"x":"\\ud800"}', b"\xff\xfe",
     b'{"value":3,"x":' + b"[" * 30_000 + b"]" * 30_000 + b"}"],
)  # fmt: skip
def test_a_malformed_body_is_refused(viewer, body):
    assert (400, "Malformed json body") == reason(viewer().post("vote", content=body))


@pytest.mark.ruling("W2")
def test_a_body_is_json_whatever_its_content_type(viewer):
    types = ["application/x-www-form-urlencoded; charset=UTF-8", "text/plain", "multipart/form-data", "x"]

    for value, content_type in enumerate(types):
        poll = viewer().post("vote", content=f'{{"value":{value}}}', headers={"Content-Type": content_type}).json()
        assert value == poll["vote"]


@pytest.mark.ruling("W2")
def test_a_json_string_as_body_is_parsed_again(viewer):
    poll = viewer().post("vote", content=json.dumps('{"value": 3}')).json()

    assert 3 == poll["vote"]


@pytest.mark.ruling("W2")
def test_a_chunked_body_is_accepted(viewer):
    pieces = (piece for piece in (b'{"val', b'ue":', b" 3}"))

    poll = viewer().post("vote", content=pieces).json()

    assert 3 == poll["vote"]


@pytest.mark.ruling("W2")
def test_the_last_of_duplicate_keys_wins(viewer):
    assert 4 == viewer().post("vote", content='{"value":3,"value":4}').json()["vote"]


@pytest.mark.ruling("W7")
def test_unknown_fields_and_parameters_are_ignored(viewer):
    poll = viewer().post("vote?round=1&stats=no", json={"value": 3, "weight": 100, "vote": 9}).json()

    assert (1, 3) == (poll["stats"]["count"], poll["vote"])


@pytest.mark.ruling("P4")
@pytest.mark.parametrize("times", [-1, 0, 1, 2, 30, 31, 10**30])
def test_count_is_ignored_where_a_user_has_one_vote(viewer, times):
    poll = viewer().post("vote", json={"value": 3, "count": times}).json()

    assert 1 == poll["stats"]["count"]


@pytest.mark.ruling("W8")
@pytest.mark.parametrize("where", ["", "?id=", "?id", "?id=default", "?other=1", "?&&"])
def test_an_absent_or_empty_id_is_default(viewer, where):
    cast(viewer("U1"), 3)

    cast(viewer("U2"), 4, where)

    assert 2 == count(viewer())


def test_polls_with_different_ids_are_separate(viewer):
    cast(viewer(), 3, "?id=a")
    cast(viewer(), 4, "?id=b")

    votes = [viewer().get(f"vote?id={poll}").json().get("vote") for poll in ("a", "b", "A", "default")]

    assert [3, 4, None, None] == votes


@pytest.mark.ruling("W8")
@pytest.mark.parametrize("poll", ["a", "0", "$", "Poll$1", "a-b_c", "a" * 64, "global-x", "global-" + "a" * 57])
def test_a_poll_id_is_1_to_64_letters_digits_dollars_hyphens_underscores(viewer, poll):
    assert 3 == cast(viewer(), 3, f"?id={poll}")["vote"]


@pytest.mark.ruling("W8", "P6")
@pytest.mark.parametrize(
    "poll",
    ["a" * 65, "global-" + "a" * 58, "global-", "a.b", "a b", "a+b", "a%20b%26c", "%00", "a%00", "a%0A", "%0Aa",
     "caf%C3%A9", "%D9%A1", "%ff", "%ED%A0%80", "a/b", "..", "%2e%2e", "a'--", "*"],
)  # fmt: skip
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_an_invalid_poll_id_is_refused(broadcaster, method, poll):
    body = b'{"value":3}' if method == "POST" else b""

    answer = broadcaster.request(method, f"vote?id={poll}", content=body)

    assert (400, "Invalid poll id") == reason(answer)


def test_the_first_of_repeated_id_parameters_counts(viewer):
    cast(viewer(), 3, "?id=x&id=y")

    assert (1, 0) == (count(viewer(), "?id=x"), count(viewer(), "?id=y"))


@pytest.mark.ruling("A3")
def test_a_user_without_a_shared_id_is_known_by_the_opaque_id(viewer):
    cast(viewer(None, opaque="Aone"), 3)
    cast(viewer(None, opaque="Atwo"), 4)

    poll = cast(viewer(None, opaque="Aone"), 5)

    assert (2, 5) == (poll["stats"]["count"], poll["vote"])


@pytest.mark.ruling("A3")
def test_tokens_without_a_user_are_one_user_per_role(live):
    for role in ("viewer", "viewer", "admin", "backend", "backend"):
        poll = cast(live.client(role, channel="777"), 3)

    assert 3 == poll["stats"]["count"]


def test_clearing_a_poll_removes_its_votes(viewer, broadcaster):
    cast(viewer("U1"), 3)

    answer = broadcaster.delete("vote")

    assert (200, {}) == (answer.status_code, answer.json())
    assert 0 == count(viewer("U1"))
    assert "vote" not in viewer("U1").get("vote").json()


def test_clearing_an_absent_poll_is_not_an_error(broadcaster):
    answers = [broadcaster.delete("vote?id=never"), broadcaster.delete("vote?id=never")]

    assert [(200, {})] * 2 == [(answer.status_code, answer.json()) for answer in answers]


def test_a_vote_recreates_a_cleared_poll(viewer, broadcaster):
    for user in ("U1", "U2"):
        cast(viewer(user), 63)
    broadcaster.delete("vote")

    poll = cast(viewer("U2"), 1)

    assert (1, 1, [0, 1] + [0] * 62) == (poll["stats"]["count"], poll["stats"]["sum"], poll["stats"]["specific"])


@pytest.mark.parametrize("role", ["broadcaster", "admin", "backend"])
def test_broadcaster_admin_and_backend_may_clear_a_poll(live, role):
    client = live.client(role, user="777", channel="777")
    cast(client, 3)

    client.delete("vote")

    assert 0 == count(client)


def test_a_viewer_may_not_clear_a_poll(viewer):
    cast(viewer(), 3)

    answer = viewer().delete("vote")

    assert 403 == answer.status_code
    assert 1 == count(viewer())
