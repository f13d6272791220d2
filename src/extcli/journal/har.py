"""The HTTP Archive (HAR 1.2) of the requests in a journal. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl

from extcli import __version__
from extcli.errors import status_line

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_JSON = "application/json"
_CUT = "the journal keeps the first 4 KiB of a body"

Json = dict[str, Any]


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
        **_own(entry),
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
        "bodySize": body["size"] or -1,  # a streamed answer has no known size
    }


def _comment(body: Mapping[str, Any]) -> Json:
    return {"comment": _CUT} if body["is_cut"] else {}


def _own(entry: Mapping[str, Any]) -> Json:
    """Return what the format has no place for, under names of our own, which begin with `_`."""
    names = ("id", "number", "caller", "reason", "rule", "next_step", "production", "fault")
    return {f"_{name}": entry[name] for name in names if entry.get(name)}
