"""Two nodes on one Redis act as one service (ruling B5)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from emulator.core.settings import Settings
from engines.redis_server import RedisServer
from support.pusher_client import PusherClient, decode_frame, parse_broadcast, subscribed_page
from support.service import CHANNEL, CLIENT_ID, Client, LiveServer, live_server
from support.socket_client import SocketClient, linked_game, request_pin
from support.waits import waiting


class Nodes(NamedTuple):
    """Two services that share only their data."""

    one: LiveServer
    other: LiveServer

    def viewer(self, user: str) -> tuple[Client, Client]:
        """Return clients of one user for both nodes."""
        return (
            self.one.client("viewer", user=user, channel=CHANNEL),
            self.other.client("viewer", user=user, channel=CHANNEL),
        )

    def broadcaster(self) -> tuple[Client, Client]:
        """Return clients of the owner of channel 777."""
        return (
            self.one.client("broadcaster", user=CHANNEL, channel=CHANNEL),
            self.other.client("broadcaster", user=CHANNEL, channel=CHANNEL),
        )

    def backend(self) -> tuple[Client, Client]:
        """Return clients of a backend, whose tokens name no channel."""
        return self.one.client("backend"), self.other.client("backend")


@pytest.fixture(scope="module")
def running_nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    with (
        RedisServer(tmp_path_factory.mktemp("redis")) as server,
        live_server(Settings(data=server.url())) as one,
        live_server(Settings(data=server.url())) as other,
    ):
        yield Nodes(one, other)


@pytest.fixture
def nodes(running_nodes: Nodes) -> Nodes:
    """Both nodes, without data."""
    running_nodes.one.reset()
    return running_nodes


def test_writes_votes_and_broadcasts_on_one_node_reach_games_on_the_other(nodes: Nodes):
    # Writes on one node reach games on the other in order
    with linked_game(nodes.other) as game:
        game.data("subscribe", "state", {"topic_id": "channel"})

        for number in range(20):
            nodes.broadcaster()[0].post("channel_state", json={"round": number})

        assert list(range(20)) == [game.update()["data"]["state"]["round"] for _ in range(20)]

    # A vote on one node reaches subscribers on the other
    with linked_game(nodes.other) as game:
        game.data("subscribe", "poll", {"topic_id": "quiz"})

        nodes.viewer("1")[0].post("vote?id=quiz", json={"value": 2})

        results = game.update()["data"]
        assert (1, 2) == (results["count"], results["sum"])

    # A broadcast reaches games and pages on the other node
    with linked_game(nodes.other) as game, PusherClient(nodes.other) as page:
        game.data("subscribe", "boss")
        page.subscribe(f"twitch.pubsub.{CLIENT_ID}.{CHANNEL}")

        nodes.broadcaster()[0].post("broadcast", json={"event": "boss", "data": {"hp": 3}})

        assert {"hp": 3} == game.update()["data"]["data"]
        received = parse_broadcast(decode_frame(page.frame()))
        assert (f"sandbox:{CLIENT_ID}:boss", {"hp": 3}) == (received.event, received.data)


def test_pins_tokens_and_revocations_apply_to_both_nodes(nodes: Nodes):
    # A PIN links a game on another node and its tokens are valid on both
    with SocketClient(nodes.other) as game:
        pair = game.data("authenticate", data={"client_id": CLIENT_ID, "pin": request_pin(nodes.one)})

    with SocketClient(nodes.one) as game:
        again = game.data("authenticate", data={"client_id": CLIENT_ID, "refresh": pair["refresh"]})

    statuses = [node.bearer(again["jwt"]).get("user_info").status_code for node in nodes]
    assert ([200, 200], CHANNEL) == (statuses, again["twitch_id"])

    # A revocation applies to both nodes at once
    grant = nodes.one.client("viewer").post("pin", json={"identifier": CLIENT_ID}).json()
    nodes.broadcaster()[0].post("validate_pin", json={"pin": grant["pin"]})
    with SocketClient(nodes.other) as game:
        refresh = game.data("authenticate", data={"client_id": CLIENT_ID, "pin": request_pin(nodes.other)})["refresh"]

        nodes.broadcaster()[0].delete("pin")

        refused = game.error("authenticate", data={"client_id": CLIENT_ID, "refresh": refresh})
    assert (400, 401) == (refused["status"], nodes.other.bearer(grant["token"]).get("user_info").status_code)


def test_pages_on_both_nodes_receive_votes_and_writes_to_stores(nodes: Nodes):
    expected = {
        "vote_update:rps": 1,
        "json_store_update:motd": {"text": "hi"},
        "channel_state_update": {"round": 1},
        "channel_config_update": {"theme": "dark"},
    }
    with subscribed_page(nodes.one) as here, subscribed_page(nodes.other) as there:
        broadcaster = nodes.broadcaster()[0]
        broadcaster.post("json_store?id=motd", json={"text": "hi"}).raise_for_status()
        broadcaster.post("channel_state", json={"round": 1}).raise_for_status()
        broadcaster.post("channel_config", json={"theme": "dark"}).raise_for_status()
        nodes.viewer("1")[1].post("vote?id=rps", json={"value": 2}).raise_for_status()

        for page in (here, there):
            received = [parse_broadcast(decode_frame(page.frame())) for _ in expected]
            data = {each.event.removeprefix(f"sandbox:{CLIENT_ID}:"): each.data for each in received}
            data["vote_update:rps"] = data["vote_update:rps"]["stats"]["count"]
            data["json_store_update:motd"] = data["json_store_update:motd"]["value"]
            assert expected == data
            assert [] == page.broadcasts()


def test_a_wait_on_one_node_is_met_by_a_vote_on_the_other(nodes: Nodes):
    with waiting() as waits:
        future = waits.begin(nodes.one, "poll", count=1)

        nodes.viewer("1")[1].post("vote", json={"value": 3})

        assert {"count": 1} == future.result(10).json()["found"]


def test_the_other_node_follows_a_loaded_snapshot_at_once(nodes: Nodes, live: LiveServer):
    """It uses the key of the snapshot for PINs and tokens, and sends the results of the loaded polls."""
    live.client("viewer", user="1", channel=CHANNEL).post("vote", params={"id": "lunch"}, json={"value": 3})
    snapshot = Client().get(f"{live.url}/_emulator/snapshot", params={"keys": "true"}).content

    with linked_game(nodes.other) as game:
        game.data("subscribe", "poll", {"topic_id": "lunch"})
        Client().put(f"{nodes.one.url}/_emulator/snapshot", content=snapshot).raise_for_status()
        update = game.update()

    assert 1 == update["data"]["results"][3]
    for here, there in [(nodes.one, nodes.other), (nodes.other, nodes.one)] * 5:
        with SocketClient(there) as other_game:
            data = {"client_id": CLIENT_ID, "pin": request_pin(here)}
            refresh = other_game.data("authenticate", data=data)["refresh"]
        with SocketClient(here) as again:
            assert "jwt" in again.data("authenticate", data={"client_id": CLIENT_ID, "refresh": refresh})
