"""Which names and parameters have a hint. `tests/cli/test_ten_mistakes.py` has what each surface says of one."""

from __future__ import annotations

import httpx
import pytest

from support.journal import entries_of, entry_of
from support.service import CHANNEL, Client, LiveServer

PAGE = "https://extension.example"


def hint_of(answer: httpx.Response) -> str | None:
    return answer.headers.get("x-emulator-hint")


# Names


def test_a_misspelt_poll_is_pointed_out_when_it_is_read(live: LiveServer, viewer):
    viewer().post("vote?id=lunch", json={"value": 1})

    answer = viewer().get("vote?id=lunhc")
    explained = httpx.get(f"{live.url}/_emulator/explain", params={"id": answer.headers["x-request-id"]}).json()

    hints = [hint_of(answer), entry_of(live, answer)["hint"], explained["hint"]]
    assert ["there is no poll lunhc; did you mean lunch?"] * 3 == hints


@pytest.mark.parametrize("path", ["vote_config?id=lunhc", "codes/mark_from_poll?id=lunhc"])
def test_a_misspelt_poll_is_pointed_out_wherever_it_is_named(admin: Client, viewer, path: str):
    viewer().post("vote?id=lunch", json={"value": 1})
    admin.put("codes", json={"codes": [["a"]], "names": ["hats"]}).raise_for_status()
    body = {"prize_limits": [1], "prizes": [0], "correct": 1, "cutoff_timestamp": 10**10}
    answer = admin.get(path) if "config" in path else admin.post(path, json=body)

    assert "there is no poll lunhc; did you mean lunch?" == hint_of(answer)


@pytest.mark.parametrize(
    ("method", "path", "body", "name", "wrong", "kind"),
    [
        ("DELETE", "vote", {"value": 1}, "lunch", "lunhc", "poll"),
        ("GET", "rank", {"key": "blue"}, "color", "colro", "ranking"),
        ("GET", "accumulate", {"x": 1}, "clicks", "clikcs", "buffer"),
        ("GET", "json_store", {"a": 1}, "level", "levle", "JSON store"),
    ],
)
def test_any_other_misspelt_id_is_pointed_out(broadcaster: Client, method, path, body, name, wrong, kind):
    broadcaster.post(f"{path}?id={name}", json=body).raise_for_status()

    answer = broadcaster.request(method, f"{path}?id={wrong}")

    assert f"there is no {kind} {wrong}; did you mean {name}?" == hint_of(answer)


def test_a_misspelt_client_id_is_pointed_out(live: LiveServer):
    live.client("viewer", user="1", channel=CHANNEL, client_id="my-extension").post("vote", json={"value": 1})
    wrong = live.client("viewer", user="1", channel=CHANNEL, client_id="my-extention")
    hint = "the client id my-extention is not known; did you mean my-extension?"

    assert [hint, hint] == [hint_of(wrong.get("vote")), hint_of(wrong.get("vote"))]
    assert hint_of(live.client("viewer", user="2", channel=CHANNEL, client_id="my-extension").get("vote")) is None


def test_a_page_with_a_misspelt_client_id_learns_it_from_its_token(live: LiveServer, stranger: Client):
    live.client("viewer", user="1", channel=CHANNEL, client_id="my-extension").get("vote")
    body = {"extension_id": "my-extention", "role": "viewer", "user_id": "1", "channel_id": CHANNEL}
    answer = stranger.post("/v1/e/authtoken", json=body)

    assert "the client id my-extention is not known; did you mean my-extension?" == hint_of(answer)


def test_a_misspelt_event_is_pointed_out_to_its_listener(live: LiveServer, broadcaster: Client, game):
    broadcaster.post("broadcast", json={"event": "party", "data": {}})
    game.request("subscribe", "broadcast", {"topic_id": "partty"})

    frame = entries_of(live, kind="frame", search="partty")[0]
    assert "nothing has been sent here as partty; did you mean party?" == frame["hint"]


def test_a_misspelt_namespace_is_pointed_out_when_it_is_created(live: LiveServer, stranger: Client):
    stranger.post("/_ns/mytest").raise_for_status()
    headers = {"Authorization": viewer_header(live)}
    first, second = (stranger.get("/_ns/mytets/v1/e/vote", headers=headers) for _ in range(2))

    assert ["mytets is a new namespace; did you mean mytest?", None] == [hint_of(first), hint_of(second)]


def viewer_header(live: LiveServer) -> str:
    return live.client("viewer", user="1", channel=CHANNEL).headers["authorization"]


@pytest.mark.parametrize("other", ["round2", "team-blue", "boss", "x", "global-lunch"])
def test_names_that_differ_on_purpose_have_no_hint(viewer, other: str):
    for id in ("round1", "team-red", "bass", "y", "lunch"):
        viewer().post(f"vote?id={id}", json={"value": 1})

    assert hint_of(viewer().post(f"vote?id={other}", json={"value": 1})) is None


def test_a_poll_that_is_gone_is_not_suggested(viewer, broadcaster: Client):
    viewer().post("vote?id=lunch", json={"value": 1})
    assert hint_of(viewer().get("vote?id=lunhc"))
    broadcaster.delete("vote?id=lunch")

    assert hint_of(viewer().get("vote?id=lunhc")) is None


def test_polls_of_other_extensions_and_channels_are_not_suggested(live: LiveServer, viewer):
    live.client("viewer", user="1", channel="888").post("vote?id=lunch", json={"value": 1})
    live.client("viewer", user="1", channel=CHANNEL, client_id="zebra").post("vote?id=lunch", json={"value": 1})

    assert hint_of(viewer().get("vote?id=lunhc")) is None


def test_production_gives_no_hints(production: LiveServer):
    voter = production.client("viewer", user="1", channel="hints", exp=2 * 10**9)
    voter.post("vote?id=lunch", json={"value": 1})
    answers = [voter.post("vote?id=lunhc", json={"value": 1}), voter.get("vote?id=lunhc&channel_id=2")]

    assert [(200, None)] * 2 == [(each.status_code, hint_of(each)) for each in answers]


def test_a_hint_changes_no_body(live: LiveServer, viewer):
    viewer().post("vote?id=lunch", json={"value": 1})
    near, far = viewer().get("vote?id=lunhc"), viewer().get("vote?id=dinner")

    assert hint_of(near)
    assert near.content == far.content


# Other mistakes


@pytest.mark.parametrize("asked", ["authorization", "Authorization, CONTENT-TYPE", "", None])
def test_a_preflight_with_allowed_headers_is_not_refused(live: LiveServer, stranger: Client, asked: str | None):
    headers = {"Origin": PAGE, **({} if asked is None else {"Access-Control-Request-Headers": asked})}

    assert "" == entry_of(live, stranger.options("/v1/e/vote", headers=headers))["reason"]


def test_naming_the_channel_of_the_token_has_no_hint(broadcaster: Client):
    assert hint_of(broadcaster.get("vote?channel_id=777")) is None


@pytest.mark.parametrize("path", ["vote", "user_info"])
def test_a_name_quoted_in_a_hint_cannot_add_a_header(broadcaster: Client, path: str):
    answer = broadcaster.get(path, params={"channel_id": "8\r\nX-Own: 1\x00é" + "8" * 1_000})

    assert (200, False) == (answer.status_code, "x-own" in answer.headers)
    assert str(hint_of(answer)).startswith(r"channel_id=8\u000d\u000aX-Own: 1\u0000\xe988")
    assert 320 > len(str(hint_of(answer)))


# Members


@pytest.mark.parametrize("path", ["broadcast", "extension_broadcast", "whisper_self"])
@pytest.mark.parametrize(
    ("body", "hint"),
    [
        ({"topic": "round", "data": 1}, "the request has no event, so it sent the event default"),
        ({"data": {"event": "round"}}, "the request has no event, so it sent the event default"),
        ({"event": "default", "data": 1}, None),
        ({"event": "round", "data": 1}, None),
    ],
    ids=["none", "inside the data", "default", "another"],
)
def test_a_broadcast_without_an_event_is_pointed_out(admin: Client, path: str, body: dict[str, object], hint: str):
    assert hint == hint_of(admin.post(path, json=body).raise_for_status())


def test_the_event_in_the_query_counts_as_one(admin: Client):
    answers = [admin.get(f"broadcast?data=1{event}") for event in ("", "&event=default")]

    assert ["the request has no event, so it sent the event default", None] == [hint_of(each) for each in answers]
