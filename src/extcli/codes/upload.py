"""The upload of sets of codes: planned from files and what the service has, then shown, confirmed and sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from extcli.codes import streamed_body
from extcli.codes.entries import FileFormat
from extcli.codes.streamed_body import StreamedBody, counted
from extcli.codes.validation import CodeSet, open_sets, validate
from extcli.codes.views import names_by_index
from extcli.errors import UnexpectedAnswer, UsageError
from extcli.output.sanitize import visible
from extcli.reading.shapes import SHAPE_ERRORS, document_of
from extcli.session import BACKEND

if TYPE_CHECKING:
    from extcli.api.client import Service
    from extcli.api.http import Answer
    from extcli.session import Session


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
        return [
            f"set {each.index}, {visible(self.replaced[each.index])!r}, becomes {visible(each.name)!r} with other codes"
            for each in self.sets
            if each.index in self.replaced
        ]

    def changes(self) -> list[str]:
        """Return one line for each set that the upload replaced or added."""
        return [
            f"replaced set {each.index}, {visible(self.replaced[each.index])!r}, with {visible(each.name)!r}"
            if each.index in self.replaced
            else f"added set {each.index}, {visible(each.name)!r}"
            for each in self.sets
        ]

    def send(self) -> Answer:
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

    The files stay open in the block. Raises `UsageError`, and `InvalidEntries` for invalid codes.
    """
    with open_sets(specs, indices, form=form, column=column) as sets:
        validate(sets, session.output).raise_any()
        service = session.service(BACKEND)
        replaced = _replaced(sets, existing_sets(service))
        yield UploadPlan(session, service, sets, replaced, bool(indices))


def existing_sets(service: Service) -> dict[int, str]:
    """Return the names of the service's sets, by index."""
    answer = service.list_codes()
    try:
        return names_by_index(document_of(answer))
    except SHAPE_ERRORS as error:
        raise UnexpectedAnswer(answer) from error


def _replaced(sets: Sequence[CodeSet], existing: Mapping[int, str]) -> dict[int, str]:
    """Return which existing sets are replaced. Raises `UsageError` if a remaining one has the name of a new one."""
    new = {each.index: each.name for each in sets}
    for index, name in existing.items():
        if index not in new and name in new.values():
            raise UsageError(
                f"the service already has a set {visible(name)!r}, at index {index}",
                fix=f"use --index {index} to replace it, or give the new set another name",
            )
    return {index: existing[index] for index in new if index in existing}
