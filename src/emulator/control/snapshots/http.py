"""`/_emulator/snapshot`: saves and loads all data of a service."""

from __future__ import annotations

from typing import Any, Final

from emulator.control.snapshots.service import Loaded, Snapshots
from emulator.http.endpoint import Audience, Call, Parameter, Streamed, endpoint
from emulator.wire.refusals import invalid_parameter

_KEYS: Final = Parameter("keys", "`true` includes the signing key, links, PINs and PIN tokens.")


@endpoint(
    "GET",
    "/_emulator/snapshot",
    audience=Audience.CONTROL,
    query=(_KEYS,),
    answer=dict[str, Any],
    secrets=frozenset({"*"}),
)
async def save_snapshot(snapshots: Snapshots, call: Call) -> Streamed:
    """Save all data and the clock as one JSON document with one record per line."""
    keys = call.text("keys") or "false"
    if keys not in ("true", "false"):
        raise invalid_parameter("keys", keys, "true or false")
    return Streamed(snapshots.save(keys=keys == "true"))


@endpoint(
    "PUT",
    "/_emulator/snapshot",
    audience=Audience.CONTROL,
    body=dict[str, Any],
    answer=Loaded,
    limit="snapshot",
    streamed=True,
    secrets=frozenset({"*"}),
)
async def load_snapshot(snapshots: Snapshots, call: Call) -> Loaded:
    """Replace all data and the clock with a snapshot, in one step. The body is streamed, and checked completely first.

    The response counts the records that the service then holds. A snapshot without keys leaves the service its own
    signing key, and ends all links, PINs and refresh tokens.
    """
    return await snapshots.load(call.chunks)


endpoints: Final = (save_snapshot, load_snapshot)
