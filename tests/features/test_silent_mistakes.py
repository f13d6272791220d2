"""Which names, parameters and durations have a hint. `tests/cli/test_logs_command.py` has what commands print."""

from __future__ import annotations

import httpx
import pytest

from support.explanations import id_of, why
from support.journal import entries_of, entry_of
from support.service import CHANNEL, Client, LiveServer


def hint_of(answer: httpx.Response) -> str | None:
    return answer.headers.get("x-emulator-hint")


# Names


def test_a_misspelt_poll_is_pointed_out_when_it_is_read(live: LiveServer, viewer):
    viewer().post("vote?id=lunch", json={"value": 1})

    answer = viewer().get("vote?id=lunhc")
    explained = httpx.get(f"{live.url}/_emulator/explain", params={"id": answer.headers["x-request-id"]}).json()

    hints = [hint_of(answer), entry_of(live, answer)["hint"], explained["hint"]]
    assert ["there is no poll lunhc; did you mean lunch?"] * 3 == hints


@pytest.mark.parametrize(
    ("method", "path", "body", "kind"),
    [
        ("DELETE", "vote", {"value": 1}, "poll"),
        ("GET", "vote_config", {"config": {}}, "poll"),
        ("GET", "rank", {"key": "blue"}, "ranking"),
        ("GET", "accumulate", {"x": 1}, "buffer"),
        ("GET", "json_store", {"a": 1}, "JSON store"),
    ],
)
def test_any_other_misspelt_id_is_pointed_out(broadcaster: Client, method, path, body, kind):
    broadcaster.post(f"{path}?id=lunch", json=body).raise_for_status()

    assert f"there is no {kind} lunhc; did you mean lunch?" == hint_of(broadcaster.request(method, f"{path}?id=lunhc"))


def test_a_misspelt_client_id_is_pointed_out(live: LiveServer):
    live.client("viewer", user="1", channel=CHANNEL, client_id="my-extension").post("vote", json={"value": 1})
    wrong = live.client("viewer", user="1", channel=CHANNEL, client_id="my-extention")
    hint = "the client id my-extention is not known; did you mean my-extension?"

    assert [hint, hint] == [hint_of(wrong.get("vote")), hint_of(wrong.get("vote"))]
    assert hint_of(live.client("viewer", user="2", channel=CHANNEL, client_id="my-extension").get("vote")) is None


def test_a_misspelt_event_is_pointed_out_to_its_listener(live: LiveServer, broadcaster: Client, game):
    broadcaster.post("broadcast", json={"event": "party", "data": {}})
    game.request("subscribe", "broadcast", {"topic_id": "partty"})

    frame = entries_of(live, kind="frame", search="partty")[0]
    assert "no event partty has been sent yet; did you mean party?" == frame["hint"]


def test_a_misspelt_namespace_is_pointed_out_when_it_is_created(live: LiveServer, stranger: Client):
    stranger.post("/_ns/mytest").raise_for_status()
    headers = {"Authorization": viewer_header(live)}
    first, second = (stranger.get("/_ns/mytets/v1/e/vote", headers=headers) for _ in range(2))

    assert ["mytets is a new namespace; did you mean mytest?", None] == [hint_of(first), hint_of(second)]


def test_a_misspelt_poll_is_pointed_out_when_its_first_vote_creates_it(broadcaster: Client):
    broadcaster.post("vote", params={"id": "lunch"}, json={"value": 1})
    first, second = (broadcaster.post("vote", params={"id": "lunhc"}, json={"value": 1}) for _ in range(2))

    assert ["lunhc is a new poll; did you mean lunch?", None] == [hint_of(first), hint_of(second)]


def viewer_header(live: LiveServer) -> str:
    return live.client("viewer", user="1", channel=CHANNEL).headers["authorization"]


@pytest.mark.parametrize("other", ["round2", "team-blue", "boss", "x", "global-lunch"])
def test_names_that_differ_on_purpose_have_no_hint(viewer, other: str):
    for id in ("round1", "team-red", "bass", "y", "lunch"):
        viewer().post(f"vote?id={id}", json={"value": 1})

    assert hint_of(viewer().post(f"vote?id={other}", json={"value": 1})) is None


def test_no_poll_that_is_gone_or_of_another_channel_or_extension_is_suggested(live, viewer, broadcaster: Client):
    viewer().post("vote?id=lunch", json={"value": 1})
    assert hint_of(viewer().get("vote?id=lunhc"))
    assert viewer().get("vote?id=lunhc").content == viewer().get("vote?id=dinner").content
    broadcaster.delete("vote?id=lunch")
    live.client("viewer", user="1", channel="888").post("vote?id=lunch", json={"value": 1})
    live.client("viewer", user="1", channel=CHANNEL, client_id="zebra").post("vote?id=lunch", json={"value": 1})

    assert hint_of(viewer().get("vote?id=lunhc")) is None


def test_production_gives_no_hints(production: LiveServer):
    voter = production.client("viewer", user="1", channel="hints", exp=2 * 10**9)
    voter.post("vote?id=lunch", json={"value": 1})
    answers = [voter.post("vote?id=lunhc", json={"value": 1}), voter.get("vote?id=lunhc&channel_id=2")]

    assert [(200, None)] * 2 == [(each.status_code, hint_of(each)) for each in answers]


# Other mistakes


@pytest.mark.parametrize("path", ["vote", "user_info"])
def test_a_name_quoted_in_a_hint_cannot_add_a_header(broadcaster: Client, path: str):
    answer = broadcaster.get(path, params={"channel_id": "8\r\nX-Own: 1\x00é" + "8" * 1_000})

    assert (200, False) == (answer.status_code, "x-own" in answer.headers)
    assert str(hint_of(answer)).startswith(r"channel_id=8\u000d\u000aX-Own: 1\u0000\xe988")
    assert 320 > len(str(hint_of(answer)))


# Members


@pytest.mark.parametrize("path", ["broadcast", "extension_broadcast", "whisper_self"])
def test_a_broadcast_without_an_event_is_pointed_out(admin: Client, path: str):
    hints = [
        hint_of(admin.post(path, json=body).raise_for_status())
        for body in ({"topic": "round", "data": 1}, {"data": {"event": "round"}}, {"event": "default", "data": 1})
    ]
    hints.append(hint_of(admin.get(path, params={"data": "1", "event": "default"})))

    assert ["the request names no event, so the service sent the event default"] * 2 + [None, None] == hints


FAULT = {"match": "*", "effect": "delay"}


@pytest.mark.parametrize("value", ["8d", 1.5, True])
@pytest.mark.parametrize(
    ("path", "body", "field"),
    [("clock", {}, "advance"), ("faults", FAULT, "delay"), ("faults", FAULT, "lasts")],
)
def test_a_duration_that_is_no_integer_is_refused_with_its_unit(
    live: LiveServer, stranger: Client, path: str, body: dict[str, object], field: str, value: object
):
    answer = stranger.post(f"/_emulator/{path}", json={**body, field: value})

    info = answer.json()["info"]
    assert (400, True) == (answer.status_code, info.startswith(f"{field}: expected an integer or null, got "))
    assert info.endswith("; the unit is ms")
    assert why(live, id_of(answer))["needed"].endswith(" in ms")


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        *(("/_emulator/clok", "/_emulator/clock"), ("/_emulator/seeds", "/_emulator/seed"), ("/v1/vote", "/v1/e/vote")),
        *(("/emulator/clock", "/_emulator/clock"), ("/v1/e/chanel_state", "/v1/e/channel_state")),
        *((each, "") for each in ("/_emulator/nope", "/_emulator/time", "/v1/e/node", "/x", f"/v1/e/vote{'x' * 100}")),
    ],
)
def test_a_misspelt_path_has_a_suggestion_and_one_unlike_all_others_none(stranger: Client, path: str, meant: str):
    info = stranger.get(path).json()["info"]

    assert (f"did you mean {meant}?" in info) if meant else "did you mean" not in info
