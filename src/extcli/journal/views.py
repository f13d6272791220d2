"""Views of entries of the journal, and an HTTP Archive of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from shutil import get_terminal_size
from textwrap import wrap
from typing import Any
from urllib.parse import parse_qsl

from extcli import __version__, bounded_json
from extcli.errors import status_line
from extcli.output import times
from extcli.output.columns import Column, listing
from extcli.output.printer import View
from extcli.output.sanitize import field, pretty_json, visible, visible_lines

Json = Mapping[str, Any]

_INDENT = 17
"""Columns before the request: the time in UTC, and the status."""
_LONGEST_ID = 24
"""Characters of an id that is shown next to the request; a longer one is below."""


def request_of(entry: Json) -> str:
    """Return an entry's request in words: `POST /v1/e/vote?id=rps`, `frame set state`, `delivery poll:rps`."""
    if entry["kind"] == "request":
        return f"{entry['endpoint'].partition(' ')[0]} {entry['path']}"
    return f"{entry['kind']} {entry['endpoint']}"


def caller_of(entry: Json, *, with_client: bool = False) -> str:
    """Return the caller as `viewer:5551@777`: role, and the user and channel if the token names them.

    The client id is added on request: `viewer:5551@777 of my-extension`.
    """
    caller = entry["caller"]
    if caller is None:
        return "-"
    if with_client:
        return f"{caller_of(entry)} of {caller['client_id']}"
    user = caller["user_id"] or ("" if caller["opaque_id"].startswith("A-") else caller["opaque_id"])
    channel = caller["channel_id"]
    return f"{caller['role']}{f':{user}' if user else ''}{f'@{channel}' if channel else ''}"


def note_of(entry: Json) -> str:
    """Return a note on an entry: the reason of its refusal, its recipients, its fault or production's verdict, and its
    hint.
    """
    return "; ".join(filter(None, (_note_of(entry), entry.get("hint"))))


def _note_of(entry: Json) -> str:
    if entry["kind"] == "delivery":
        fault = f", fault {entry['fault']}" if entry.get("fault") else ""
        return f"to {entry['delivered']}" + (f", {entry['dropped']} dropped" if entry["dropped"] else "") + fault
    if entry["reason"]:
        return f"{entry['rule']}: {entry['detail']}" if entry["rule"] else entry["detail"] or entry["reason"]
    if entry.get("fault"):
        return f"fault {entry['fault']}"
    is_control = entry["path"].startswith(("/_emulator", "/_ns"))  # no extension calls it
    return f"production: {entry['production']}" if entry["production"] and not is_control else ""


def _status(entry: Json) -> str:
    return str(entry["status"] or "")


def _cells(entry: Json, *, with_client: bool = False) -> list[str]:
    took = "" if entry["kind"] == "delivery" else f"{entry['duration_ms']:.1f} ms"
    return [
        times.time_of_day(entry["system_at"]),  # by the system's clock
        _status(entry),
        visible(request_of(entry)),
        visible(caller_of(entry, with_client=with_client)),
        took,
        visible(entry["id"]),
        visible(note_of(entry)),
    ]


def lines_of(entries: Iterable[Json], total: int) -> str:
    """Return the lines of each entry, of at most `total` columns: the request, then its caller and a note, wrapped.

    Callers are shown with their client ids if there are several.
    """
    listed = list(entries)
    with_client = len(clients_of(listed)) > 1
    rows = [_cells(entry, with_client=with_client) for entry in listed]
    ids = max((len(id) for *_, id, _ in rows if len(id) <= _LONGEST_ID), default=0)
    times_taken = max((len(took) for *_, took, _, _ in rows), default=0)
    around = _INDENT + times_taken + len("  ") + ids
    width = min(max(total - around, 20), max((len(request) for _, _, request, *_ in rows), default=0))
    lines = []
    for time, status, request, caller, took, id, note in rows:
        beside, below = (id, "") if len(id) <= _LONGEST_ID else ("", f"{id} ")
        first = f"{time} {status:<3} {_cut_to_width(request, width):<{width}} {took:>{times_taken}} {beside}"
        lines.append(_cut_to_width(first.rstrip(), total))
        second = f"{below}{caller:<18} {note}"
        lines += [_cut_to_width(f"{'':<{_INDENT}}{part}", total) for part in wrap(second, max(total - _INDENT, 20))]
    return "\n".join(lines)


def clients_of(entries: Iterable[Json]) -> set[str]:
    """Return the client ids of the callers."""
    return {entry["caller"]["client_id"] for entry in entries if entry["caller"] is not None}


def _cut_to_width(text: str, width: int) -> str:
    """Return a text of at most `width` columns of a terminal."""
    from rich.cells import cell_len, set_cell_size

    return text if cell_len(text) <= width else f"{set_cell_size(text, width - 1)}…"


_ENTRIES = listing(
    "entries",
    Column("time", "system_at", plain=str),
    Column("status", plain=str),
    Column("request", request_of),
    Column("caller", caller_of),
    Column("ms", "duration_ms", plain=str),
    Column("id"),
    Column("note", note_of),
)
ENTRIES = replace(
    _ENTRIES,
    table=lambda document: lines_of(document["entries"], get_terminal_size().columns) or "no entries",
)
"""A part of the journal."""


def line_of(entry: Json, *, with_client: bool = False) -> str:
    """Return an entry as one line for people, in columns, cut to the width of the terminal."""
    time, status, request, caller, took, id, note = _cells(entry, with_client=with_client)
    total = get_terminal_size().columns
    width = 36 if total >= 120 else 30
    line = f"{time} {status:<3} {_cut_to_width(request, width):<{width}} {id:<14} {caller:<18} {took:>10} {note}"
    return _cut_to_width(line.rstrip(), total)


ENTRY_LINE = View(table=line_of, rows=lambda entry: _ENTRIES.rows({"entries": [entry]}), columns=_ENTRIES.columns)
"""One entry of many, as it happens."""
ENTRY_LINE_WITH_CLIENT = replace(ENTRY_LINE, table=partial(line_of, with_client=True))
"""The same, where callers have several client ids."""


_FACTS = ("rule", "detail", "next_step", "production", "fault", "hint")


def _facts(entry: Json) -> Iterator[tuple[str, str]]:
    at, system_at = times.shown(entry["at"]), times.shown(entry["system_at"])
    yield "request", f"{request_of(entry)}"
    yield "response", _response_of(entry)
    yield "id", f"{entry['id']} (number {entry['number']})"
    yield "time", system_at if at == system_at else f"{system_at}; {at} by the service's clock"
    yield "caller", caller_of(entry) + (f", {entry['caller']['client_id']}" if entry["caller"] else "")
    for member in _FACTS:
        if entry.get(member):
            yield "why" if member == "detail" else member.replace("_", " "), entry[member]
    for recipient in entry["recipients"]:
        yield "recipient", recipient
    for delivery in entry.get("deliveries", ()):
        yield "delivery", f"{delivery['endpoint']} {', '.join([note_of(delivery), *delivery['recipients']])}"


def _response_of(entry: Json) -> str:
    if entry["kind"] == "delivery":
        return note_of(entry)
    return " ".join(filter(None, (_status(entry), entry["reason"], f"in {entry['duration_ms']:.1f} ms")))


def _shown_time(entry: Json) -> str:
    width = max(len(name) for name, _ in _facts(entry)) + 2
    lines = [f"{name:<{width}}{visible(value)}" for name, value in _facts(entry)]
    for name in ("request", "response"):
        body = entry[name]
        if body["size"] or body["text"]:
            lines += ["", f"{name} body, {_size(body)}:", *(f"  {line}" for line in _readable(body).split("\n"))]
    return "\n".join(lines)


def _size(body: Json) -> str:
    size = f"{body['size']:,} bytes" if body["size"] else "streamed"
    notes = [size, "cut" if body["is_cut"] else "", "base64" if body["encoding"] == "base64" else ""]
    return ", ".join(filter(None, notes))


def _readable(body: Json) -> str:
    try:
        return pretty_json(bounded_json.decoded(body["text"]))
    except ValueError:
        return visible_lines(body["text"])


def _rows(entry: Json) -> Iterator[tuple[str, str]]:
    for name, value in _facts(entry):
        yield name, field(value)
    for name in ("request", "response"):
        if text := entry[name]["text"]:
            yield f"{name} body", field(text)


ENTRY = View(table=_shown_time, rows=_rows)
"""One entry with all that is known."""


def _replays_table(document: Json) -> str:
    return "\n".join(
        f"{each['before']} before, now {each['status']}; {_SAME[each['same_body']]}; "
        f"request id {visible(each['request_id'])}"
        for each in document["replays"]
    )


_SAME = {True: "the body is the same", False: "the body differs", None: "the bodies cannot be compared"}


REPLAYS = replace(
    listing(
        "replays",
        Column("status before", "before", plain=str),
        Column("status", plain=str),
        Column("same body", "same_body", plain=json.dumps),
        Column("request id", "request_id"),
    ),
    table=_replays_table,
)
"""The outcomes of repeated requests."""


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_JSON = "application/json"
_PRIVATE = ("id", "number", "caller", "reason", "rule", "next_step", "production", "fault")
"""Facts of an entry that HAR has no field for. Their names in it begin with `_`."""
_CUT = "the journal keeps the first 4 KiB of a body"


def har_lines(entries: Iterable[Mapping[str, Any]], url: str) -> Iterator[str]:
    """Yield the lines of an archive, one per request. `url` is the base URL of the service, without a namespace.

    Frames and deliveries are left out, as the format has no place for them.
    """
    creator = {"name": "extcli", "version": __version__}
    yield f'{{"log": {{"version": "1.2", "creator": {json.dumps(creator)}, "pages": [], "entries": ['
    before = ""
    for entry in entries:
        if entry["kind"] == "request":
            yield before + json.dumps(_entry(entry, url), ensure_ascii=False)
            before = ","
    yield "]}}"


def _entry(entry: Mapping[str, Any], url: str) -> Json:
    method, took = entry["endpoint"].partition(" ")[0], entry["duration_ms"]
    base = url if entry["namespace"] in ("", "default") else f"{url}/_ns/{entry['namespace']}"
    began = _EPOCH + timedelta(milliseconds=entry["system_at"] - took)
    return {
        "startedDateTime": began.isoformat(timespec="milliseconds"),
        "time": took,
        "request": _request(method, f"{base}{entry['path']}", entry["request"]),
        "response": _response(entry["status"], entry["response"]),
        "cache": {},
        "timings": {"send": 0, "wait": took, "receive": 0},
        **{f"_{name}": entry[name] for name in _PRIVATE if entry.get(name)},
    }


def _request(method: str, url: str, body: Mapping[str, Any]) -> Json:
    query = parse_qsl(url.partition("?")[2], keep_blank_values=True)
    request = {
        "method": method,
        "url": url,
        "httpVersion": "HTTP/1.1",
        "cookies": [],
        "headers": [],
        "queryString": [{"name": name, "value": value} for name, value in query],
        "headersSize": -1,
        "bodySize": body["size"],
    }
    if body["size"]:
        request["postData"] = {"mimeType": _JSON, "text": body["text"], **_comment(body)}
        if body["encoding"] == "base64":
            request["postData"]["_encoding"] = "base64"
    return request


def _response(status: int, body: Mapping[str, Any]) -> Json:
    content = {"size": body["size"], "mimeType": _JSON, "text": body["text"], **_comment(body)}
    if body["encoding"] == "base64":
        content["encoding"] = "base64"
    return {
        "status": status,
        "statusText": status_line(status)[4:],
        "httpVersion": "HTTP/1.1",
        "cookies": [],
        "headers": [],
        "content": content,
        "redirectURL": "",
        "headersSize": -1,
        "bodySize": body["size"] or -1,  # a streamed response has no known size
    }


def _comment(body: Mapping[str, Any]) -> Json:
    return {"comment": _CUT} if body["is_cut"] else {}
