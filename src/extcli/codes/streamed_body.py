"""A JSON body too large for memory: arrays of strings that are read from their files while they are sent."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from extcli import clock
from extcli.codes.entries import Entries
from extcli.errors import CliError
from extcli.output import progress

if TYPE_CHECKING:
    from extcli.api.http import Response
    from extcli.session import Session

_TIMEOUT = 600.0
"""Seconds to wait for the response: the service may store ten million codes before it sends one."""
_REPORTS_RATE = 1_000_000
"""Bytes from which on the report names the rate."""


class StreamedBody:
    """`{"<name>": […], <others>}`. Each iteration reads the sources again, so that a request can be retried."""

    def __init__(
        self, name: str, sources: Sequence[Entries], sizes: Sequence[int], *, nested: bool, others: dict[str, Any]
    ) -> None:
        """`sizes` are the bytes of `json_items` for each source. `nested` makes each source an array of its own."""
        self._sources = sources
        self._start = f'{{"{name}":{"[[" if nested else "["}'.encode()
        self._between = b"],[" if nested else b","
        self._end = f"{']]' if nested else ']'},{_compact(others)[1:]}".encode()
        arrays = sum(max(size - 1, 0) for size in sizes)  # without the last comma of each
        self.length = len(self._start) + arrays + len(self._between) * (len(sources) - 1) + len(self._end)
        self.on_progress: Callable[[int], None] = lambda _: None
        """Called with the number of bytes sent so far."""

    def __iter__(self) -> Iterator[bytes]:
        sent = 0
        for piece in self._pieces():
            sent += len(piece)
            yield piece
            self.on_progress(sent)
        if sent + len(self._end) != self.length or any(source.changed for source in self._sources):
            # Without its end the body is invalid, so the service stores nothing.
            raise CliError(
                "a file changed while it was sent",
                why="its content is no longer what was checked",
                fix="nothing changed at the service; try again when the files are complete",
            )
        yield self._end
        self.on_progress(self.length)

    def _pieces(self) -> Iterator[bytes]:
        yield self._start
        for position, source in enumerate(self._sources):
            if position:
                yield self._between
            waiting = b""
            for batch in source:
                if not batch.items:
                    continue
                if waiting:
                    yield waiting
                waiting = json_items(batch.items)
            yield waiting.removesuffix(b",")


def json_items(items: Sequence[str]) -> bytes:
    """Return strings as elements of a JSON array, each followed by a comma."""
    text = '","'.join(items)
    if text.count('"') == 2 * (len(items) - 1) and "\\" not in text and text.isprintable():
        return f'"{text}",'.encode()
    return f"{_compact(items)[1:-1]},".encode()


def send(session: Session, body: StreamedBody, request: Callable[[StreamedBody], Response], what: str) -> Response:
    """Send the body with a progress bar, and report how long it took; `what` describes the content."""
    session.http.set_timeout(session.resolver.timeout(_TIMEOUT))
    started = clock.elapsed()
    with progress.progress_bar(session.output, "sending", body.length) as body.on_progress:
        response = request(body)
    seconds = max(clock.elapsed() - started, 1e-9)
    rate = f", {body.length / seconds / 1e6:,.1f} MB/s" if body.length > _REPORTS_RATE else ""
    session.output.report(f"{what} sent ({seconds:.1f}s{rate})")
    return response


def counted(count: int, what: str) -> str:
    """`1 code`, `1,000 codes`."""
    return f"{count:,} {what}{'s' * (count != 1)}"


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
