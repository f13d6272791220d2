"""Marks users as winners: the bodies of `mark_from_poll` and `mark_from_list` (rulings C3, C4)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from emulator.contract.limits import MAX_USER_LENGTH
from extcli.api.call import encoded
from extcli.codes import streamed_body
from extcli.codes.entries import Entries
from extcli.codes.streamed_body import StreamedBody, counted, json_items
from extcli.codes.validation import ValidationErrors, check_index, fault_in
from extcli.errors import ErrorAnswer, TooLarge, UsageError
from extcli.output import progress
from extcli.reading.streams import items

if TYPE_CHECKING:
    from extcli.api.client import Service
    from extcli.api.http import Answer
    from extcli.session import Session

_LIMIT = re.compile(r"(?:([0-9]{1,9})=)?([0-9]{1,9})")
_SECONDS_BELOW = 100_000_000_000


def grant(prizes: Sequence[int], limits: Sequence[str]) -> dict[str, Any]:
    """Return `prizes` and `prize_limits`. Raises `UsageError`.

    The limit of a set is its own, else the one for all sets, else the number of its codes in `prizes`.
    """
    if not prizes:
        raise UsageError("no --prize was given", fix="--prize 0 grants a code of set 0; repeat it for more codes")
    for prize in prizes:
        check_index(prize)
    for_all, for_one = None, dict[int, int]()
    for text in limits:
        found = _LIMIT.fullmatch(text)
        if not found:
            raise UsageError(f"invalid --limit {text!r}", fix="--limit 2 for every prize, or --limit 3=2 for set 3")
        index, limit = found[1], int(found[2])
        if index is None:
            for_all = limit
            continue
        check_index(int(index))
        for_one[int(index)] = limit
    if stray := for_one.keys() - set(prizes):
        raise UsageError(f"set {min(stray)} has a --limit but no --prize")
    by_prize = {prize: for_one.get(prize, prizes.count(prize) if for_all is None else for_all) for prize in prizes}
    return {"prize_limits": [by_prize.get(index, 0) for index in range(max(prizes) + 1)], "prizes": list(prizes)}


def cutoff_of(instant: int) -> int:
    """Return an instant in ms as `mark_from_poll` takes it: a number below 1e11 means Unix seconds (ruling C4)."""
    return instant if instant >= _SECONDS_BELOW else instant // 1000


def body_of(users: Sequence[str], granted: dict[str, Any]) -> bytes:
    """Return the body that marks these users. Raises `InvalidEntries`."""
    errors = ValidationErrors()
    for position, user in enumerate(users, 1):
        if fault := fault_in(user, "an id", MAX_USER_LENGTH):
            errors.add(f"user {position}", fault)
    errors.raise_any()
    return encoded({"users": users, **granted})


def mark_all(session: Session, service: Service, users: Entries, granted: dict[str, Any]) -> tuple[int, Answer]:
    """Mark the users in a file, and return their number. Raises `InvalidEntries`, before anything is sent."""
    errors = ValidationErrors()
    count = size = 0
    with progress.shown(session.output, "checking", users.size) as done:
        for batch in users:
            done(users.consumed)
            for number, user in zip(batch.numbers, batch.items, strict=True):
                if fault := fault_in(user, "an id", MAX_USER_LENGTH):
                    errors.add(users.place(number), fault)
            count += len(batch.items)
            if batch.items and not errors.count:
                size += len(json_items(batch.items))
    if not count:
        errors.add(users.name, "has no users")
    errors.raise_any()
    body = StreamedBody("users", [users], [size], nested=False, others=granted)
    return count, streamed_body.send(session, body, service.mark_from_list, counted(count, "user"))


def marked_in(answer: Answer) -> int | None:
    """Return how many users may redeem more codes than before; `None` if the deployment does not say."""
    return _count(answer, "extcli-marked")


def users_in(answer: Answer) -> int | None:
    """Return how many distinct users the call named, marked before or not; `None` if the deployment does not say."""
    return _count(answer, "extcli-users")


def _count(answer: Answer, header: str) -> int | None:
    text = answer.headers.get(header, "")
    return int(text) if text.isdecimal() else None


def has_votes(service: Service, poll: str) -> bool:
    """Return whether the poll's log has a vote in any channel; true if the service does not show the log."""
    try:
        with service.probing().read_vote_log(poll, limit=1) as answer:
            return any(True for _ in items(answer.iter_bytes(), "result.item", "the log"))
    except (ErrorAnswer, TooLarge, ValueError):
        return True
