"""Opens the medium that a data URL names. A new engine is added here, to `open_medium` and `ACCEPTED_URLS`."""

from __future__ import annotations

import os
import re

from emulator.storage.engine import Engine, Medium

_DRIVE = re.compile(r"[A-Za-z]:[/\\]")
_NETWORK_SHARE = re.compile(r"(//|\\\\)[^/\\]+[/\\][^/\\]+[/\\]")
"""The beginning of a path on another machine: `//server/share/`."""
ACCEPTED_URLS = (
    "accepted are sqlite:// (in memory), sqlite:///absolute/path/to/file.db, sqlite:///./relative/to/here.db, "
    "on Windows sqlite:///C:/path/to/file.db "
    "(a file may be followed by ?synchronous=full), "
    "redis://host:port/number (rediss:// with TLS) or valkey://host:port/number"
)


def open_engine(url: str, *, namespace: str) -> Engine:
    """Return the engine of one namespace of the medium that `open_medium` returns."""
    return open_medium(url).engine(namespace)


def open_medium(url: str) -> Medium:
    """Return the medium that `url` names. It is closed: `async with` opens it.

    A file path is used literally, up to a `?`: leading slashes count as one, and percent-escapes are not decoded.
    Raises `ValueError` for an unsupported URL; the message never shows a password.
    """
    scheme, separator, rest = url.partition("://")
    match scheme, separator:
        case "sqlite", "://":
            from emulator.storage.sqlite import SqliteMedium

            file, _, query = rest.partition("?")
            name, _, value = query.partition("=")
            if file and name == "synchronous" and value not in ("normal", "full"):
                raise data_url_error(url, f"synchronous must be normal or full, not {value!r}")
            if query not in ("", "synchronous=normal", "synchronous=full") or (query and not file):
                raise data_url_error(url)
            return SqliteMedium(database_path(file, url), awaits_disk=query.endswith("full"))
        case "redis" | "rediss" | "valkey", "://":
            from emulator.storage.redis import RedisMedium

            return RedisMedium(url)
        case _:
            raise data_url_error(url)


def database_path(rest: str, url: str, *, has_drives: bool = os.name == "nt") -> str | None:
    """Return the path. Where paths have drives, `/C:/x.db` is `C:/x.db`, and `///server/share/x.db` is on a server."""
    if not rest:
        return None
    if has_drives and rest.startswith("/") and _NETWORK_SHARE.match(rest, 1):
        return rest[1:]
    path = rest.lstrip("/")
    if path.startswith(("./", "../")):
        return path
    if path != rest and has_drives and _DRIVE.match(path):
        return path
    if not path or path == rest:  # no path, or a host
        raise data_url_error(url, has_drives=has_drives)
    return "/" + path


def data_url_error(url: str, why: str = ACCEPTED_URLS, *, has_drives: bool = os.name == "nt") -> ValueError:
    """Return the error for a data URL; for a path, it says which URL names that path. It shows no password."""
    scheme, separator, rest = url.partition("://") if "://" in url else ("", "", url)
    _, at, place = rest.rpartition("@")
    shown = f"{scheme}{separator}…@{place}" if at else url
    if scheme != "sqlite":  # a query may hold a password too
        shown = shown.partition("?")[0]
    if rest and not scheme and not at and why == ACCEPTED_URLS:
        if has_drives and (_DRIVE.match(rest) or _NETWORK_SHARE.match(rest)):
            rest = "/" + rest.replace("\\", "/")
        elif not rest.startswith("/"):
            rest = f"/./{rest}"
        why = f"write sqlite://{rest} for a file; {why}"
    return ValueError(f"cannot keep data in {shown!r}: {why}")
