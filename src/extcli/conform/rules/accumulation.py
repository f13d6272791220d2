"""Accumulation buffers: sizes, entries, order, and who reads them."""

from __future__ import annotations

import json
from typing import Any

from extcli.api.tokens import opaque_id
from extcli.conform.deployment import Deployment
from extcli.conform.rule import ROLES, expect, expect_that, rule
from extcli.conform.rules.votes import SLACK


def add(at: Deployment, buffer: str, *values: Any) -> None:
    """Add values to a buffer as the probe's viewer, in order."""
    for value in values:
        at.viewer.post("accumulate", value, id=buffer).check()


def values(at: Deployment, buffer: str, **query: Any) -> list[Any]:
    """Read the values of a buffer as its broadcaster."""
    return [entry["data"] for entry in at.broadcaster.get("accumulate", id=buffer, **query).data["data"]]


@rule("R2", "broadcaster")
def buffer_without_entries(at: Deployment) -> None:
    """A buffer without entries is {"data": [], "latest": 0}."""
    buffer = at.broadcaster.get("accumulate", id=at.fresh("buffer")).data
    expect("the buffer", {"data": [], "latest": 0}, buffer)


@rule("spec: Authentication", *ROLES)
def buffer_by_role(at: Deployment) -> None:
    """Broadcasters, admins and backends read buffers; a viewer is refused with 403."""
    for role, status in (("viewer", 403), ("broadcaster", 200), ("admin", 200), ("backend", 200)):
        expect(f"the status for role {role}", status, at.caller(role).get("accumulate", id=at.fresh("buffer")).status)


@rule("R2", "broadcaster")
def malformed_start(at: Deployment) -> None:
    """A `start` that is not an integer is refused with 400."""
    for start in ("x", "1.5", "1e3", "null", "1_000", " 1", "\u0661"):
        reply = at.broadcaster.get("accumulate", id=at.fresh("buffer"), start=start)
        expect(f"the status with start={start}", 400, reply.status)


@rule("spec: Limits", "viewer", "broadcaster", writes=True)
def size_of_a_value(at: Deployment) -> None:
    """A value of 255 bytes is stored; one of 256 is refused with 400."""
    buffer, fits = at.fresh("buffer"), "x" * 253
    expect("status and body with 255 bytes", [200, {}], _status(at, buffer, json.dumps(fits)))
    expect("the status with 256 bytes", 400, _status(at, buffer, json.dumps(fits + "x"))[0])
    expect("the values", [fits], values(at, buffer))


@rule("R3", "viewer", "broadcaster", writes=True)
def compact_size_of_a_value(at: Deployment) -> None:
    """The limit counts bytes of compact UTF-8 JSON: not spaces, and not escapes of letters."""
    buffer, letters = at.fresh("buffer"), "\u00e9" * 126
    expect("the status with 254 bytes of UTF-8, escaped", 200, _status(at, buffer, json.dumps(letters))[0])
    expect("the status with 256 bytes of UTF-8", 400, _status(at, buffer, f'"{letters}\u00e9"')[0])
    expect("the status with 1,000 spaces", 200, _status(at, buffer, '{ "a" : 1 }' + " " * 1000)[0])
    expect("the values", [{"a": 1}, letters], values(at, buffer))


@rule("spec: Accumulation", "viewer", "broadcaster", writes=True)
def stored_values(at: Deployment) -> None:
    """Any JSON is stored unchanged, newest first."""
    buffer = at.fresh("buffer")
    stored: list[Any] = [{"rating": 5}, [], None, True, -0.5, "5", "\0", 10**30, {"": {"b": [None]}}]
    add(at, buffer, *stored)
    expect("the values", stored[::-1], values(at, buffer))


@rule("spec: Resources", "viewer", "broadcaster", writes=True)
def entries_of_a_buffer(at: Deployment) -> None:
    """An entry has time, channel, and the poster's user id, or opaque id if it is not shared."""
    buffer, opaque, before = at.fresh("buffer"), at.fresh("opaque", prefix="A"), at.now()
    add(at, buffer, 1)
    at.caller("viewer", None, opaque=opaque).post("accumulate", 2, id=buffer).check()
    read = at.broadcaster.get("accumulate", id=buffer).data
    expect(
        "channel, opaque id and user id of the entries",
        [[at.channel, opaque, ""], [at.channel, "", at.user]],
        [[entry.get(name) for name in ("channel_id", "opaque_id", "user_id")] for entry in read["data"]],
    )
    near = all(before - SLACK < entry["observed"] < at.now() + SLACK for entry in read["data"])
    times = [entry["observed"] for entry in read["data"]]
    expect_that("`observed`", near, "the time of the call in Unix ms", times)


@rule("R2", "viewer", "broadcaster", writes=True)
def opaque_user_id_of_an_entry(at: Deployment) -> None:
    """`opaque_user_id` is the poster's opaque id, also if the user id is shared."""
    buffer = at.fresh("buffer")
    add(at, buffer, 1)
    entry = at.broadcaster.get("accumulate", id=buffer).data["data"][0]
    expect("`opaque_user_id`", opaque_id(at.user), entry.get("opaque_user_id"))


@rule("spec: Accumulation", "viewer", "broadcaster", writes=True)
def latest_entry(at: Deployment) -> None:
    """`latest` is the time of the newest entry, whatever `start` is."""
    buffer = at.fresh("buffer")
    add(at, buffer, 1, 2)
    read = at.broadcaster.get("accumulate", id=buffer).data
    newest = max(entry["observed"] for entry in read["data"])
    expect("`latest`", newest, read["latest"])
    later = at.broadcaster.get("accumulate", id=buffer, start=newest + 1).data
    expect("the buffer read from after its newest entry", {"data": [], "latest": newest}, later)


@rule("spec: Accumulation", "viewer", "broadcaster", writes=True)
def start_of_a_read(at: Deployment) -> None:
    """`start` is inclusive, and any integer."""
    buffer = at.fresh("buffer")
    add(at, buffer, 1)
    observed = at.broadcaster.get("accumulate", id=buffer).data["data"][0]["observed"]
    expect("the values from the time of the entry", [1], values(at, buffer, start=observed))
    expect("the values from one ms later", [], values(at, buffer, start=observed + 1))
    for start, wanted in ((-(10**40), [1]), (10**40, [])):
        expect(f"the values with start={start}", wanted, values(at, buffer, start=start))


@rule("spec: Accumulation", "viewer", "broadcaster", "backend", writes=True)
def buffer_of_a_channel(at: Deployment) -> None:
    """A broadcaster reads their own channel; an extension-level token reads all."""
    buffer, second = at.fresh("buffer"), at.fresh("channel")
    for channel, value in ((at.channel, 1), (second, 2)):
        at.caller("viewer", channel=channel).post("accumulate", value, id=buffer).check()
    expect("the values that the broadcaster reads", [1], values(at, buffer, channel_id=second))
    read = at.caller("backend", channel=None).get("accumulate", id=buffer).data["data"]
    expect(
        "the values with their channels that a backend reads",
        [[second, 2], [at.channel, 1]],
        [[entry["channel_id"], entry["data"]] for entry in read],
    )


def _status(at: Deployment, buffer: str, text: str) -> list[Any]:
    """Add this JSON text; return the status and the body of the response."""
    reply = at.viewer.call("POST", "accumulate", content=text.encode(), id=buffer)
    return [reply.status, reply.json]
