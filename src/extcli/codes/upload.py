"""Sends sets of codes and lists of users: looked at first, and read again while they are sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from extcli import clock
from extcli.codes import grants
from extcli.codes.entries import Entries
from extcli.codes.sets import CodeSet, examine
from extcli.codes.streamed_body import StreamedBody
from extcli.codes.validation import ValidationErrors
from extcli.codes.views import named_sets
from extcli.errors import UnexpectedAnswer, UsageError
from extcli.output import progress
from extcli.output.printer import SHAPE_ERRORS
from extcli.output.sanitize import visible

if TYPE_CHECKING:
    from extcli.api.client import Service
    from extcli.api.http import Answer
    from extcli.session import Session

_PATIENCE = 600.0
"""Seconds without a sign of the service: it may store ten million codes before it says a word."""
_WORTH_A_RATE = 1_000_000


def look_at(session: Session, sets: Sequence[CodeSet], *, allow_duplicates: bool) -> ValidationErrors:
    """Read every code; what is found is noted on the sets."""
    total = sum(each.entries.size for each in sets)
    with progress.shown(session.output, "checking", total) as done:
        return examine(sets, allow_repeats=allow_duplicates, progress=done)


def sets_there(service: Service) -> dict[int, str]:
    """The names of the sets that the service has, by index."""
    answer = service.list_codes()
    try:
        return named_sets(answer.json())
    except SHAPE_ERRORS as error:
        raise UnexpectedAnswer(answer) from error


def replaced(sets: Sequence[CodeSet], there: Mapping[int, str]) -> dict[int, str]:
    """The sets whose codes would give way. Raises `UsageError` for a name that another set has and keeps."""
    indices = {each.index for each in sets}
    for each in sets:
        for index, name in there.items():
            if name == each.name and index not in indices:
                raise UsageError(
                    f"the service has a set {visible(name)!r} already, at index {index}",
                    fix=f"to replace it use --index {index}; else give this set another name",
                )
    return {each.index: there[each.index] for each in sets if each.index in there}


def losses(sets: Sequence[CodeSet], giving_way: Mapping[int, str]) -> list[str]:
    """What to tell before it is done."""
    return [
        f"set {each.index}, {visible(giving_way[each.index])!r}, becomes {visible(each.name)!r} with other codes"
        for each in sets
        if each.index in giving_way
    ]


def body_of(sets: Sequence[CodeSet], *, name_indices: bool) -> StreamedBody:
    """The body of a PUT of these sets."""
    others: dict[str, Any] = {"names": [each.name for each in sets]}
    if name_indices:
        others["indices"] = [each.index for each in sets]
    sizes = [each.size for each in sets]
    return StreamedBody("codes", [each.entries for each in sets], sizes, levels=2, others=others)


def send(session: Session, body: StreamedBody, request: Callable[[StreamedBody], Answer], what: str) -> Answer:
    """Make the request and say how long it took; `what` says how much of what was sent."""
    session.http.allow(session.resolver.timeout(_PATIENCE))
    started = clock.elapsed()
    with progress.shown(session.output, "sending", body.length) as body.sent:
        answer = request(body)
    seconds = max(clock.elapsed() - started, 1e-9)
    rate = f", {body.length / seconds / 1e6:,.1f} MB a second" if body.length > _WORTH_A_RATE else ""
    session.output.report(f"{what} sent ({seconds:.1f}s{rate})")
    return answer


def mark_all(
    session: Session, users: Entries, granted: dict[str, Any], request: Callable[[StreamedBody], Answer]
) -> Answer:
    """Grant codes to the users of a file."""
    with progress.shown(session.output, "checking", users.size) as done:
        body, count = grants.listed(users, granted, done)
    return send(session, body, request, counted(count, "user"))


def counted(count: int, what: str) -> str:
    """`1 code`, `1,000 codes`."""
    return f"{count:,} {what}{'s' * (count != 1)}"
