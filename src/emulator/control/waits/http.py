"""`GET /_emulator/wait`: held until a condition is met."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from emulator.control.waits.rules import DEFAULT_TIMEOUT, FILTERS, MAX_TIMEOUT, subjects_of
from emulator.control.waits.service import Outcome, Waits
from emulator.http.endpoint import Audience, Call, Endpoint, Parameter, endpoint
from emulator.kinds import Kind

_OWN: Final = {"user", "path"}
"""Filters that other conditions also have."""
_PARAMETERS = (
    Parameter(
        "id",
        "The id of the poll, ranking, buffer or JSON store; the store's name; the event; the topic; "
        "an endpoint such as `POST /v1/e/vote`.",
    ),
    Parameter("client_id", "The extension. Sockets and the journal need none."),
    Parameter("channel_id", "The channel; all together when absent."),
    Parameter("user", "The user of a viewer store, or of the entries of the journal."),
    Parameter("count", "Votes, answers, entries, events, sockets…: 3 for at least three, =3 for exactly three."),
    Parameter("value", "Votes for values of a poll: 0=2,1==3 for at least two and exactly three."),
    Parameter("sum", "The sum of the values of a poll, as `count`."),
    Parameter("key", "An answer of a ranking."),
    Parameter("score", "The users with that answer, as `count`; at least 1 when absent."),
    Parameter("latest", "The newest entry of a buffer, as JSON."),
    Parameter("path", "A JSON pointer into a store; the whole when absent. Or a part of a path in the journal."),
    Parameter("equals", "The value there, as JSON; any value when absent."),
    Parameter("since", "A mark, from `X-Emulator-Mark`: only later changes count. Of the journal: a number."),
    *(Parameter(name, "A filter of the journal, as in `GET /_emulator/journal`.") for name in sorted(FILTERS - _OWN)),
    Parameter("timeout", f"Real ms, at most {MAX_TIMEOUT:,}; {DEFAULT_TIMEOUT:,} when absent.", "integer"),
)


def endpoints_of(kinds: Iterable[Kind]) -> tuple[Endpoint[Waits], ...]:
    """Return the endpoint with the subjects of these kinds."""
    about = Parameter("for", f"What the condition is about: {', '.join(subjects_of(kinds))}.")

    @endpoint(
        "GET",
        "/_emulator/wait",
        audience=Audience.CONTROL,
        query=(about, *_PARAMETERS),
        answer=Outcome,
        held=True,
    )
    async def wait(waits: Waits, call: Call) -> Outcome:
        """Wait until a condition is met. At the timeout, `met` is false."""
        return await waits.wait(call.query)

    return (wait,)
