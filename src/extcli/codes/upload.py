"""Checks and uploads code sets, and marks winners from a poll or a list (rulings C3, C4)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from emulator.contract.limits import MAX_CODE_LENGTH, MAX_USER_LENGTH
from extcli import clock
from extcli.api.call import Streamed, encoded
from extcli.codes.entries import Entries, FileFormat, Unreadable
from extcli.codes.views import CHECKED_SETS, names_by_index
from extcli.errors import CliError, UsageError
from extcli.output.printer import NOTHING
from extcli.output.sanitize import visible
from extcli.output.terminal import progress_bar
from extcli.reading import document_of, expect_shape
from extcli.session import BACKEND

if TYPE_CHECKING:
    from extcli.api.client import Service
    from extcli.api.http import Response
    from extcli.output.printer import Output
    from extcli.session import Session

_EXAMPLE = '--set "Hat"=hats.txt, or --set "Hat"=- for standard input'
_NAMED = 20
"""Errors that are named; others are counted."""
_BATCH = 5_000
_quoted = json.JSONEncoder(ensure_ascii=False).encode


class ValidationErrors:
    """Collects errors. They quote no entry: a code may be worth money."""

    def __init__(self) -> None:
        self.count = 0
        self._named: list[str] = []

    def add(self, place: str, fault: str) -> None:
        """Count an error, and name it if it is among the first."""
        self.count += 1
        if len(self._named) < _NAMED:
            self._named.append(f"{place}: {fault}")

    def raise_any(self) -> None:
        """Raise `UsageError` if there are errors. Nothing was sent so far."""
        if self.count:
            more = self.count - len(self._named)
            what = f"found {self.count:,} error{'s' * (self.count != 1)}; nothing was sent"
            details = [*self._named, f"and {more:,} more" if more else ""]
            raise UsageError(what, fix="correct them and try again", details=details, facts={"faults": self._named})


def problem_of_entry(item: str | Unreadable, kind: str, longest: int) -> str:
    """Return what is wrong with an entry, or "" if it is valid. `kind` is "a code" or "an id"."""
    if isinstance(item, Unreadable):
        return item.fault
    if not item:
        return "is empty"
    if len(item) > longest:
        return f"has {len(item):,} characters; {kind} has 1 to {longest}"
    if item.isprintable():
        return ""
    is_utf8 = not any("\udc80" <= character <= "\udcff" for character in item)
    return "has unprintable characters" if is_utf8 else "is not UTF-8 text"


@dataclass(eq=False, slots=True)
class Content:
    """What a file has to send: the codes of a set, or user ids. `checked` and `validate` fill in the numbers."""

    entries: Entries
    kind: str
    """What an entry is: `a code` or `an id`."""
    most: int
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
    size: int = 0
    """Bytes of all entries as elements of a JSON array, each with a comma behind it."""

    def facts(self) -> dict[str, Any]:
        """Return what the output shows of the set."""
        counts = {name: getattr(self, name) for name in ("longest", "duplicates", "in_earlier_sets")}
        return {"index": self.index, "name": self.name, "codes": self.count, **counts}


def checked(contents: Sequence[Content], output: Output, errors: ValidationErrors) -> Iterator[str]:
    """Yield the valid entries of these files, and add an error for each other one, and for a file without entries."""
    with progress_bar(sum(each.entries.size for each in contents), of_bytes="checking", quiet=output.quiet) as done:
        for each in contents:
            for number, item in each.entries:
                each.count += 1
                if each.count % _BATCH == 0:
                    done(sum(file.entries.consumed for file in contents))
                if fault := problem_of_entry(item, each.kind, each.most):
                    errors.add(each.entries.place(number), fault)
                elif isinstance(item, str):
                    each.longest = max(each.longest, len(item))
                    each.size += len(_quoted(item).encode()) + 1
                    yield item
            if not each.count:
                errors.add(each.entries.name, "has no entries")


_BITS = 29
"""Two to this power is the number of bits: 64 MiB. Of ten million codes, two in a hundred share one."""
_MASK = (1 << _BITS) - 1


def validate(sets: Sequence[Content], output: Output) -> ValidationErrors:
    """Read every code, record the counts on the sets, and return the errors."""
    errors, bits, repeated = ValidationErrors(), bytearray(1 << (_BITS - 3)), set[int]()
    for code in checked(sets, output, errors):
        number = hash(code) & _MASK
        at, bit = number >> 3, 1 << (number & 7)
        if bits[at] & bit:
            repeated.add(number)
        bits[at] |= bit
    del bits
    if repeated:
        _add_duplicates(sets, repeated, errors)
    return errors


def _add_duplicates(sets: Sequence[Content], repeated: set[int], errors: ValidationErrors) -> None:
    """Read the codes with a repeated hash again, count the duplicates on the sets, and add an error for each."""
    first: dict[str | Unreadable, tuple[Content, str]] = {}
    latest: dict[str | Unreadable, Content] = {}
    for each in sets:
        for number, code in each.entries:
            if hash(code) & _MASK not in repeated:
                continue
            place = each.entries.place(number)
            other, other_place = first.setdefault(code, (each, place))
            if code in latest:
                each.duplicates += latest[code] is each
                each.in_earlier_sets += latest[code] is not each
                of_set = f" of set {other.name!r}" if other is not each else ""
                errors.add(place, f"is the same code as {other_place}{of_set}")
            latest[code] = each


_BETWEEN = b"],["


class StreamedBody(Streamed):
    """A JSON text with long arrays. Each iteration reads their files again, so that a request can be retried."""

    def __init__(self, start: bytes, contents: Sequence[Content], end: bytes) -> None:
        """Each content, which was checked, is one array: `start` opens the first, and `end` closes the last."""
        self._start = start
        self._sources = [each.entries for each in contents]
        self._end = end
        arrays = sum(each.size - 1 for each in contents)
        self.length = len(start) + arrays + len(_BETWEEN) * (len(contents) - 1) + len(end)
        self.on_progress: Callable[[int], None] = lambda _: None
        """Called with the number of bytes sent so far."""

    def __iter__(self) -> Iterator[bytes]:
        sent = 0
        for piece in self._pieces():
            sent += len(piece)
            yield piece
            self.on_progress(sent)
        if sent + len(self._end) != self.length:
            # Without its end the body is invalid, so the service stores nothing.
            raise CliError(
                "a file changed while it was sent",
                why="its content is no longer what was checked",
                fix="nothing changed at the service; try again when the files are complete",
            )
        yield self._end

    def _pieces(self) -> Iterator[bytes]:
        before = self._start
        for source in self._sources:
            texts = (item for _, item in source)
            while batch := list(islice(texts, _BATCH)):
                yield before + encoded(batch)[1:-1]
                before = b","
            before = _BETWEEN


def _send(session: Session, service: Service, method: str, path: str, body: StreamedBody, what: str) -> Response:
    """Send the body with a progress bar, and report how long it took; `what` describes the content."""
    session.http.set_timeout(session.resolver.timeout(_TIMEOUT))
    started = clock.elapsed()
    with progress_bar(body.length, of_bytes="sending", quiet=session.output.quiet) as body.on_progress:
        response = service.send(method, path, body)
    session.output.report(f"{what} sent ({clock.elapsed() - started:.1f}s)")
    return response


_TIMEOUT = 600.0
"""Seconds to wait for the response: the service may store ten million codes before it sends one."""


def counted(count: int, what: str) -> str:
    """`1 code`, `1,000 codes`."""
    return f"{count:,} {what}{'s' * (count != 1)}"


def _names_and_files(specs: list[str]) -> list[tuple[str, str]]:
    pairs = []
    for spec in specs:
        name, _, file = spec.partition("=")
        if not file:
            raise UsageError(f"--set {spec!r} is not NAME=FILE", fix=_EXAMPLE)
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
        sets: list[Content] = []
        for index, (name, file) in zip(indices or range(len(pairs)), pairs, strict=True):
            entries = files.enter_context(closing(Entries(file, form=form, column=column)))
            sets.append(Content(entries, "a code", MAX_CODE_LENGTH, name, index))
        errors = validate(sets, output)
        if errors.count and session.dry_run:
            output.show_value([each.facts() for each in sets], CHECKED_SETS)
        errors.raise_any()
        service = session.service(BACKEND)
        existing = existing_sets(service)
        if session.dry_run:
            facts = [{**each.facts(), "replaces": existing.get(each.index)} for each in sets]
            output.show_value(facts, CHECKED_SETS)
            output.note("nothing was sent")
            return
        old = {each.index: repr(visible(existing[each.index])) for each in sets if each.index in existing}
        new = {each.index: repr(visible(each.name)) for each in sets}
        if old and not yes and not confirm.in_sandbox(session):
            losses = [f"set {index}: {new[index]}, with other codes, replaces {name}" for index, name in old.items()]
            confirm.ask(session, losses, "Codes not handed out from the old sets will be lost. Replace them?")
        others: dict[str, Any] = {"names": [each.name for each in sets]}
        if indices:  # otherwise the service counts from 0
            others["indices"] = indices
        body = StreamedBody(b'{"codes":[[', sets, b"]]," + encoded(others)[1:])
        codes = counted(sum(each.count for each in sets), "code")
        response = _send(session, service, "PUT", "codes", body, f"{counted(len(sets), 'set')} of {codes}")
    output.show(response, NOTHING)
    for index, name in new.items():
        output.report(f"set {index} is {name}" + (f", in place of {old[index]}" if index in old else ""))


def existing_sets(service: Service) -> dict[int, str]:
    """Return the names of the service's sets, by index."""
    response = service.get("codes")
    with expect_shape(response):
        return names_by_index(document_of(response))


_LIMIT = re.compile("(?:([0-9]{1,9})=)?([0-9]{1,9})")
_SECONDS_BELOW = 100_000_000_000


def grant(prizes: Sequence[int], limits: Sequence[str]) -> dict[str, Any]:
    """Return `prizes` and `prize_limits`. Raises `UsageError`.

    A set's limit is the first of: its own limit, the limit for all sets, the number of its codes in `prizes`.
    """
    by_prize = {prize: prizes.count(prize) for prize in prizes}
    for text in sorted(limits, key=lambda text: "=" in text):  # those for one set last: they count more
        found = _LIMIT.fullmatch(text)
        if not found:
            raise UsageError(f"invalid --limit {text!r}", fix="--limit 2 for every prize, or --limit 3=2 for set 3")
        limited = by_prize if found[1] is None else [int(found[1])]
        if stray := set(limited) - set(prizes):
            raise UsageError(f"set {min(stray)} has a --limit but no --prize")
        by_prize |= dict.fromkeys(limited, int(found[2]))
    return {"prize_limits": [by_prize.get(index, 0) for index in range(max(prizes) + 1)], "prizes": list(prizes)}


def cutoff_of(instant: int, *, milliseconds: bool) -> int:
    """Return an instant in ms as `mark_from_poll` takes it: in whole seconds, rounded up, or in ms (ruling C8).

    A service reads a number below 1e11 as seconds in any case (ruling C4).
    """
    return instant if milliseconds and instant >= _SECONDS_BELOW else -(-instant // 1000)


def mark_all(session: Session, service: Service, users: Entries, granted: dict[str, Any]) -> tuple[int, Response]:
    """Mark the users in a file, and return their number. Raises `UsageError`, before anything is sent."""
    errors, content = ValidationErrors(), Content(users, "an id", MAX_USER_LENGTH)
    for _ in checked([content], session.output, errors):
        pass
    errors.raise_any()
    body = StreamedBody(b'{"users":[', [content], b"]," + encoded(granted)[1:])
    what = counted(content.count, "user")
    return content.count, _send(session, service, "POST", "codes/mark_from_list", body, what)


def count_in(response: Response, header: str) -> int | None:
    """Return how many users a response counts in this header; `None` if it does not say.

    `extcli-marked` has those who may redeem more codes than before, `extcli-users` all that the call named.
    """
    text = response.headers.get(header, "")
    return int(text) if text.isdecimal() else None
