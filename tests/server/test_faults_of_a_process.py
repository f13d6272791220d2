"""Faults of `extcli serve`: at a stop, and with processes that share the data."""

from __future__ import annotations

import signal
from contextlib import ExitStack

from support.faults import RawClient, add_fault, hits_of
from support.process import server_process, unexpected_log_lines, wait_until
from support.service import CLIENT_ID
from support.socket_client import SocketClient

VOTE = "/v1/e/vote?id=rps"


def test_a_stop_ends_stalls_and_delays_within_five_seconds():
    with server_process() as served, ExitStack() as stack:
        viewer = served.client("viewer", user="5551", channel="777")
        add_fault(served, "POST /v1/e/vote", "stall")
        add_fault(served, "GET /v1/e/vote", "delay", delay=600_000)
        add_fault(served, "SOCKET connect", "stall", client_id="stalled")
        add_fault(served, "SOCKET set state", "stall")
        add_fault(served, "BROADCAST *", "delay", delay=600_000)
        stalled, delayed, handshake = (stack.enter_context(RawClient(served)) for _ in range(3))
        game = stack.enter_context(SocketClient(served, f"/0.2.0/{CLIENT_ID}"))
        stalled.send(viewer, "POST", VOTE, {"value": 1})
        delayed.send(viewer, "GET", VOTE)
        handshake.handshake("/0.2.0/stalled")
        game.send("set", "state", {})
        admin = served.client("admin", user="9001", channel="777")
        admin.post("broadcast", json={"event": "late", "data": 1}).raise_for_status()
        wait_until(lambda: [1, 1, 1, 1, 1] == hits_of(served))

        assert 0 == served.stop(signal.SIGTERM)

        assert (b"", b"") == (stalled.rest(), handshake.rest())
        assert delayed.rest().startswith(b"HTTP/1.1 503 ")
        assert 1001 == game.close_code()
        assert [] == [line for line in unexpected_log_lines(served) if " INFO emulator.audit" not in line]
