"""Views of entries of the journal, and an HTTP Archive of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from extcli import __version__, bounded_json
from extcli.errors import status_line
from extcli.output import times
from extcli.output.columns import Column, listing
from extcli.output.printer import RenderableType, View
from extcli.output.sanitize import field, pretty_json, visible, visible_lines
from extcli.output.terminal import unwrapped_text, wrap_lines
from extcli.output.views import stack

if TYPE_CHECKING:
    from rich.text import Text

Json = Mapping[str, Any]


def request_text(entry: Json) -> str:
    """Return an entry's request in words: `POST /v1/e/vote?id=rps`, `frame set state`, `delivery poll:rps`."""
    if entry["kind"] == "request":
        return f"{entry['endpoint'].partition(' ')[0]} {entry['path']}"
    return f"{entry['kind']} {entry['endpoint']}"


def caller_text(entry: Json, *, with_client: bool = False) -> str:
    """Return the caller as `viewer:5551@777`: role, and the user and channel if the token names them.

    The client id is added on request: `viewer:5551@777 of my-extension`.
    """
    caller = entry["caller"]
    if caller is None:
        return "-"
    if with_client:
        return f"{caller_text(entry)} of {caller['client_id']}"
    user = caller["user_id"] or ("" if caller["opaque_id"].startswith("A-") else caller["opaque_id"])
    channel = caller["channel_id"]
    return f"{caller['role']}{f':{user}' if user else ''}{f'@{channel}' if channel else ''}"


def note_text(entry: Json) -> str:
    """Return a note on an entry: the reason of its refusal, its recipients, its fault or production's verdict, and its
    hint.
    """
    return "; ".join(filter(None, (_own_note(entry), entry.get("hint"))))


def _own_note(entry: Json) -> str:
    if entry["kind"] == "delivery":
        fault = f", fault {entry['fault']}" if entry.get("fault") else ""
        return f"to {entry['delivered']}" + (f", {entry['dropped']} dropped" if entry["dropped"] else "") + fault
    if entry["reason"]:
        return f"{entry['rule']}: {entry['detail']}" if entry["rule"] else entry["detail"] or entry["reason"]
    if entry.get("fault"):
        return f"fault {entry['fault']}"
    is_control = entry["path"].startswith(("/_emulator", "/_ns"))  # no extension calls it
    return f"production: {entry['production']}" if entry["production"] and not is_control else ""


_WIDE_TERMINAL, _NARROW_TERMINAL = 120, 80
"""Columns of a terminal from which request ids are shown, and below which milliseconds are left out."""
_STATUS_STYLES = {2: "quiet", 3: "quiet", 4: "warning"}
"""The style of a line by the first digit of its status. Others failed."""


def entries_text(entries: Iterable[Json], width: int) -> Text:
    """Return the lines of each entry: its request and caller, then its note, wrapped at words.

    A narrow terminal gets neither ids nor milliseconds. Callers are shown with their client ids if there are several.
    """
    from rich.text import Text

    listed = list(entries)
    with_client = len(client_ids(listed)) > 1
    return Text("\n").join(entry_text(entry, width, with_client=with_client) for entry in listed)


def entry_text(entry: Json, width: int, *, with_client: bool = False) -> Text:
    """Return the lines of one entry."""
    from rich.cells import cell_len

    at = times.time_of_day(entry["system_at"])[: 8 if width < _NARROW_TERMINAL else None]  # by the system's clock
    is_delivery = entry["kind"] == "delivery"
    took = "" if is_delivery else f"{entry['duration_ms']:.1f} ms"
    caller, note = visible(caller_text(entry, with_client=with_client)), visible(note_text(entry))
    named = f"{at} {entry['status'] or '':<3} {visible(request_text(entry)):<29} {caller}"
    timed = f"{named:<{len(at) + 57}} {took:>9}"
    forms = ([f"{timed}  {visible(entry['id'])}"] if width >= _WIDE_TERMINAL else []) + (
        [timed] if width >= _NARROW_TERMINAL else []
    )
    first = next((form.rstrip() for form in forms if cell_len(form) <= width), named)
    indent = len(at) + 5
    style = "good" if is_delivery else _STATUS_STYLES.get(entry["status"] // 100, "bad")
    made = unwrapped_text("").append(wrap_lines(first, width, indent), style)
    if not note:
        return made
    fits = width >= _WIDE_TERMINAL and cell_len(f"{first}  {note}") <= width
    return made.append(f"  {note}" if fits else "\n" + wrap_lines(" " * indent + note, width))


def client_ids(entries: Iterable[Json]) -> set[str]:
    """Return the client ids of the callers."""
    return {entry["caller"]["client_id"] for entry in entries if entry["caller"] is not None}


_ENTRIES = listing(
    "entries",
    Column("time", "system_at"),
    Column("status"),
    Column("request", request_text),
    Column("caller", caller_text),
    Column("ms", "duration_ms"),
    Column("id"),
    Column("note", note_text),
)
ENTRIES = replace(
    _ENTRIES, table=lambda document: entries_text(document["entries"], get_terminal_size().columns) or "no entries"
)
"""A part of the journal."""


def entry_view(*, with_client: bool) -> View:
    """Return the view of one entry of many, as it happens."""
    return View(
        table=lambda entry: entry_text(entry, get_terminal_size().columns, with_client=with_client),
        rows=lambda entry: _ENTRIES.rows({"entries": [entry]}),
        columns=_ENTRIES.columns,
    )


_OPTIONAL_FACTS = ("rule", "detail", "next_step", "production", "fault", "hint")


def _entry_facts(entry: Json) -> Iterator[tuple[str, str]]:
    at, system_at = times.utc_text(entry["at"]), times.utc_text(entry["system_at"])
    yield "request", request_text(entry)
    yield "response", _response_text(entry)
    yield "id", f"{entry['id']} (number {entry['number']})"
    yield "time", system_at if at == system_at else f"{system_at}; {at} by the service's clock"
    yield "caller", caller_text(entry) + (f", {entry['caller']['client_id']}" if entry["caller"] else "")
    for member in _OPTIONAL_FACTS:
        if entry.get(member):
            yield "why" if member == "detail" else member.replace("_", " "), entry[member]
    for recipient in entry["recipients"]:
        yield "recipient", recipient
    for delivery in entry.get("deliveries", ()):
        yield "delivery", f"{delivery['endpoint']} {', '.join([note_text(delivery), *delivery['recipients']])}"


def _response_text(entry: Json) -> str:
    if entry["kind"] == "delivery":
        return note_text(entry)
    return " ".join(filter(None, (str(entry["status"] or ""), entry["reason"], f"in {entry['duration_ms']:.1f} ms")))


def _entry_table(entry: Json) -> RenderableType:
    facts = list(_entry_facts(entry))
    width = max(len(name) for name, _ in facts) + 2
    parts: list[RenderableType] = ["\n".join(f"{name:<{width}}{visible(value)}" for name, value in facts)]
    for name in ("request", "response"):
        body = entry[name]
        if body["size"] or body["text"]:
            lines = [f"{name} body, {_body_size(body)}:", *(f"  {line}" for line in _readable_body(body).split("\n"))]
            parts.append(unwrapped_text("\n".join(lines)))
    return stack(*parts)


def _body_size(body: Json) -> str:
    size = f"{body['size']:,} bytes" if body["size"] else "streamed"
    notes = [size, "cut" if body["is_cut"] else "", "base64" if body["encoding"] == "base64" else ""]
    return ", ".join(filter(None, notes))


def _readable_body(body: Json) -> str:
    try:
        return pretty_json(bounded_json.decoded(body["text"]))
    except ValueError:
        return visible_lines(body["text"])


def _entry_rows(entry: Json) -> Iterator[tuple[str, str]]:
    for name, value in _entry_facts(entry):
        yield name, field(value)
    for name in ("request", "response"):
        if text := entry[name]["text"]:
            yield f"{name} body", field(text)


ENTRY = View(table=_entry_table, rows=_entry_rows)
"""One entry with all that is known."""


_BODY_COMPARISONS = {True: "the body is the same", False: "the body differs", None: "the bodies cannot be compared"}


REPLAYS = listing(
    "replays",
    Column("status before", "before"),
    Column("status"),
    Column("same body", "same_body", text=_BODY_COMPARISONS.__getitem__),
    Column("request id", "request_id"),
)
"""The outcomes of repeated requests."""


_EXTRA_MEMBERS = ("id", "number", "caller", "reason", "rule", "next_step", "production", "fault")
"""Facts of an entry that HAR has no field for. Their names in it begin with `_`."""


def har_lines(entries: Iterable[Json], url: str) -> Iterator[str]:
    """Yield the lines of an archive, one per request. `url` is the base URL of the service, without a namespace.

    Frames and deliveries are left out, as the format has no place for them.
    """
    creator = {"name": "extcli", "version": __version__}
    yield f'{{"log": {{"version": "1.2", "creator": {json.dumps(creator)}, "pages": [], "entries": ['
    before = ""
    for entry in entries:
        if entry["kind"] == "request":
            yield before + json.dumps(_har_entry(entry, url), ensure_ascii=False)
            before = ","
    yield "]}}"


def _har_entry(entry: Json, url: str) -> Json:
    method, took = entry["endpoint"].partition(" ")[0], entry["duration_ms"]
    base = url if entry["namespace"] in ("", "default") else f"{url}/_ns/{entry['namespace']}"
    began = datetime.fromtimestamp((entry["system_at"] - took) / 1000, UTC)
    sent, answered = entry["request"], entry["response"]
    query = parse_qsl(entry["path"].partition("?")[2], keep_blank_values=True)
    request = {
        "method": method,
        "url": f"{base}{entry['path']}",
        "queryString": [{"name": name, "value": value} for name, value in query],
        "bodySize": sent["size"],
    }
    if sent["size"]:
        request["postData"] = _har_content(sent, "_encoding")
    response = {
        "status": entry["status"],
        "statusText": status_line(entry["status"])[4:],
        "content": {"size": answered["size"], **_har_content(answered, "encoding")},
        "redirectURL": "",
        "bodySize": answered["size"] or -1,  # a streamed response has no known size
    }
    return {
        "startedDateTime": began.isoformat(timespec="milliseconds"),
        "time": took,
        "request": request | _UNRECORDED_MEMBERS,
        "response": response | _UNRECORDED_MEMBERS,
        "cache": {},
        "timings": {"send": 0, "wait": took, "receive": 0},
        **{f"_{name}": entry[name] for name in _EXTRA_MEMBERS if entry.get(name)},
    }


_UNRECORDED_MEMBERS: dict[str, Any] = {"httpVersion": "HTTP/1.1", "cookies": [], "headers": [], "headersSize": -1}
"""What HAR requires of both a request and a response, and the journal does not have."""


def _har_content(body: Json, encoding: str) -> Json:
    """Return a body. `encoding` is the member that says that it is in base64."""
    comment = {"comment": "the journal keeps the first 4 KiB of a body"} if body["is_cut"] else {}
    coded = {encoding: "base64"} if body["encoding"] == "base64" else {}
    return {"mimeType": "application/json", "text": body["text"], **comment, **coded}
