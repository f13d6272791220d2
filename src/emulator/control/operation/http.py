"""`/_emulator/…`: `live`, `ready` and `metrics` for monitoring; `reset` and `clock` for control."""

from __future__ import annotations

import asyncio
from typing import Final

from msgspec import UNSET, Struct, UnsetType

from emulator.contract.limits import MAX_UNDO_SECONDS
from emulator.control.operation.rules import ClockMove, ClockRecord, MovedClock
from emulator.control.operation.service import Control, Readiness
from emulator.control.operation.undo import Undo
from emulator.core.clock import monotonic
from emulator.core.observability.metrics import Metrics
from emulator.http.endpoint import Audience, Call, Nothing, Parameter, Text, endpoint

_METRICS_TYPE = "text/plain; version=0.0.4"


class Liveness(Struct):
    """The response of `live`."""

    status: str


@endpoint("GET", "/_emulator/live", audience=Audience.HEALTH, answer=Liveness)
async def read_liveness(control: Control, call: Call) -> Liveness:
    """Report that the process is running."""
    return Liveness("live")


@endpoint("GET", "/_emulator/ready", audience=Audience.HEALTH, answer=Readiness)
async def read_readiness(control: Control, call: Call) -> Readiness:
    """Report that the service can handle requests; 503 while it cannot."""
    return await control.readiness()


@endpoint("GET", "/_emulator/metrics", audience=Audience.MONITORING, answer=str)
async def read_metrics(metrics: Metrics, call: Call) -> Text:
    """Read the counters in the Prometheus text format."""
    began = monotonic()
    await asyncio.sleep(0)  # one iteration of the event loop: every ready callback runs first
    lag = monotonic() - began
    from emulator.control.operation.exposition import text_of

    return Text(text_of(metrics, lag=lag), _METRICS_TYPE)


class ResetDone(Struct):
    """The response to a reset."""

    undo: str | UnsetType = UNSET
    """The token to undo it; absent if it cannot be undone."""


_KEPT = Parameter(
    "undo", f"Seconds, at most {MAX_UNDO_SECONDS}, in which the reset can be undone; none when absent.", "integer"
)
_TOKEN = Parameter("undo", "The token that the reset returned. Default: the latest reset.")


@endpoint("POST", "/_emulator/reset", audience=Audience.CONTROL, query=(_KEPT,), answer=ResetDone)
async def reset(undo: Undo, call: Call) -> ResetDone:
    """Delete all data, and set the clock back to the system time."""
    token = await undo.reset(call.integer("undo", 0))
    return ResetDone(token or UNSET)


@endpoint("POST", "/_emulator/undo", audience=Audience.CONTROL, query=(_TOKEN,))
async def undo_reset(undo: Undo, call: Call) -> Nothing:
    """Undo the latest reset, if it kept the data for that. Later writes are replaced."""
    await undo.undo(call.text("undo"))
    return Nothing()


@endpoint("GET", "/_emulator/clock", audience=Audience.CONTROL, answer=ClockRecord)
async def read_clock(control: Control, call: Call) -> ClockRecord:
    """Read the service's clock, in Unix ms."""
    return control.read_clock()


@endpoint("POST", "/_emulator/clock", audience=Audience.CONTROL, body=ClockMove, answer=MovedClock)
async def move_clock(control: Control, call: Call) -> MovedClock:
    """Set, advance or freeze the clock. Expired items are removed before the response, which lists them."""
    return await control.move_clock(call.body(ClockMove))


monitoring: Final = (read_liveness, read_readiness)
metrics: Final = read_metrics
control: Final = (read_clock, move_clock)
resets: Final = (reset, undo_reset)
