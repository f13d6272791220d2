"""Mistakes that the sandbox answers with 200, or with a refusal: each has a hint or an explanation."""

from __future__ import annotations

from base64 import b64encode

import httpx
import pytest

from support.explanations import why
from support.html_pages import read_page
from support.journal import entries_of, entry_of
from support.service import CHANNEL, SECRET, Client, LiveServer, real_seconds

DAY = 86_400_000
PAGE = "https://extension.example"


def hint_of(answer: httpx.Response) -> str | None:
    return answer.headers.get("x-emulator-hint")


def shown(live: LiveServer, answer: httpx.Response) -> str:
    """What the dashboard says of a request."""
    return read_page(f"{live.url}/_emulator/ui/requests?entry={answer.headers['x-request-id']}").text


def explained(live: LiveServer, answer: httpx.Response) -> dict[str, object]:
    params = {"id": answer.headers["x-request-id"]}
    return dict(httpx.get(f"{live.url}/_emulator/explain", params=params).raise_for_status().json())


def assert_everywhere(live: LiveServer, answer: httpx.Response, hint: str) -> None:
    """The header, the journal, `explain` and the dashboard have the hint."""
    assert hint == hint_of(answer)
    assert hint == entry_of(live, answer)["hint"]
    assert hint == explained(live, answer)["hint"]
    assert f"Hint\n{hint}" in shown(live, answer)
    assert hint in read_page(f"{live.url}/_emulator/ui/requests").text


# Names


def test_a_misspelt_poll_is_pointed_out_at_its_first_vote(live: LiveServer, viewer):
    viewer().post("vote?id=lunch", json={"value": 1})
    answer = viewer().post("vote?id=lunhc", json={"value": 1})

    assert (200, 1) == (answer.status_code, answer.json()["count"])
    assert_everywhere(live, answer, "lunhc is a new poll; did you mean lunch?")


def test_a_misspelt_poll_is_pointed_out_when_it_is_read(live: LiveServer, viewer):
    viewer().post("vote?id=lunch", json={"value": 1})

    assert_everywhere(live, viewer().get("vote?id=lunhc"), "there is no poll lunhc; did you mean lunch?")


@pytest.mark.parametrize("path", ["vote_config?id=lunhc", "codes/mark_from_poll?id=lunhc"])
def test_a_misspelt_poll_is_pointed_out_wherever_it_is_named(admin: Client, viewer, path: str):
    viewer().post("vote?id=lunch", json={"value": 1})
    admin.put("codes", json={"codes": [["a"]], "names": ["hats"]}).raise_for_status()
    body = {"prize_limits": [1], "prizes": [0], "correct": 1, "cutoff_timestamp": 10**10}
    answer = admin.get(path) if "config" in path else admin.post(path, json=body)

    assert "there is no poll lunhc; did you mean lunch?" == hint_of(answer)


def test_deleting_a_misspelt_poll_is_pointed_out(viewer, broadcaster: Client):
    viewer().post("vote?id=lunch", json={"value": 1})

    assert "there is no poll lunhc; did you mean lunch?" == hint_of(broadcaster.delete("vote?id=lunhc"))


def test_a_misspelt_ranking_is_pointed_out(viewer, broadcaster: Client):
    viewer().post("rank?id=color", json={"key": "blue"})

    assert "there is no ranking colro; did you mean color?" == hint_of(broadcaster.get("rank?id=colro"))


def test_a_misspelt_buffer_is_pointed_out(viewer, broadcaster: Client):
    viewer().post("accumulate?id=clicks", json={"x": 1})

    assert "there is no buffer clikcs; did you mean clicks?" == hint_of(broadcaster.get("accumulate?id=clikcs"))


def test_a_misspelt_json_store_is_pointed_out(viewer, broadcaster: Client):
    broadcaster.post("json_store?id=level", json={"a": 1})
    answer = viewer().get("json_store?id=levle")

    assert (404, "there is no JSON store levle; did you mean level?") == (answer.status_code, hint_of(answer))


def test_a_misspelt_client_id_is_pointed_out(live: LiveServer):
    live.client("viewer", user="1", channel=CHANNEL, client_id="my-extension").post("vote", json={"value": 1})
    wrong = live.client("viewer", user="1", channel=CHANNEL, client_id="my-extention")
    hint = "the client id my-extention is not known; did you mean my-extension?"

    for answer in (wrong.get("vote"), wrong.get("vote")):
        assert_everywhere(live, answer, hint)
    assert hint_of(live.client("viewer", user="2", channel=CHANNEL, client_id="my-extension").get("vote")) is None


def test_a_page_with_a_misspelt_client_id_learns_it_from_its_token(live: LiveServer, stranger: Client):
    live.client("viewer", user="1", channel=CHANNEL, client_id="my-extension").get("vote")
    body = {"extension_id": "my-extention", "role": "viewer", "user_id": "1", "channel_id": CHANNEL}
    answer = stranger.post("/v1/e/authtoken", json=body)

    assert "the client id my-extention is not known; did you mean my-extension?" == hint_of(answer)


def test_a_misspelt_event_is_pointed_out_to_its_sender(live: LiveServer, broadcaster: Client, game):
    game.request("subscribe", "broadcast", {"topic_id": "party"})
    answer = broadcaster.post("broadcast", json={"event": "partty", "data": {}})

    assert_everywhere(live, answer, "nothing listens to partty; did you mean party?")


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


def test_a_header_that_pages_may_not_send_is_recorded_as_refused(live: LiveServer, stranger: Client):
    headers = {"Origin": PAGE, "Access-Control-Request-Method": "GET", "Access-Control-Request-Headers": "x-panel"}
    answer = stranger.options("/v1/e/vote", headers=headers)
    detail = "a page may not send the header x-panel; allowed: Authorization, Content-Type"

    assert 200 == answer.status_code
    entry = entry_of(live, answer)
    assert ("Header not allowed", detail, "docs: CORS") == (entry["reason"], entry["detail"], entry["rule"])
    assert {
        "rule": "docs: CORS",
        "title": "A page may not send this header",
        "held": "x-panel in Access-Control-Request-Headers",
        "needed": "no headers but Authorization, Content-Type",
        "next_step": "Leave the header out, or send its value in the query or the body; only browsers refuse it.",
    }.items() <= why(live, answer.headers["x-request-id"]).items()
    assert f"Header not allowed: {detail}" in shown(live, answer)


@pytest.mark.parametrize("asked", ["authorization", "Authorization, CONTENT-TYPE", "", None])
def test_a_preflight_with_allowed_headers_is_not_refused(live: LiveServer, stranger: Client, asked: str | None):
    headers = {"Origin": PAGE, **({} if asked is None else {"Access-Control-Request-Headers": asked})}

    assert "" == entry_of(live, stranger.options("/v1/e/vote", headers=headers))["reason"]


def test_a_channel_of_another_broadcaster_is_pointed_out(live: LiveServer, broadcaster: Client):
    answer = broadcaster.get("vote?channel_id=888")

    assert 200 == answer.status_code
    hint = "channel_id=888 is ignored: the role broadcaster acts in the channel of its token, channel 777"
    assert_everywhere(live, answer, hint)
    assert hint_of(broadcaster.get("vote?channel_id=777")) is None


@pytest.mark.parametrize("path", ["vote", "user_info"])
def test_what_a_hint_quotes_adds_no_header(broadcaster: Client, path: str):
    answer = broadcaster.get(path, params={"channel_id": "8\r\nX-Own: 1\x00é" + "8" * 1_000})

    assert (200, False) == (answer.status_code, "x-own" in answer.headers)
    assert str(hint_of(answer)).startswith(r"channel_id=8\u000d\u000aX-Own: 1\u0000\xe988")
    assert 320 > len(str(hint_of(answer)))


def test_a_viewer_who_deletes_a_poll_learns_which_roles_may(live: LiveServer, viewer):
    answer = viewer().delete("vote?id=lunch")

    assert (403, "role is not authorized") == (answer.status_code, answer.json()["reason"])
    assert "the role viewer may not do this; allowed: admin, backend, broadcaster" == answer.json()["info"]
    found = why(live, answer.headers["x-request-id"])
    assert ("role viewer", "role broadcaster, admin or backend") == (found["held"], found["needed"])
    assert "Send a token of the role broadcaster (with extcli: `--as broadcaster`)." == found["next_step"]


def test_a_store_of_65_kib_learns_its_size_and_the_limit(live: LiveServer, broadcaster: Client):
    answer = broadcaster.post("channel_state", json={"a": "x" * 65 * 1024})

    found = why(live, answer.headers["x-request-id"])
    assert (413, "66568 bytes", "at most 65536 bytes") == (answer.status_code, found["held"], found["needed"])


def test_a_token_that_a_move_of_the_clock_expired_learns_that(live: LiveServer, viewer):
    held = viewer(exp=real_seconds() + 600)
    assert 200 == held.get("vote").status_code
    live.advance(8 * DAY)
    answer = held.get("vote")

    found = why(live, answer.headers["x-request-id"])
    assert (401, True) == (answer.status_code, answer.json()["info"].startswith("token expired: exp "))
    assert "this service's clock is 8 days ahead of the system's" in answer.json()["info"]
    assert "this service's clock is 8 days ahead of the system's" in found["held"]


def test_a_token_signed_with_the_text_of_the_secret_learns_to_decode_it(known: LiveServer):
    key = b64encode(SECRET)
    answer = known.client("viewer", user="1", channel=CHANNEL, exp=real_seconds() + 600, key=key).get("vote")
    production = explained(known, answer)["production"]

    assert (200, "refuse; rule=secret") == (answer.status_code, answer.headers["x-emulator-production"])
    assert isinstance(production, dict)
    assert production["text"].startswith("The token is signed with the base64 text of the extension's secret.")
    assert production["next_step"].startswith("Decode the secret before you sign:")
    assert "Decode the secret before you sign:" in shown(known, answer)
