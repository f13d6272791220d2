"""Counts, by rule, of the requests that production would have handled differently."""

from __future__ import annotations

from msgspec import Struct

from emulator.core.parity import Parity, VerdictCount
from emulator.core.wire.refusals import invalid_word
from emulator.http.endpoint import Call, Parameter, control_endpoint

NAMESPACE, SERVICE = "namespace", "service"
_OF_PARAMETER = Parameter(
    "of",
    f"`{NAMESPACE}` (the default): requests to this namespace since its latest reset. "
    f"`{SERVICE}`: requests to all namespaces since the process started.",
)


class Verdicts(Struct):
    """How often production would have acted differently, by rule, in the order in which production checks them."""

    rules: list[VerdictCount]


@control_endpoint("GET", "/_emulator/parity", answer=Verdicts, query=(_OF_PARAMETER,), is_recorded=False)
async def read_parity(parity: Parity, call: Call) -> Verdicts:
    """List production's verdicts by rule, with the first and the latest request.

    Each response also has its verdict in the header `X-Emulator-Production`, and its journal entry in `production`.
    Calls to the control API are not counted.
    """
    of = call.text("of") or NAMESPACE
    if of not in (NAMESPACE, SERVICE):
        raise invalid_word("of", of, f"{NAMESPACE} or {SERVICE}")
    return Verdicts((parity.total if of == SERVICE else parity.tally).counted_verdicts)
