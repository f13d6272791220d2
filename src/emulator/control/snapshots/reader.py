"""Reads a snapshot from a stream of bytes. No I/O."""

from __future__ import annotations

from typing import Final

from emulator.control.snapshots import rules
from emulator.control.snapshots.codec import decode_record
from emulator.control.snapshots.refusals import invalid
from emulator.control.snapshots.rules import END, Header
from emulator.engines.records import Record
from emulator.errors import BadRequest

_MAX_LINE: Final = 64 * 1024 * 1024
"""Bytes in one line."""


class SnapshotReader:
    """Takes a snapshot in pieces of any size. Every error is a `BadRequest` with the number of the line."""

    def __init__(self) -> None:
        self.header: Header | None = None
        """The first line, once it was read."""
        self.line = 0
        """The lines so far, which is the number of the last one."""
        self._rest: list[bytes] = []
        """Pieces of the line that is not complete."""
        self._rest_size = 0
        self._has_records = False
        self._expects_record = False
        """Whether the last line ended with a comma."""
        self._is_complete = False

    def feed(self, piece: bytes) -> list[tuple[int, Record]]:
        """Take the next bytes, and return the records that they complete, with the numbers of their lines."""
        *lines, rest = piece.split(b"\n")
        records = []
        for each in lines:
            if self._rest:
                each = b"".join((*self._rest, each))
                self._rest.clear()
                self._rest_size = 0
            self.line += 1
            record = self._read(each.strip())
            if record is not None:
                records.append((self.line, record))
        if rest:
            self._rest.append(rest)
            self._rest_size += len(rest)
            if self._rest_size > _MAX_LINE:
                raise invalid(self.line + 1, f"the line has more than {_MAX_LINE:,} bytes")
        return records

    def finish(self) -> Header:
        """Check that the snapshot is complete, and return its header."""
        if self._rest:
            self.feed(b"\n")
        if not self._is_complete or self.header is None:
            raise invalid(max(self.line, 1), "the snapshot is incomplete: its last line `]}` is missing")
        return self.header

    def _read(self, line: bytes) -> Record | None:
        if self.header is None:
            self.header = rules.decode_header(line)
            return None
        if self._is_complete:
            if line:
                raise invalid(self.line, "there is text after the end of the snapshot")
            return None
        if line == END.strip():
            if self._expects_record:
                raise invalid(self.line - 1, "the last record must not end with a comma")
            self._is_complete = True
            return None
        if self._has_records and not self._expects_record:
            raise invalid(self.line - 1, "the line must end with a comma, because another record follows")
        self._expects_record, self._has_records = line.endswith(b","), True
        try:
            return decode_record(line.removesuffix(b","))
        except BadRequest as error:
            raise invalid(self.line, "; ".join(error.details)) from None
