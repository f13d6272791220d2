"""What enters the journal: every response, every reply to a frame, every delivery (operations, Controlling)."""

from __future__ import annotations

import json

import httpx
import pytest
from websockets.exceptions import InvalidStatus

from emulator.config.settings import Limits, Settings
from support.broadcasts import subscribed_game
from support.journal import entries_of, entry_of
from support.process import wait_until
from support.pusher_client import PusherClient, pusher_channel, subscribed_page
from support.service import CHANNEL, CLIENT_ID, Client, LiveServer, live_server
from support.socket_client import SocketClient, linked_game


@pytest.mark.parametrize(
    ("method", "path", "status", "shown"),
    [
        ("GET", "/v1/e/votes", 404, "/v1/e/votes"),
        ("GET", "/v1/e/vote/A1B2C3", 404, "/v1/e/vote/[hidden]"),
        ("GET", "/favicon.ico", 404, "/favicon.ico"),
        ("GET", "/_emulator/nothing", 404, "/_emulator/nothing"),
        ("PUT", "/v1/e/vote", 405, "/v1/e/vote"),
        ("HEAD", "/v1/e/vote", 405, "/v1/e/vote"),
        ("OPTIONS", "/v1/e/vote", 200, "/v1/e/vote"),
        ("OPTIONS", "/_emulator/clock", 405, "/_emulator/clock"),
        ("GET", "/_ns", 200, "/_ns"),
        ("GET", "/_ns/no!name/v1/e/vote", 400, "/_ns/[hidden]/v1/e/vote"),
    ],
)
def test_a_response_without_an_endpoint_is_recorded(
    live: LiveServer, stranger: Client, method: str, path: str, status: int, shown: str
):
    answer = stranger.request(method, path)

    entry = entry_of(live, answer)

    assert (status, status) == (answer.status_code, entry["status"])
    assert (f"{method} {shown}", shown, len(answer.content)) == (
        entry["endpoint"],
        entry["path"],
        entry["response"]["size"] if method != "HEAD" else 0,
    )
    if status >= 400 and method != "HEAD":
        assert answer.json()["reason"] == entry["reason"]
        assert entry["detail"]


def test_an_aliased_path_is_recorded_as_its_endpoint(live: LiveServer, admin: Client):
    answer = admin.get(f"{live.url}//v1/e/vote")

    assert "GET /v1/e/vote" == entry_of(live, answer)["endpoint"]


@pytest.mark.parametrize("hot", [True, False])
def test_a_hot_endpoint_is_recorded_once_on_either_way(live: LiveServer, viewer, hot: bool):
    # A body in chunks does not take the hot path.
    body = b'{"value":1}' if hot else (part for part in (b'{"value"', b":1}"))

    viewer().post("vote", content=body)

    assert [(200, '{"value":1}')] == [
        (each["status"], each["request"]["text"]) for each in entries_of(live, path="/v1/e/vote")
    ]


def test_a_body_over_the_limit_is_recorded_with_413(live: LiveServer, viewer):
    answer = viewer().post("accumulate", content=b"x" * 70_000)

    entry = entry_of(live, answer)

    assert (413, 413, "Body too large") == (answer.status_code, entry["status"], entry["reason"])


def test_a_wait_that_is_refused_is_recorded(live: LiveServer, stranger: Client):
    answer = stranger.get("/_emulator/wait?for=nothing")

    assert (400, "GET /_emulator/wait") == (
        entry_of(live, answer)["status"],
        entry_of(live, answer)["endpoint"],
    )


def test_a_handshake_is_recorded_with_the_number_of_its_socket(live: LiveServer):
    with SocketClient(live) as game:
        game.request("get", "state")

        opened, frame = entries_of(live, search=CLIENT_ID, status=101)[0], entries_of(live, kind="frame")[0]

    assert ("GET /0.2.0/my-extension", 101) == (opened["endpoint"], opened["status"])
    assert opened["socket"] == frame["socket"] > 0
    assert f"{opened['id']}/1" == frame["id"]


@pytest.mark.parametrize(
    ("path", "status", "shown"),
    [
        ("/v1/A1B2C3", 404, "/v1/[hidden]"),
        (f"/0.2.0/{'x' * 101}", 400, "/0.2.0/[hidden]"),
        ("/_ns/no!name/ws", 400, "/_ns/[hidden]/ws"),
    ],
)
def test_a_refused_handshake_is_recorded(live: LiveServer, path: str, status: int, shown: str):
    with pytest.raises(InvalidStatus):
        SocketClient(live, path)

    entry = entries_of(live, status=status)[-1]

    assert (f"GET {shown}", 0) == (entry["endpoint"], entry["socket"])
    assert entry["reason"]
    assert "A1B2C3" not in json.dumps(entry)


def test_a_handshake_that_is_not_a_websocket_is_recorded(live: LiveServer):
    answer = live.exchange(b"GET /ws HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n")

    assert b"HTTP/1.1 4" in answer
    assert ["GET /ws"] == [each["endpoint"] for each in entries_of(live, status="4xx")]


def test_a_refused_handshake_in_a_namespace_is_in_its_journal(live: LiveServer, stranger: Client):
    stranger.get("/_ns/blue-sockets/v1/e/vote")
    with pytest.raises(InvalidStatus):
        SocketClient(live, "/_ns/blue-sockets/v1/nothing")

    entries = stranger.get("/_ns/blue-sockets/_emulator/journal?path=nothing").json()["entries"]
    stranger.delete("/_ns/blue-sockets")

    assert ["GET /v1/nothing"] == [each["endpoint"] for each in entries]


def test_each_reply_to_a_frame_is_recorded(live: LiveServer):
    with linked_game(live) as game:
        game.data("set", "state", {"state_id": "channel", "state": {"round": 1}})
        game.error("set", "state", {"state_id": "nothing"})
        game.error("dance", "state")
        game.socket.send("no JSON")
        game.reply()

        login, stored, refused, unknown, unreadable = entries_of(live, kind="frame")

    assert ["authenticate", "set state", "set state", "dance state", ""] == [
        each["endpoint"] for each in (login, stored, refused, unknown, unreadable)
    ]
    assert [200, 200, 400, 404, 400] == [each["status"] for each in (login, stored, refused, unknown, unreadable)]
    assert {"client_id": CLIENT_ID, "role": "broadcaster", "channel_id": CHANNEL} == {
        name: stored["caller"][name] for name in ("client_id", "role", "channel_id")
    }
    assert {"round": 1} == json.loads(stored["request"]["text"])["data"]["state"]
    assert json.loads(refused["response"]["text"])["errors"][0]["detail"] == refused["detail"]
    assert "no JSON" == unreadable["request"]["text"]
    assert [1, 2, 3, 4, 5] == [int(each["id"].rpartition("/")[2]) for each in entries_of(live, kind="frame")]


def test_each_frame_of_a_page_is_recorded(live: LiveServer):
    with PusherClient(live) as page:
        page.subscribe(pusher_channel())
        page.send("pusher:subscribe", {"channel": "private-x"})
        page.reply()
        page.send("dance", {})
        page.error()
        page.pong()

        entries = entries_of(live, kind="frame")

    assert [
        ("pusher:subscribe", 200, ""),
        ("pusher:subscribe", 403, "AuthError"),
        ("dance", 400, "Bad frame"),
        ("pusher:ping", 200, ""),
    ] == [(each["endpoint"], each["status"], each["reason"]) for each in entries]
    assert "subscription_succeeded" in entries[0]["response"]["text"]


def test_a_page_with_an_unsupported_protocol_is_recorded(live: LiveServer):
    with PusherClient(live, "?protocol=3") as page:
        assert 4007 == page.close_code()

    [entry] = entries_of(live, kind="frame")
    assert ("close", 4007, "unsupported protocol version", "B1") == (
        entry["endpoint"],
        entry["status"],
        entry["detail"],
        entry["rule"],
    )


def test_a_socket_that_the_service_closes_is_recorded_with_the_reason(live: LiveServer):
    with SocketClient(live) as game:
        game.socket.send(b"binary")
        assert 1003 == game.close_code()
    with SocketClient(live) as game:
        game.socket.send("x" * 5_000)
        assert 1009 == game.close_code()
    with SocketClient(live) as game:
        game.socket.close(1000)

    assert [
        ("frame", 1003, "text frames only", "X3"),
        ("frame", 1009, "frame with 5000 bytes exceeds limit of 4096 bytes", "X3"),
    ] == [(each["kind"], each["status"], each["detail"], each["rule"]) for each in entries_of(live, path="close")]


def test_a_delivery_names_its_topic_and_its_recipients(live: LiveServer, broadcaster: Client):
    with linked_game(live) as game, subscribed_game(live, "viewer", user="5551"), subscribed_page(live):
        game.data("subscribe", "*")

        sent = broadcaster.post("broadcast", json={"event": "goal", "data": {"team": 1}})
        to_games, to_pages = entries_of(live, kind="delivery", search="goal")

    assert ("event:goal", f"{CLIENT_ID}/{CHANNEL}", 2, 0) == (
        to_games["endpoint"],
        to_games["path"],
        to_games["delivered"],
        to_games["dropped"],
    )
    numbers = {each["socket"] for each in entries_of(live, status=101)}
    first, second = to_games["recipients"]
    assert {"(game, broadcaster 777)", "(game, viewer 777)"} == {
        each.partition(" (")[1][1:] + each.partition(" (")[2] for each in (first, second)
    }
    assert {int(each.split()[1]) for each in (first, second, *to_pages["recipients"])} == numbers
    assert {"team": 1} == json.loads(to_games["response"]["text"])["data"]["data"]
    assert ("page", 1) == (to_pages["endpoint"], to_pages["delivered"])
    assert [sent.headers["x-request-id"]] * 2 == [to_games["id"], to_pages["id"]]
    assert "broadcaster" == to_games["caller"]["role"]


def test_a_broadcast_without_recipients_is_a_delivery(live: LiveServer, broadcaster: Client):
    broadcaster.post("broadcast", json={"event": "goal", "data": 1}).raise_for_status()

    [entry] = entries_of(live, kind="delivery")

    assert ("event:goal", 0, 0, []) == (entry["endpoint"], entry["delivered"], entry["dropped"], entry["recipients"])


def test_a_delivery_is_selected_by_the_channel_and_the_extension_of_its_topic(live: LiveServer, backend: Client):
    backend.post("broadcast?channel_id=888", json={"event": "one", "data": 1}).raise_for_status()
    backend.post("broadcast?channel_id=999", json={"event": "two", "data": 1}).raise_for_status()

    assert ["event:two"] == [each["endpoint"] for each in entries_of(live, kind="delivery", channel_id="999")]
    assert 2 == len(entries_of(live, kind="delivery", client_id=CLIENT_ID))
    assert [] == entries_of(live, kind="delivery", client_id="other")


def test_ten_recipients_are_named_and_all_are_counted(live: LiveServer, broadcaster: Client):
    games = [subscribed_game(live, "viewer", user=str(number)) for number in range(13)]
    try:
        broadcaster.post("broadcast", json={"event": "goal", "data": 1}).raise_for_status()
        [entry] = entries_of(live, kind="delivery", search="goal")
    finally:
        for game in games:
            game.__exit__(None, None, None)

    assert (13, 10) == (entry["delivered"], len(entry["recipients"]))


def test_a_recipient_with_too_much_unread_counts_as_dropped():
    with live_server(Settings(limits=Limits(outbox=16 * 1024))) as live:
        broadcaster = live.client("broadcaster", user=CHANNEL, channel=CHANNEL)
        with Client(base_url=live.url) as control, subscribed_game(live, "viewer", user="1") as game:
            number = entries_of(live, status=101)[0]["socket"]
            control.post("/_emulator/sockets/stall", json={"socket": number, "stalled": True}).raise_for_status()
            for _ in range(4):
                broadcaster.post("broadcast", json={"event": "big", "data": "x" * 7_000}).raise_for_status()
            entries = entries_of(live, kind="delivery", search="event:big")
            assert 1013 == game.close_code()

        [closed] = entries_of(live, path="close")

    assert (1013, "over 16384 bytes unread", "B4", number) == (
        closed["status"],
        closed["detail"],
        closed["rule"],
        closed["socket"],
    )
    assert [(1, 0), (1, 0), (0, 1)] == [(each["delivered"], each["dropped"]) for each in entries[:3]]
    assert entries[2]["recipients"][0].endswith("(game, viewer 777), dropped")


def test_polls_and_stores_deliver_to_their_subscribers(live: LiveServer, broadcaster: Client, viewer):
    with linked_game(live) as game:
        game.data("subscribe", "state", {"topic_id": "channel"})
        game.data("subscribe", "poll", {"topic_id": "rps"})
        broadcaster.post("channel_state", json={"a": 1})
        viewer().post("vote?id=rps", json={"value": 1})
        game.update()
        wait_until(lambda: entries_of(live, kind="delivery", path="poll:rps"))

        topics = [each["endpoint"] for each in entries_of(live, kind="delivery")]

    assert {"channel_state", "poll:rps"} == set(topics)


def test_a_request_that_changes_nothing_delivers_nothing(live: LiveServer, viewer):
    viewer().post("vote", json={"value": 1})

    assert [] == entries_of(live, kind="delivery")


def test_a_call_as_any_caller_is_recorded_as_the_call_itself(live: LiveServer, stranger: Client):
    call = {"method": "POST", "path": "/v1/e/vote", "body": {"value": 1}, "client_id": CLIENT_ID, "role": "viewer"}
    answer = stranger.post("/_emulator/call", json={**call, "channel_id": CHANNEL, "user_id": "5"}).raise_for_status()

    entry = entries_of(live, id=answer.json()["request_id"])[0]

    assert ("POST /v1/e/vote", "viewer", "5") == (
        entry["endpoint"],
        entry["caller"]["role"],
        entry["caller"]["user_id"],
    )


def test_the_entry_of_a_response_carries_what_production_would_do(live: LiveServer, viewer):
    answer = viewer().get("vote")

    assert answer.headers.get("x-emulator-production", "") == entry_of(live, answer)["production"]


def test_production_records_nothing(production: LiveServer):
    httpx.get(f"{production.url}/nothing")
    with SocketClient(production) as game:
        game.request("get", "state")

    assert (0, 0) == (len(production.service.journal), production.service.journal.mark)
