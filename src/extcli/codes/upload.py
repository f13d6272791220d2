"""Checks and uploads code sets, and marks winners from a poll or a list (rulings C3, C4)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from tempfile import SpooledTemporaryFile
from typing import IO

from emulator.contract.limits import MAX_CODE_LENGTH, MAX_USER_LENGTH
from extcli import clock
from extcli.api.call import Streamed, encoded
from extcli.codes.entries import Entries, FileFormat, Unreadable
from extcli.codes.views import CHECKED_SETS, names_by_index
from extcli.errors import UsageError, count_text, file_errors
from extcli.output.printer import NOTHING
from extcli.output.sanitize import visible
from extcli.output.terminal import progress_bar
from extcli.reading import Json, Response, document_of, expect_shape
from extcli.session import BACKEND, Service, Session

_SET_EXAMPLE = '--set "Hat"=hats.txt, or --set "Hat"=- for standard input'
_MOST_NAMED_ERRORS = 20
"""Errors that are named; others are only counted."""
_PIECE = 1 << 18
_MOST_IN_MEMORY = 16 << 20
"""Bytes of a request's body. A larger body goes to a temporary file, which only this user can read."""
_json_string = json.JSONEncoder(ensure_ascii=False).encode


class ValidationErrors:
    """Collects errors. They quote no entry: a code may be worth money."""

    def __init__(self) -> None:
        self.count = 0
        self._named: list[str] = []

    def add(self, place: str, fault: str) -> None:
        """Count an error, and name it if it is among the first."""
        self.count += 1
        if len(self._named) < _MOST_NAMED_ERRORS:
            self._named.append(f"{place}: {fault}")

    def raise_any(self) -> None:
        """Raise `UsageError` if there are errors. Nothing was sent so far."""
        if self.count:
            more = self.count - len(self._named)
            what = f"found {count_text(self.count, 'error')}; nothing was sent"
            details = [*self._named, f"and {more:,} more" if more else ""]
            raise UsageError(what, fix="correct them and try again", details=details, facts={"faults": self._named})


def entry_problem(item: str | Unreadable, kind: str, longest: int) -> str:
    """Return what is wrong with an entry, or "" if it is valid. `kind` is "a code" or "an id"."""
    if isinstance(item, Unreadable):
        return item.problem
    if not item:
        return "is empty"
    if len(item) > longest:
        return f"has {len(item):,} characters; {kind} has 1 to {longest}"
    if item.isprintable():
        return ""
    is_utf8 = not any("\udc80" <= character <= "\udcff" for character in item)
    return "has unprintable characters" if is_utf8 else "is not UTF-8 text"


@dataclass(eq=False, slots=True)
class CheckedFile:
    """A file with the codes of a set, or with user ids. The counts are complete when `check_entries` ends."""

    entries: Entries
    kind: str
    """What an entry is: `a code` or `an id`."""
    max_length: int
    """The most characters of an entry."""
    name: str = ""
    """Of the set."""
    index: int = 0
    count: int = 0
    longest: int = 0
    duplicates: int = 0
    """Codes that occur earlier in this set."""
    in_earlier_sets: int = 0
    """Distinct codes that an earlier set also has."""

    def as_record(self) -> Json:
        """Return what the output shows of the set."""
        counts = {name: getattr(self, name) for name in ("longest", "duplicates", "in_earlier_sets")}
        return {"index": self.index, "name": self.name, "codes": self.count, **counts}


def check_entries(files: Sequence[CheckedFile], body: IO[bytes], errors: ValidationErrors) -> Iterator[str]:
    """Yield the valid entries, and write them to `body`: a JSON array for each file, with commas between the arrays.

    Adds an error for each invalid entry, and for a file without entries.
    """
    with file_errors("write a temporary file"):
        for each in files:
            before = b"[" if each is files[0] else b",["
            for number, item in each.entries:
                each.count += 1
                if problem := entry_problem(item, each.kind, each.max_length):
                    errors.add(each.entries.place(number), problem)
                elif isinstance(item, str):
                    each.longest = max(each.longest, len(item))
                    body.write(before + _json_string(item).encode())
                    before = b","
                    yield item
            body.write(b"]")
            if not each.count:
                errors.add(each.entries.name, "has no entries")


_HASH_BITS = 29
"""Two to this power is the number of bits: 64 MiB. Of ten million codes, two in a hundred share one."""
_HASH_MASK = (1 << _HASH_BITS) - 1


def check_codes(sets: Sequence[CheckedFile], body: IO[bytes]) -> ValidationErrors:
    """Check all codes, also for duplicates, write them to `body`, and return the errors."""
    errors, bits, repeated = ValidationErrors(), bytearray(1 << (_HASH_BITS - 3)), set[int]()
    for code in check_entries(sets, body, errors):
        number = hash(code) & _HASH_MASK
        at, bit = number >> 3, 1 << (number & 7)
        if bits[at] & bit:
            repeated.add(number)
        bits[at] |= bit
    del bits
    if repeated:
        _add_duplicates(sets, repeated, errors)
    return errors


def _add_duplicates(sets: Sequence[CheckedFile], repeated: set[int], errors: ValidationErrors) -> None:
    """Read the codes with a repeated hash again, count the duplicates on the sets, and add an error for each."""
    first: dict[str | Unreadable, tuple[CheckedFile, str]] = {}
    latest: dict[str | Unreadable, CheckedFile] = {}
    for each in sets:
        for number, code in each.entries:
            if hash(code) & _HASH_MASK not in repeated:
                continue
            place = each.entries.place(number)
            other, other_place = first.setdefault(code, (each, place))
            if code in latest:
                each.duplicates += latest[code] is each
                each.in_earlier_sets += latest[code] is not each
                of_set = f" of set {other.name!r}" if other is not each else ""
                errors.add(place, f"is the same code as {other_place}{of_set}")
            latest[code] = each


class FileBody(Streamed):
    """The content of an open file. Each iteration reads it from the start, so that a request can be retried."""

    def __init__(self, file: IO[bytes]) -> None:
        """The content ends at the file's position."""
        self._file = file
        self.length = file.tell()
        self.on_progress: Callable[[int], None] = lambda _: None
        """Called with the number of bytes sent so far."""

    def __iter__(self) -> Iterator[bytes]:
        self._file.seek(0)
        while piece := self._file.read(_PIECE):
            yield piece
            self.on_progress(self._file.tell())


def _send_body(session: Session, service: Service, method: str, path: str, file: IO[bytes], what: str) -> Response:
    """Send the file as the body, with a progress bar, and report how long it took; `what` describes the content."""
    session.http.set_timeout(session.resolver.timeout(_UPLOAD_TIMEOUT))
    started, body = clock.elapsed(), FileBody(file)
    with progress_bar(body.length, of_bytes="sending", quiet=session.output.quiet) as body.on_progress:
        response = service.send(method, path, body)
    session.output.report(f"{what} sent ({clock.elapsed() - started:.1f}s)")
    return response


_UPLOAD_TIMEOUT = 600.0
"""Seconds to wait for the response: the service may store ten million codes before it sends one."""


def _names_and_files(specs: list[str]) -> list[tuple[str, str]]:
    pairs = []
    for spec in specs:
        name, _, file = spec.partition("=")
        if not file:
            raise UsageError(f"--set {spec!r} is not NAME=FILE", fix=_SET_EXAMPLE)
        pairs.append((name, file))
    if [file for _, file in pairs].count("-") > 1:
        raise UsageError("only one set can come from standard input")
    return pairs


def upload_sets(
    session: Session, specs: list[str], indices: list[int], *, form: FileFormat | None, column: str | None, yes: bool
) -> None:
    """Check the files of these `NAME=FILE` arguments, and send their codes; a dry run shows what it would send.

    Without `indices` the sets go to 0, 1, 2 and so on. Raises `UsageError`, also for invalid codes, and `NotConfirmed`
    unless the user agrees to replace sets of the service.
    """
    from extcli.cli import confirm  # seeds use this module without the command line

    output = session.output
    pairs = _names_and_files(specs)
    if indices and len(indices) != len(specs):
        what = f"{len(indices)} indices were given for {len(specs)} sets"
        raise UsageError(what, fix="give one --index for each --set")
    with ExitStack() as files:
        sets: list[CheckedFile] = []
        for index, (name, file) in zip(indices or range(len(pairs)), pairs, strict=True):
            entries = files.enter_context(closing(Entries(file, form=form, column=column)))
            sets.append(CheckedFile(entries, "a code", MAX_CODE_LENGTH, name, index))
        body = files.enter_context(SpooledTemporaryFile(_MOST_IN_MEMORY))
        body.write(b'{"codes":[')
        errors = check_codes(sets, body)
        if errors.count and session.dry_run:
            output.show_value([each.as_record() for each in sets], CHECKED_SETS)
        errors.raise_any()
        service = session.service(BACKEND)
        existing = existing_sets(service)
        if session.dry_run:
            facts = [{**each.as_record(), "replaces": existing.get(each.index)} for each in sets]
            output.show_value(facts, CHECKED_SETS)
            output.note("nothing was sent")
            return
        old = {each.index: repr(visible(existing[each.index])) for each in sets if each.index in existing}
        new = {each.index: repr(visible(each.name)) for each in sets}
        if old and not yes and not confirm.in_sandbox(session):
            losses = [f"set {index}: {new[index]} replaces {name} and its codes" for index, name in old.items()]
            confirm.ask_about_loss(session, losses, "Codes not handed out from old sets will be lost. Replace sets?")
        others: Json = {"names": [each.name for each in sets]}
        if indices:  # otherwise the service counts from 0
            others["indices"] = indices
        body.write(b"]," + encoded(others)[1:])
        codes = count_text(sum(each.count for each in sets), "code")
        response = _send_body(session, service, "PUT", "codes", body, f"{count_text(len(sets), 'set')} of {codes}")
    output.show(response, NOTHING)
    for index, name in new.items():
        output.report(f"set {index} is {name}" + (f", in place of {old[index]}" if index in old else ""))


def existing_sets(service: Service) -> dict[int, str]:
    """Return the names of the service's sets, by index."""
    response = service.get("codes")
    with expect_shape(response):
        return names_by_index(document_of(response))


_LIMIT_FORM = re.compile("(?:([0-9]{1,9})=)?([0-9]{1,9})")
_LEAST_MS = 100_000_000_000


def grant_body(prizes: Sequence[int], limits: Sequence[str]) -> Json:
    """Return `prizes` and `prize_limits`. Raises `UsageError`.

    A set's limit is the first of: its own limit, the limit for all sets, the number of its codes in `prizes`.
    """
    by_prize = {prize: prizes.count(prize) for prize in prizes}
    for text in sorted(limits, key=lambda text: "=" in text):  # those for one set last: they count more
        found = _LIMIT_FORM.fullmatch(text)
        if not found:
            raise UsageError(f"invalid --limit {text!r}", fix="--limit 2 for every prize, or --limit 3=2 for set 3")
        limited = by_prize if found[1] is None else [int(found[1])]
        if stray := set(limited) - set(prizes):
            raise UsageError(f"set {min(stray)} has a --limit but no --prize")
        by_prize |= dict.fromkeys(limited, int(found[2]))
    return {"prize_limits": [by_prize.get(index, 0) for index in range(max(prizes) + 1)], "prizes": list(prizes)}


def cutoff_time(instant: int, *, milliseconds: bool) -> int:
    """Return an instant in ms as `mark_from_poll` takes it: in whole seconds, rounded up, or in ms (ruling C8).

    A service reads a number below 1e11 as seconds in any case (ruling C4).
    """
    return instant if milliseconds and instant >= _LEAST_MS else -(-instant // 1000)


def mark_users(session: Session, service: Service, users: Entries, granted: Json) -> tuple[int, Response]:
    """Mark the users in a file, and return their number. Raises `UsageError`, before anything is sent."""
    errors, file = ValidationErrors(), CheckedFile(users, "an id", MAX_USER_LENGTH)
    with SpooledTemporaryFile(_MOST_IN_MEMORY) as body:
        body.write(b'{"users":')
        for _ in check_entries([file], body, errors):
            pass
        errors.raise_any()
        body.write(b"," + encoded(granted)[1:])
        what = count_text(file.count, "user")
        return file.count, _send_body(session, service, "POST", "codes/mark_from_list", body, what)


def user_count(response: Response, header: str) -> int | None:
    """Return how many users a response counts in this header; `None` if it does not say.

    `extcli-marked` has those who may redeem more codes than before, `extcli-users` all that the call named.
    """
    text = response.headers.get(header, "")
    return int(text) if text.isdecimal() else None
