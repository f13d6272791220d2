"""Who is to be granted codes, and how many: the bodies of `mark_from_poll` and `mark_from_list` (rulings C3, C4)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from extcli.api.client import encoded
from extcli.codes.entries import Entries
from extcli.codes.formats import Unreadable
from extcli.codes.sets import MOST_SETS, not_printable
from extcli.codes.streamed_body import StreamedBody, joined
from extcli.codes.validation import ValidationErrors
from extcli.errors import ErrorAnswer, UsageError
from extcli.output import times

if TYPE_CHECKING:
    from extcli.api.client import Service

_LONGEST_ID = 256
_LIMIT = re.compile(r"(?:([0-9]{1,9})=)?([0-9]{1,9})")
_SECONDS_BELOW = 100_000_000_000


def grant(prizes: Sequence[int], limits: Sequence[str]) -> dict[str, Any]:
    """`prizes` and `prize_limits`. A set has its own limit, else the one for all, else as many as are granted here."""
    if not prizes:
        raise UsageError(
            "nothing is to be granted", fix="--prize 0, the index of a set; repeat it for more than one code"
        )
    for prize in prizes:
        _check_index(prize)
    for_all, for_one = None, dict[int, int]()
    for text in limits:
        found = _LIMIT.fullmatch(text)
        if not found:
            raise UsageError(f"{text!r} is no limit", fix="--limit 2 for each prize, or --limit 3=2 for set 3")
        index, limit = found[1], int(found[2])
        if index is None:
            for_all = limit
            continue
        _check_index(int(index))
        for_one[int(index)] = limit
    if stray := for_one.keys() - set(prizes):
        raise UsageError(f"set {min(stray)} has a --limit, and is no --prize")
    most = {prize: for_one.get(prize, prizes.count(prize) if for_all is None else for_all) for prize in prizes}
    return {"prize_limits": [most.get(index, 0) for index in range(max(prizes) + 1)], "prizes": list(prizes)}


def cutoff(text: str) -> int:
    """The instant as `mark_from_poll` takes it: in ms. A plain number so small that it is read as seconds stays one."""
    instant = times.instant(text)
    if instant < _SECONDS_BELOW and not text.strip().isdecimal():
        raise UsageError(f"{text!r} is too long ago to end a poll", why="the service would read it as seconds")
    return instant


def named(users: Sequence[str], granted: dict[str, Any]) -> bytes:
    """The body for users named one by one; raises `InvalidEntries`."""
    faults = ValidationErrors()
    for position, user in enumerate(users, 1):
        if rule := _rule_broken_by(user):
            faults.add(f"user {position}", rule)
    faults.check()
    return encoded({"users": users, **granted})


def listed(users: Entries, granted: dict[str, Any], progress: Callable[[int], None]) -> tuple[StreamedBody, int]:
    """The body for users in a file, once all were looked at, and how many they are; raises `InvalidEntries`."""
    faults = ValidationErrors()
    count = size = 0
    for batch in users:
        progress(users.consumed)
        for number, user in zip(batch.numbers, batch.items, strict=True):
            if rule := _rule_broken_by(user):
                faults.add(users.place(number), rule)
        count += len(batch.items)
        if batch.items and not faults.count:
            size += len(joined(batch.items))
    if not count:
        faults.add(users.name, "names nobody")
    faults.check()
    return StreamedBody("users", [users], [size], levels=1, others=granted), count


def _rule_broken_by(user: str | Unreadable) -> str:
    if isinstance(user, Unreadable):
        return user.rule
    if not 1 <= len(user) <= _LONGEST_ID:
        return f"has {len(user):,} characters; an id has 1 to {_LONGEST_ID}"
    return "" if user.isprintable() else not_printable(user)


def has_votes(service: Service, poll: str) -> bool:
    """Whether anybody voted in any channel, by the log; true where the service does not tell."""
    import ijson  # type: ignore[import-untyped]

    try:
        with service.read_vote_log(poll, limit=1) as answer:
            return any(True for _ in ijson.items(ijson.from_iter(answer.iter_bytes()), "result.item"))
    except (ErrorAnswer, ijson.JSONError):
        return True


def _check_index(index: int) -> None:
    if not 0 <= index < MOST_SETS:
        raise UsageError(f"{index} is no index of a set", fix=f"0 to {MOST_SETS - 1}")
