"""Accumulation buffers: sizes, entries, order, and who reads them."""

from __future__ import annotations

import json
from typing import Any

from extcli.api.tokens import opaque_id
from extcli.conform.calls import Caller
from extcli.conform.deployment import Deployment
from extcli.conform.rule import expect, expect_members, reads, writes


class Buffer:
    """A new buffer, as callers use it."""

    def __init__(self, at: Deployment, *values: Any) -> None:
        """Add values as the probe's viewer, in order."""
        self._at = at
        self.id = at.fresh("buffer")
        for value in values:
            self.add(value)

    def add(self, value: Any, by: Caller | None = None, *, status: int = 200) -> None:
        """Add a value as the probe's viewer, or another caller. Bytes are sent as they are."""
        (by or self._at.viewer).post("accumulate", value, id=self.id, status=status)

    def read(self, by: Caller | None = None, **query: Any) -> Any:
        """Return the buffer as its broadcaster, or another caller, reads it."""
        return (by or self._at.broadcaster).get("accumulate", id=self.id, **query).json

    def holds(self, *wanted: Any, **query: Any) -> None:
        """Raise `Differs` unless its broadcaster reads these values, the newest first."""
        expect("the values", list(wanted), [entry["data"] for entry in self.read(**query)["data"]])


@reads("R2")
def malformed_start(at: Deployment) -> None:
    """A `start` that is not an integer is refused with 400."""
    for start in ("x", "1.5", "1e3", "null", "1_000", " 1", "\u0661"):
        at.broadcaster.get("accumulate", id=at.fresh("buffer"), start=start, status=400)


@writes("spec: Limits")
def size_of_a_value(at: Deployment) -> None:
    """A value of 255 bytes is stored; one of 256 is refused with 400."""
    buffer, fits = Buffer(at), "x" * 253
    at.viewer.post("accumulate", fits, id=buffer.id).returns({})
    buffer.add(f"{fits}x", status=400)
    buffer.holds(fits)


@writes("R3")
def compact_size_of_a_value(at: Deployment) -> None:
    """The limit of a value counts bytes of compact UTF-8 JSON: not spaces, and not escapes of letters."""
    buffer, letters = Buffer(at), "\u00e9" * 126
    buffer.add(json.dumps(letters).encode())
    buffer.add(f"{letters}\u00e9", status=400)
    buffer.add(b'{ "a" : 1 }' + b" " * 1000)
    buffer.holds({"a": 1}, letters)


@writes("spec: Accumulation")
def stored_values(at: Deployment) -> None:
    """Any JSON is stored unchanged, newest first."""
    stored: list[Any] = [
        {"rating": 5},
        [],
        None,
        True,
        -0.5,
        "5",
        "\0",
        10**30,
        {"": {"b": [None]}},
    ]
    Buffer(at, *stored).holds(*stored[::-1])


@writes("spec: Resources")
def entries_of_a_buffer(at: Deployment) -> None:
    """An entry has its time, its channel, and the poster's user id, or opaque id if they do not share it."""
    opaque, buffer = at.fresh("opaque", prefix="A"), Buffer(at, 1)
    buffer.add(2, at.caller("viewer", None, opaque=opaque))
    latest, first = buffer.read()["data"]
    expect_members({"channel_id": at.channel, "opaque_id": opaque, "user_id": ""}, latest)
    expect_members({"channel_id": at.channel, "opaque_id": "", "user_id": at.user}, first)
    at.check_are_recent("`observed`", [latest["observed"], first["observed"]])


@writes("R2")
def opaque_user_id_of_an_entry(at: Deployment) -> None:
    """`opaque_user_id` is the poster's opaque id, also if the user id is shared."""
    expect("`opaque_user_id`", opaque_id(at.user), Buffer(at, 1).read()["data"][0]["opaque_user_id"])


@writes("spec: Accumulation")
def start_of_a_read(at: Deployment) -> None:
    """A read has the entries from `start` on, any integer; `latest` is always the time of the newest entry."""
    buffer = Buffer(at, 1, 2)
    read = buffer.read()
    times = [entry["observed"] for entry in read["data"]]
    expect("`latest`", max(times), read["latest"])
    for start in (min(times), -(10**40)):
        buffer.holds(2, 1, start=start)
    for start in (max(times) + 1, 10**40):
        later = buffer.read(start=start)
        expect("the buffer with `start` after its newest entry", {"data": [], "latest": max(times)}, later)


@writes("spec: Accumulation")
def buffer_of_a_channel(at: Deployment) -> None:
    """A broadcaster reads the entries of their channel; a token without a channel reads those of all channels."""
    buffer, second = Buffer(at, 1), at.fresh("channel")
    buffer.add(2, at.caller("viewer", channel=second))
    buffer.holds(1, channel_id=second)
    read = buffer.read(at.extension_backend)["data"]
    seen = [[entry["channel_id"], entry["data"]] for entry in read]
    expect("the pairs of channel and value that a backend reads", [[second, 2], [at.channel, 1]], seen)
