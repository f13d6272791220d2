"""What enters the journal: every response, every reply to a frame, every delivery (operations, Controlling)."""

from __future__ import annotations

import json

import httpx
import pytest
from websockets.exceptions import InvalidStatus

from emulator.core.settings import Limits, Settings
from support.broadcasts import subscribed_game
from support.journal import entries_of, entry_of
from support.process import wait_until
from support.pusher_client import PusherClient, pusher_channel, subscribed_page
from support.service import CHANNEL, CLIENT_ID, Client, LiveServer, live_server
from support.socket_client import SocketClient, linked_game


@pytest.mark.parametrize(
    "path",
    ["/favicon.ico", "/.well-known/appspecific/com.chrome.devtools.json"],
)
def test_what_a_browser_requests_by_itself_is_not_the_latest_refusal(live: LiveServer, stranger: Client, path: str):
    assert 404 == stranger.get(path).status_code

    assert ({}, []) == (stranger.get("/_emulator/explain").json(), entries_of(live))


@pytest.mark.parametrize(
    ("method", "path", "status", "shown"),
    [
        ("GET", "/v1/e/vote/A1B2C3", 404, "/v1/e/vote/[hidden]"),
        ("GET", "/nothing.ico", 404, "/nothing.ico"),
        ("GET", "/_emulator/nothing", 404, "/_emulator/nothing"),
        ("PUT", "/v1/e/vote", 405, "/v1/e/vote"),
        ("OPTIONS", "/v1/e/vote", 200, "/v1/e/vote"),
        ("GET", "//v1/e/vote", 401, "/v1/e/vote"),
        ("GET", "/_emulator/wait?for=nothing", 400, "/_emulator/wait"),
        ("GET", "/_ns", 200, "/_ns"),
        ("GET", "/_ns/no!name/v1/e/vote", 400, "/_ns/[hidden]/v1/e/vote"),
    ],
)
def test_every_response_is_recorded(live: LiveServer, method: str, path: str, status: int, shown: str):
    answer = httpx.request(method, f"{live.url}{path}")

    entry = entry_of(live, answer)

    assert (f"{method} {shown}", status, status) == (entry["endpoint"], answer.status_code, entry["status"])
    assert len(answer.content) == entry["response"]["size"]
    if status >= 400:
        assert answer.json()["reason"] == entry["reason"]
        assert entry["detail"]


@pytest.mark.parametrize("hot", [True, False])
def test_a_hot_endpoint_is_recorded_once_on_either_way(live: LiveServer, viewer, hot: bool):
    # A body in chunks does not take the hot path.
    body = b'{"value":1}' if hot else (part for part in (b'{"value"', b":1}"))

    viewer().post("vote", content=body)

    assert [(200, '{"value":1}')] == [
        (each["status"], each["request"]["text"]) for each in entries_of(live, path="/v1/e/vote")
    ]


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


def test_each_reply_to_a_frame_is_recorded(live: LiveServer):
    with linked_game(live) as game:
        game.data("set", "state", {"state_id": "channel", "state": {"round": 1}})
        game.error("set", "state", {"state_id": "nothing"})
        game.error("dance", "state")
        game.socket.send("no JSON")
        game.reply()

        entries = entries_of(live, kind="frame")

    assert [
        *(("authenticate", 200), ("set state", 200), ("set state", 400), ("dance state", 404), ("", 400)),
    ] == [(each["endpoint"], each["status"]) for each in entries]
    _, stored, refused, _, unreadable = entries
    assert (CLIENT_ID, "broadcaster", CHANNEL) == tuple(
        stored["caller"][name] for name in ("client_id", "role", "channel_id")
    )
    assert {"round": 1} == json.loads(stored["request"]["text"])["data"]["state"]
    assert json.loads(refused["response"]["text"])["errors"][0]["detail"] == refused["detail"]
    assert "no JSON" == unreadable["request"]["text"]
    assert [1, 2, 3, 4, 5] == [int(each["id"].rpartition("/")[2]) for each in entries]


def test_each_frame_of_a_page_is_recorded(live: LiveServer):
    with PusherClient(live) as page:
        page.subscribe(pusher_channel())
        page.send("pusher:subscribe", {"channel": "private-x"})
        page.reply()
        page.send("dance", {})
        page.error()
        page.pong()
    with PusherClient(live, "?protocol=3") as page:
        assert 4007 == page.close_code()

    entries = entries_of(live, kind="frame")
    assert [
        *(("pusher:subscribe", 200, ""), ("pusher:subscribe", 403, "AuthError"), ("dance", 400, "Bad frame")),
        *(("pusher:ping", 200, ""), ("close", 4007, "unsupported protocol version")),
    ] == [(each["endpoint"], each["status"], each["reason"] or each["detail"]) for each in entries]
    assert "subscription_succeeded" in entries[0]["response"]["text"]


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
    broadcaster.post("broadcast", json={"event": "unheard", "data": 1}).raise_for_status()
    with linked_game(live) as game, subscribed_game(live, "viewer", user="5551"), subscribed_page(live):
        game.data("subscribe", "*")

        sent = broadcaster.post("broadcast", json={"event": "goal", "data": {"team": 1}})
        unheard, to_games, to_pages = entries_of(live, kind="delivery")

    assert ("event:unheard", 0, []) == (unheard["endpoint"], unheard["delivered"], unheard["recipients"])
    assert ("event:goal", f"{CLIENT_ID}/{CHANNEL}", 2, 0) == tuple(
        to_games[name] for name in ("endpoint", "path", "delivered", "dropped")
    )
    assert {"(game, broadcaster 777)", "(game, viewer 777)"} == {
        each.partition(" (")[1][1:] + each.partition(" (")[2] for each in to_games["recipients"]
    }
    numbers = {each["socket"] for each in entries_of(live, status=101)}
    assert {int(each.split()[1]) for each in (*to_games["recipients"], *to_pages["recipients"])} == numbers
    assert {"team": 1} == json.loads(to_games["response"]["text"])["data"]["data"]
    assert ("page", 1) == (to_pages["endpoint"], to_pages["delivered"])
    assert [sent.headers["x-request-id"]] * 2 == [to_games["id"], to_pages["id"]]
    assert "broadcaster" == to_games["caller"]["role"]


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

    assert (1013, "B4", number) == (closed["status"], closed["rule"], closed["socket"])
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


def test_production_records_nothing(production: LiveServer):
    httpx.get(f"{production.url}/nothing")
    with SocketClient(production) as game:
        game.request("get", "state")

    assert (0, 0) == (len(production.service.journal), production.service.journal.mark)
