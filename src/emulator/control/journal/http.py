"""`GET /_emulator/journal`, `…/entry` and `…/stream`. Their own responses are not recorded."""

from __future__ import annotations

from typing import Final

from emulator.control.journal.entries import JournalEntry
from emulator.control.journal.rules import DEFAULT_LIMIT, KINDS, MAX_LIMIT
from emulator.control.journal.service import Journals, Listing
from emulator.control.journal.snippets import DEFAULT_URL, FORMS
from emulator.http.endpoint import Audience, Call, JsonLines, Parameter, Streamed, Text, endpoint

_SINCE = Parameter("since", "A number: only later entries.", "integer")
_TIMEOUT = Parameter("timeout", "Real ms after which the stream ends; it stays open when absent.", "integer")
_FILTERS = (
    Parameter(
        "status",
        "A status such as 403 or 4xx, `none` for no response because of a fault, or several, joined with commas.",
    ),
    Parameter("path", "A part of the path, or of the action or topic."),
    Parameter("method", "A method."),
    Parameter("role", "A role of the caller."),
    Parameter("client_id", "The extension of the caller, or of the topic of a delivery."),
    Parameter("channel_id", "The channel of the caller, or of the topic of a delivery."),
    Parameter("user", "The user id or opaque id of the caller."),
    Parameter("kind", f"{', '.join(KINDS)}, or several, joined with commas."),
    Parameter("id", "A request id. The id of a handshake selects all frames of the socket."),
    Parameter("production", "`refuse`, `unknown`, `differ`, `any` or a rule such as `stage`, or several."),
    Parameter("search", "A text in the path, the bodies, the caller or the refusal; case does not matter."),
    Parameter("probes", "With `true`, also requests that a tool made for itself: ids that begin with `probe-`."),
)
_PAGE = (
    _SINCE,
    Parameter("before", "A number: only earlier entries.", "integer"),
    Parameter("limit", f"At most this many, 1 to {MAX_LIMIT:,}; {DEFAULT_LIMIT} when absent.", "integer"),
    Parameter("order", "`newest` or `oldest` first. When absent: oldest first with `since`, otherwise newest first."),
)
_JSON_LINES = "application/x-ndjson"


@endpoint(
    "GET", "/_emulator/journal", audience=Audience.CONTROL, query=(*_FILTERS, *_PAGE), answer=Listing, is_recorded=False
)
async def read_journal(journals: Journals, call: Call) -> Listing:
    """Read the latest requests, socket frames and deliveries."""
    return await journals.page(call.query)


@endpoint(
    "GET",
    "/_emulator/journal/entry",
    audience=Audience.CONTROL,
    query=(
        Parameter("id", "A request id, the number of an entry, or `latest`, which is never a probe."),
        Parameter("as", f"{', '.join(FORMS)}: the response is this text instead."),
        Parameter("url", f"With `as`: the base URL of the service; {DEFAULT_URL} when absent."),
    ),
    answer=JournalEntry,
    is_recorded=False,
)
async def read_journal_entry(journals: Journals, call: Call) -> JournalEntry | Text:
    """Read one entry, or write it as a line for a shell or as a test. Such a text has no token and no secret."""
    if call.text("as"):
        return Text(journals.snippet(call.query).encode(), "text/plain; charset=utf-8")
    return journals.entry(call.query)


@endpoint(
    "GET",
    "/_emulator/journal/stream",
    audience=Audience.CONTROL,
    query=(*_FILTERS, _SINCE, _TIMEOUT),
    answer=JsonLines,
    held=True,
    is_recorded=False,
)
async def follow_journal(journals: Journals, call: Call) -> Streamed:
    """Follow the journal: JSON lines, held open, each an entry as in `GET /_emulator/journal`.

    The line `{"mark": 12, "run": "…"}` states the position of the stream: at its start, and after 15 seconds without an
    entry. The line `{"lost": 3, "mark": 15}` says that three entries were dropped before the stream reached them.
    To resume, pass the last number as `since`; if `run` is another one, the service was restarted, and numbers began
    again.
    """
    return Streamed(journals.stream(call.query), _JSON_LINES)


endpoints: Final = (read_journal, read_journal_entry, follow_journal)
