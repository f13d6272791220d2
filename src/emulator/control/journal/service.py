"""Reads the journal: pages of it, one entry, and a stream. Its own responses are not recorded."""

from __future__ import annotations

import asyncio
import base64
import math
from codecs import getincrementaldecoder
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec import Struct

from emulator.control.explanations import explanation_of
from emulator.control.journal import rules
from emulator.control.journal.rules import DEFAULT_LIMIT, MAX_LIMIT, EntryPredicate
from emulator.control.journal.snippets import DEFAULT_URL, SNIPPET_FORMS, is_cut, snippet_of
from emulator.core.clock import monotonic
from emulator.core.errors import Facts, NotFound, refusal
from emulator.core.ids import token_id
from emulator.core.journal import DELIVERY, HIDDEN, Entry, Journal, no_journal
from emulator.http.endpoint import Call, Parameter, Reply, control_endpoint


@refusal(NotFound, "No such entry", "docs: Journal", "The journal has no such entry",
         "List the entries: `extcli logs`.")  # fmt: skip
def no_entry(*, id: str) -> Facts:
    detail = f"id: the journal has no entry {id!r}; the entry may be too old, or from before a reset or restart"
    return Facts(detail, f"id {id!r}", "an entry that the journal still keeps")


LATEST_ENTRY = "latest"
"""As an id: the latest entry."""
HEARTBEAT_SECONDS = 15.0
"""Seconds without an entry after which the stream sends its mark."""
_COLLECTING_SECONDS = 0.02
"""Seconds in which entries are collected for one chunk of the stream."""
_ENTRIES_PER_CHUNK = 200
"""Entries looked at for one chunk of the stream, before other requests run."""
_ENTRIES_PER_STEP = 500
"""Entries looked at before other requests run."""


class JournalCaller(Struct):
    """The caller of an entry, as the token names them."""

    client_id: str
    role: str
    channel_id: str | None
    user_id: str | None
    opaque_id: str


class RecordedBody(Struct):
    """The recorded beginning of a request or response body."""

    text: str
    """Tokens, PINs, codes and secrets are replaced by `[hidden]`."""
    encoding: str
    """`text`, or `base64` if the body is not UTF-8."""
    size: int
    """Bytes of the whole body."""
    is_cut: bool
    """Whether the body is longer than `text`."""
    is_hidden: bool
    """Whether a part is replaced by `[hidden]`."""


class JournalEntry(Struct):
    """One response to a request, reply to a socket frame, or delivery to subscribers."""

    number: int
    """Its mark: later entries have higher numbers."""
    kind: str
    """`request`, `frame` or `delivery`."""
    at: int
    """Unix ms by the service's clock."""
    system_at: int
    """Unix ms by the system's clock."""
    id: str
    """The request id. A frame has its handshake's id and a number, a delivery the id of the request that caused it."""
    namespace: str
    caller: JournalCaller | None
    """The caller, `null` if there is no token."""
    endpoint: str
    """The method and path of the endpoint, the action of a frame, or the topic of a delivery."""
    path: str
    """The path and query that were sent; of a delivery, the client id and channel of the topic, joined by a slash."""
    status: int
    """The status of the response; of a `close`, its code; 0 for a delivery, and if a fault prevented the response."""
    duration_ms: float
    request: RecordedBody
    """What was sent to the service."""
    response: RecordedBody
    """What the service sent."""
    reason: str
    """The reason of a refusal, as in its body."""
    detail: str
    """Its explanation, as in its body."""
    code: str
    """The code of the refusal, as in `X-Emulator-Code`; empty if it has none."""
    rule: str
    """The ruling or section of the specification that it follows from; empty if the entry is not a refusal."""
    next_step: str
    """What to do about it."""
    production: str
    """What production would have done differently, as in `X-Emulator-Production`; empty if nothing."""
    fault: str
    """The id of the fault that acted on it; empty if none did."""
    hint: str
    """What the caller probably meant, as in `X-Emulator-Hint`; empty if nothing is known."""
    recipients: list[str]
    """The first recipients of a delivery."""
    delivered: int
    """Sockets to which it was written."""
    dropped: int
    """Sockets that did not get it: they were closed, or had too many unread bytes."""
    socket: int
    """The number of the socket of a frame or of a handshake; 0 for all others."""


_SHARED_FIELDS = {*JournalEntry.__struct_fields__} & {*Entry.__struct_fields__}
"""Members that readers get as the journal has them, but for some that `for_readers` replaces."""


def _recorded_body(body: bytes, size: int) -> RecordedBody:
    """Return a body as text if it is UTF-8, apart from a character that its end cuts; else as base64."""
    cut = is_cut(body, size)
    try:
        text, encoding = getincrementaldecoder("utf-8")().decode(body, final=not cut), "text"
    except UnicodeDecodeError:
        text, encoding = base64.b64encode(body).decode(), "base64"
    return RecordedBody(text, encoding, size, cut, HIDDEN.encode() in body)


class JournalPage(Struct):
    """The response with a page of the journal."""

    entries: list[JournalEntry]
    mark: int
    """The number of the latest entry, for `since`."""
    lost: int
    """Entries after `since` that the journal no longer keeps."""
    next: int | None
    """`before` of the next page, or with `order=oldest`, its `since`. `null` if there is none."""
    run: str
    """Identifies the run of the service. After a restart it differs, and numbers start again."""


_SINCE = Parameter("since", "Return only entries with a higher number.", "integer")
_TIMEOUT = Parameter("timeout", "Real ms until the stream ends. Default: the stream stays open.", "integer")
_FILTERS = tuple(Parameter(name, each.meaning) for name, each in rules.FILTERS.items())
_PAGE = (
    _SINCE,
    Parameter("before", "Return only entries with a lower number.", "integer"),
    Parameter("limit", f"Return at most this many entries, 1 to {MAX_LIMIT:,}. Default: {DEFAULT_LIMIT}.", "integer"),
    Parameter("order", "`newest` or `oldest` first. Default: oldest first with `since`, otherwise newest first."),
)


@dataclass(eq=False, repr=False)
class Journals:
    """The journal of one service, for readers."""

    _journal: Journal
    _namespace: str
    _run: str = field(default_factory=token_id)
    """Tells readers whether their marks are of this run of the service."""

    @control_endpoint("GET", "/_emulator/journal", query=(*_FILTERS, *_PAGE), answer=JournalPage, is_recorded=False)
    async def read_journal(self, call: Call) -> JournalPage:
        """Read the latest requests, socket frames and deliveries."""
        return await self.page(call.query)

    @control_endpoint(
        "GET",
        "/_emulator/journal/entry",
        query=(
            Parameter(
                "id",
                "A request id, an entry's number, or `latest`: the newest request that extcli did not send for itself.",
            ),
            Parameter("as", f"Return the request as text in one of these forms: {', '.join(SNIPPET_FORMS)}."),
            Parameter("url", f"With `as`: the base URL of the service. Default: {DEFAULT_URL}."),
        ),
        answer=JournalEntry,
        is_recorded=False,
    )
    async def read_journal_entry(self, call: Call) -> JournalEntry | Reply:
        """Read one entry; with `as`, as a command or a test, without tokens and secrets."""
        form = call.text("as")
        rules.check_parameter_names(call.query, *(("id", "as", "url") if form else ("id",)))
        entry = self.find(call.text("id"))
        if form:
            return Reply(200, snippet_of(entry, form, call.text("url")).encode(), content_type=b"text/plain")
        return self.for_readers(entry)

    @control_endpoint(
        "GET",
        "/_emulator/journal/stream",
        query=(*_FILTERS, _SINCE, _TIMEOUT),
        content_type=b"application/x-ndjson",
        held=True,
        is_recorded=False,
    )
    async def follow_journal(self, call: Call) -> AsyncIterator[bytes]:
        """Follow the journal as JSON lines, in an open response. A line is an entry as in `GET /_emulator/journal`.

        The line `{"mark": 12, "run": "…"}` states the position of the stream: at its start, and after 15 seconds
        without an entry. The line `{"lost": 3, "mark": 15}` says that three entries were dropped before the stream
        reached them. To resume, pass the last number as `since`; if `run` differs, the service was restarted, and
        numbers began again.
        """
        # A slow reader uses no memory: the stream continues after its last entry.
        self._require_journal()
        rules.check_parameter_names(call.query, *rules.FILTERS, "since", "timeout")
        since, timeout = rules.number_of(call.query, "since"), rules.number_of(call.query, "timeout")
        deadline = math.inf if timeout is None else monotonic() + timeout / 1_000
        mark = self._journal.mark if since is None else since
        return self._stream_lines(mark, rules.predicate(call.query), deadline)

    async def page(self, query: Mapping[str, str]) -> JournalPage:
        """Return the entries that a query selects. Raises `BadRequest`, and `Forbidden` if there is no journal."""
        self._require_journal()
        rules.check_parameter_names(query, *rules.FILTERS, "since", "before", "limit", "order")
        journal, since, before = self._journal, rules.number_of(query, "since"), rules.number_of(query, "before")
        limit, is_newest_first, matches = rules.limit_of(query), rules.is_newest_first(query), rules.predicate(query)
        mark, lost = journal.mark, 0 if since is None else journal.count_lost_since(since)
        later = 0 if before is None else max(0, mark + 1 - before)
        entries = journal.newest(max(0, mark - (since or 0)))[later:]
        if not is_newest_first:
            entries.reverse()
        found, more = list[Entry](), None
        for position, entry in enumerate(entries, 1):
            if matches(entry):
                if len(found) == limit:
                    more = found[-1].number
                    break
                found.append(entry)
            if position % _ENTRIES_PER_STEP == 0:
                await asyncio.sleep(0)
        return JournalPage(list(map(self.for_readers, found)), mark, lost, more, self._run)

    def find(self, id: str) -> Entry:
        """Return the entry with this request id or number, a delivery only by number, or the latest.

        Raises `NotFound`.
        """
        self._require_journal()
        for entry in self._journal.newest():
            if (id == LATEST_ENTRY and not entry.is_probe) or (entry.id == id and entry.kind != DELIVERY):
                return entry
        for entry in self._journal.find_number(id):
            return entry
        raise no_entry(id=id[:64])

    async def _stream_lines(self, mark: int, matches: EntryPredicate, deadline: float) -> AsyncIterator[bytes]:
        journal, encode_lines = self._journal, msgspec.json.Encoder().encode_lines
        if mark > journal.mark:  # of an earlier run of the service
            mark = 0
        yield encode_lines([{"mark": mark, "run": self._run}])
        with journal.watching() as changed:
            while True:
                changed.clear()
                while mark < journal.mark:
                    lines = list[Any]()
                    if lost := journal.count_lost_since(mark):
                        mark += lost
                        lines.append({"lost": lost, "mark": mark})
                    for entry in journal.since(mark, _ENTRIES_PER_CHUNK):
                        mark = entry.number
                        if matches(entry):
                            lines.append(self.for_readers(entry))
                    if lines:
                        yield encode_lines(lines)
                    await asyncio.sleep(0)
                left = deadline - monotonic()
                if left <= 0:
                    return
                try:
                    async with asyncio.timeout(min(HEARTBEAT_SECONDS, left)):
                        await changed.wait()
                    await asyncio.sleep(_COLLECTING_SECONDS)
                except TimeoutError:
                    yield encode_lines([{"mark": mark, "run": self._run}])

    def for_readers(self, entry: Entry) -> JournalEntry:
        """Return an entry for readers, with the explanation of its refusal."""
        explanation = explanation_of(entry)
        members: dict[str, Any] = {name: getattr(entry, name) for name in _SHARED_FIELDS}
        members |= {
            "caller": entry.caller and msgspec.convert(entry.caller, JournalCaller, from_attributes=True),
            "system_at": entry.at - entry.offset,
            "namespace": self._namespace,
            "endpoint": entry.name,
            "duration_ms": round(entry.seconds * 1_000, 3),
            "request": _recorded_body(entry.request, entry.request_size),
            "response": _recorded_body(entry.response, entry.response_size),
            "code": entry.refused.code if entry.refused else "",
            "rule": explanation.rule if explanation else "",
            "next_step": explanation.next_step if explanation else "",
            "recipients": entry.recipients.split("\n") if entry.recipients else [],
        }
        return JournalEntry(**members)

    def _require_journal(self) -> None:
        if not self._journal.is_on:
            raise no_journal()
