"""Uploads code sets, and marks winners from a poll or a list (rulings C3, C4)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from emulator.contract.limits import MAX_USER_LENGTH
from extcli.api.call import encoded
from extcli.codes import streamed_body
from extcli.codes.entries import Entries, FileFormat
from extcli.codes.streamed_body import StreamedBody, counted, json_items
from extcli.codes.validation import CodeSet, ValidationErrors, check_index, open_sets, problem_of_entry, validate
from extcli.codes.views import CHECKED_SETS, names_by_index
from extcli.errors import ErrorResponse, TooLarge, UnexpectedResponse, UsageError
from extcli.output import progress
from extcli.output.sanitize import visible
from extcli.reading.shapes import SHAPE_ERRORS, document_of
from extcli.reading.streams import items
from extcli.session import BACKEND

if TYPE_CHECKING:
    from extcli.api.client import Service
    from extcli.api.http import Response
    from extcli.session import Session

_LIMIT = re.compile(r"(?:([0-9]{1,9})=)?([0-9]{1,9})")
_SECONDS_BELOW = 100_000_000_000


def grant(prizes: Sequence[int], limits: Sequence[str]) -> dict[str, Any]:
    """Return `prizes` and `prize_limits`. Raises `UsageError`.

    A set's limit is the first of: its own limit, the limit for all sets, the number of its codes in `prizes`.
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


def cutoff_of(instant: int, *, milliseconds: bool) -> int:
    """Return an instant in ms as `mark_from_poll` takes it: in whole seconds, rounded up, or in ms (ruling C8).

    A service reads a number below 1e11 as seconds in any case (ruling C4).
    """
    return instant if milliseconds and instant >= _SECONDS_BELOW else -(-instant // 1000)


def body_of(users: Sequence[str], granted: dict[str, Any]) -> bytes:
    """Return the body that marks these users. Raises `UsageError`."""
    errors = ValidationErrors()
    for position, user in enumerate(users, 1):
        if fault := problem_of_entry(user, "an id", MAX_USER_LENGTH):
            errors.add(f"user {position}", fault)
    errors.raise_any()
    return encoded({"users": users, **granted})


def mark_all(session: Session, service: Service, users: Entries, granted: dict[str, Any]) -> tuple[int, Response]:
    """Mark the users in a file, and return their number. Raises `UsageError`, before anything is sent."""
    errors = ValidationErrors()
    count = size = 0
    with progress.progress_bar(session.output, "checking", users.size) as done:
        for batch in users:
            done(users.consumed)
            for number, user in zip(batch.numbers, batch.items, strict=True):
                if fault := problem_of_entry(user, "an id", MAX_USER_LENGTH):
                    errors.add(users.place(number), fault)
            count += len(batch.items)
            if batch.items and not errors.count:
                size += len(json_items(batch.items))
    if not count:
        errors.add(users.name, "has no users")
    errors.raise_any()
    body = StreamedBody("users", [users], [size], nested=False, others=granted)
    return count, streamed_body.send(session, body, service.mark_from_list, counted(count, "user"))


def count_in(response: Response, header: str) -> int | None:
    """Return how many users a response counts in this header; `None` if it does not say.

    `extcli-marked` has those who may redeem more codes than before, `extcli-users` all that the call named.
    """
    text = response.headers.get(header, "")
    return int(text) if text.isdecimal() else None


def has_votes(service: Service, poll: str) -> bool:
    """Return whether the poll's log has a vote in any channel; true if the service does not show the log."""
    try:
        with service.probing().read_vote_log(poll, limit=1) as response:
            return any(True for _ in items(response.iter_bytes(), "result.item", "the log"))
    except (ErrorResponse, TooLarge, ValueError):
        return True


@dataclass(frozen=True, slots=True)
class UploadPlan:
    """Valid sets in open files, and the sets of the service that they replace."""

    session: Session
    service: Service
    sets: Sequence[CodeSet]
    replaced: Mapping[int, str]
    """The names of the replaced sets, by index."""
    names_indices: bool
    """Whether the request names the indices; without them the service counts from 0."""

    def facts(self) -> list[dict[str, Any]]:
        """Return what a dry run shows of each set, with the name of the set that it replaces."""
        return [{**each.facts(), "replaces": self.replaced.get(each.index)} for each in self.sets]

    def losses(self) -> list[str]:
        """Return one line for each set of the service that is replaced."""
        new = {each.index: visible(each.name) for each in self.sets}
        return [
            f"set {index}, {visible(old)!r}, becomes {new[index]!r} with other codes"
            for index, old in self.replaced.items()
        ]

    def changes(self) -> list[str]:
        """Return one line for each set that the upload replaced or added."""
        old = {index: f", in place of {visible(name)!r}" for index, name in self.replaced.items()}
        return [f"set {each.index} is {visible(each.name)!r}{old.get(each.index, '')}" for each in self.sets]

    def send(self) -> Response:
        """Read the files again and send them. Raises `CliError` if one changed since it was checked."""
        others: dict[str, Any] = {"names": [each.name for each in self.sets]}
        if self.names_indices:
            others["indices"] = [each.index for each in self.sets]
        sources, sizes = [each.entries for each in self.sets], [each.encoded_size for each in self.sets]
        body = StreamedBody("codes", sources, sizes, nested=True, others=others)
        codes = counted(sum(each.count for each in self.sets), "code")
        what = f"1 set of {codes}" if len(self.sets) == 1 else f"{len(self.sets)} sets with {codes} in all"
        return streamed_body.send(self.session, body, self.service.define_codes, what)


@contextmanager
def plan_upload(
    session: Session,
    specs: Sequence[str],
    indices: Sequence[int],
    *,
    form: FileFormat | None,
    column: str | None,
) -> Iterator[UploadPlan]:
    """Open and validate the files of these `NAME=FILE` arguments, then ask the service which sets it has.

    The files stay open in the block. Raises `UsageError`, also for invalid codes.
    """
    with open_sets(specs, indices, form=form, column=column) as sets:
        errors = validate(sets, session.output)
        if errors.count and session.dry_run:
            session.output.show_value([each.facts() for each in sets], CHECKED_SETS)
        errors.raise_any()
        service = session.service(BACKEND)
        replaced = _replaced(sets, existing_sets(service))
        yield UploadPlan(session, service, sets, replaced, bool(indices))


def existing_sets(service: Service) -> dict[int, str]:
    """Return the names of the service's sets, by index."""
    response = service.list_codes()
    try:
        return names_by_index(document_of(response))
    except SHAPE_ERRORS as error:
        raise UnexpectedResponse(response) from error


def _replaced(sets: Sequence[CodeSet], existing: Mapping[int, str]) -> dict[int, str]:
    """Return which existing sets would be replaced.

    Raises `UsageError` if a set that stays has the name of a new one.
    """
    new = {each.index: each.name for each in sets}
    for index, name in existing.items():
        if index not in new and name in new.values():
            raise UsageError(
                f"the service already has a set {visible(name)!r}, at index {index}",
                fix=f"use --index {index} to replace it, or give the new set another name",
            )
    return {index: existing[index] for index in new if index in existing}
