"""A checker of HTTP Archives, by the specification of HAR 1.2."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_MESSAGE = ("httpVersion", "cookies", "headers", "headersSize", "bodySize")
_MEMBERS = {
    "entry": ("startedDateTime", "time", "request", "response", "cache", "timings"),
    "request": ("method", "url", "queryString", *_MESSAGE),
    "response": ("status", "statusText", "content", "redirectURL", *_MESSAGE),
    "timings": ("send", "wait", "receive"),
}
_OPTIONAL = {"postData", "comment"}


def har_errors(archive: Any) -> list[str]:
    """Return what is wrong with an archive, empty if it is valid."""
    log = archive["log"]
    missing = [name for name in ("version", "creator", "entries") if name not in log]
    return [*missing, *(error for entry in log["entries"] for error in _errors(entry))]


def _errors(entry: dict[str, Any]) -> Iterator[str]:
    for part, names in _MEMBERS.items():
        members = entry if part == "entry" else entry[part]
        own = {name for name in members if not name.startswith("_")}  # these are allowed everywhere
        yield from (f"{part}: {name}" for name in {*names} ^ (own - _OPTIONAL))
    if not entry["startedDateTime"].endswith("+00:00"):
        yield "a time has no zone"
