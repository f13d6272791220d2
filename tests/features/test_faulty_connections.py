"""Faults of the connection, seen by a raw TCP client: late, cut and absent responses."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import pytest

from support.faults import RawClient, add_fault, hits_of, remove_faults
from support.journal import entries_of
from support.process import wait_until
from support.service import Client, LiveServer, RunningService

VOTE = "POST /v1/e/vote"
PATH = "/v1/e/vote?id=rps"
BODY = {"value": 1}
FAULTY = ["/v1/e/vote?id=rps", "/v1/e/accumulate?id=rps", "/_ns/faulty/v1/e/vote?id=rps"]
"""Requests on the hot path, through the router, and in a namespace."""


@pytest.fixture
def raw(live: LiveServer) -> Iterator[RawClient]:
    """A TCP connection."""
    with RawClient(live) as raw:
        yield raw


def service_of(live: LiveServer, path: str) -> RunningService:
    """Return the service that a path leads to, without data."""
    service = RunningService(f"{live.url}/_ns/faulty") if path.startswith("/_ns/") else live
    service.reset()
    return service


def votes(live: LiveServer) -> int:
    """Return the number of votes in the poll."""
    reader = live.client("viewer", user="1", channel="777")
    return int(reader.get("vote", params={"id": "rps"}).raise_for_status().json()["count"])


# No response


@pytest.mark.parametrize("path", FAULTY)
@pytest.mark.parametrize("effect", ["drop", "reset"])
def test_a_dropped_request_ends_without_a_byte_and_a_reset_one_with_a_reset(live, raw, viewer, path: str, effect: str):
    add_fault(service_of(live, path), "POST /v1/e/*", effect)

    raw.send(viewer(), "POST", path, BODY)

    if effect == "drop":
        assert b"" == raw.rest()
    else:
        with pytest.raises(ConnectionResetError):
            raw.rest()


@pytest.mark.parametrize("effect", ["drop", "reset", "stall"])
def test_a_request_without_a_response_does_no_work_and_is_recorded(
    live: LiveServer, raw, viewer, stranger, effect: str
):
    add_fault(live, VOTE, effect)

    raw.send(viewer(), "POST", PATH, BODY)
    (entry,) = wait_until(lambda: entries_of(live, path="/v1/e/vote"))

    assert ("f1", 0, "Fault", "docs: Faults") == tuple(entry[name] for name in ("fault", "status", "reason", "rule"))
    assert BODY == json.loads(entry["request"]["text"])
    explained = stranger.get("/_emulator/explain", params={"id": entry["id"]}).json()
    assert "Remove it: `extcli fault rm f1`." == explained["explanation"]["next_step"]
    remove_faults(live)
    assert 0 == votes(live)


def test_responses_before_a_dropped_request_arrive(live: LiveServer, raw: RawClient, viewer):
    add_fault(live, VOTE, "drop")

    before = live.run(_tasks())
    raw.send_together(viewer(), PATH, ("GET", None), ("POST", BODY), ("GET", None))

    assert 1 == raw.rest().count(b"HTTP/1.1 200 OK")
    assert wait_until(lambda: live.run(_tasks()) <= before), "nothing waits for requests after it"


# Stalls


@pytest.mark.parametrize("path", FAULTY)
@pytest.mark.parametrize("end", [remove_faults, RunningService.reset])
def test_a_stalled_request_is_silent_until_its_fault_ends(live: LiveServer, raw: RawClient, viewer, path: str, end):
    service = service_of(live, path)
    add_fault(service, "POST /v1/e/*", "stall", times=1)

    raw.send(viewer(), "POST", path, BODY)
    wait_until(lambda: [1] == hits_of(service))

    assert raw.is_silent()
    end(service)
    assert b"" == raw.rest()


@pytest.mark.parametrize("end", [remove_faults, RunningService.reset])
def test_a_fault_that_ends_while_the_body_arrives_does_not_stall(live: LiveServer, raw: RawClient, viewer, end):
    add_fault(live, VOTE, "stall")
    raw.send_head(viewer(), "POST", PATH, 2)
    wait_until(lambda: [1] == hits_of(live))

    end(live)
    raw.socket.sendall(b"{}")

    assert b"" == raw.rest()


def test_dropping_a_namespace_ends_its_stalls(live: LiveServer, raw: RawClient, viewer, stranger: Client):
    service = service_of(live, "/_ns/faulty")
    add_fault(service, VOTE, "stall")
    raw.send(viewer(), "POST", f"/_ns/faulty{PATH}", BODY)
    wait_until(lambda: [1] == hits_of(service))

    stranger.delete("/_ns/faulty").raise_for_status()

    assert b"" == raw.rest()


def test_a_client_that_leaves_a_stalled_request_frees_it(live: LiveServer, viewer):
    add_fault(live, VOTE, "stall")
    before = live.run(_tasks())
    with RawClient(live) as raw:
        raw.send(viewer(), "POST", PATH, BODY)
        wait_until(lambda: [1] == hits_of(live))

    assert wait_until(lambda: live.run(_tasks()) <= before)


# Delays


def test_a_delayed_request_gets_a_response_after_its_delay(live: LiveServer, raw: RawClient, viewer):
    add_fault(live, VOTE, "delay", delay=60_000)

    raw.send(viewer(), "POST", PATH, BODY)
    wait_until(lambda: [1] == hits_of(live))

    assert raw.is_silent()
    assert 0 == votes(live), "the work is done after the delay"
    remove_faults(live)
    status, body = raw.answer()
    assert (200, 1) == (status, json.loads(body)["count"])


def test_a_request_delayed_over_a_reset_is_refused(live: LiveServer, raw: RawClient, viewer):
    add_fault(live, VOTE, "delay", delay=60_000)
    raw.send(viewer(), "POST", PATH, BODY)
    wait_until(lambda: [1] == hits_of(live))

    live.reset()

    status, body = raw.answer()
    assert (503, "Fault") == (status, json.loads(body)["reason"])
    assert 0 == votes(live)


# Cut responses


@pytest.mark.parametrize("path", FAULTY)
@pytest.mark.parametrize("size", [0, 1, 9])
def test_a_truncated_response_has_the_head_of_the_whole(live: LiveServer, raw: RawClient, viewer, path: str, size: int):
    service = service_of(live, path)
    whole = viewer().post(f"{live.url}{path}", json=BODY)
    add_fault(service, "POST /v1/e/*", "truncate", bytes=min(size, len(whole.content)))

    raw.send(viewer(), "POST", path, BODY)

    head, _, body = raw.rest().partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert f"content-length: {len(whole.content)}".encode() in head.lower()
    assert b"x-emulator-fault: f1; effect=truncate" in head.lower()
    assert whole.content[:size] == body
    remove_faults(service)
    assert 1 == viewer().get(f"{live.url}{path}").json().get("count", 1), "it has done its work"


def test_a_streamed_response_can_be_truncated(live: LiveServer, raw: RawClient, viewer, admin: Client):
    viewer().post("vote", params={"id": "rps"}, json=BODY).raise_for_status()
    add_fault(live, "GET /v1/e/vote_logs", "truncate", bytes=7)

    raw.send(admin, "GET", "/v1/e/vote_logs?id=rps")

    _, _, body = raw.rest().partition(b"\r\n\r\n")
    assert b'7\r\n{"resul\r\n' == body


async def _tasks() -> int:
    return len(asyncio.all_tasks())
