"""Opens the engine that a data URL names. The module of an engine is imported on first use."""

from __future__ import annotations

from emulator.engines.engine import Engine

ACCEPTED = (
    "accepted are sqlite:// (in memory), sqlite:///absolute/path/to/file.db, sqlite:///./relative/to/here.db "
    "(a file may be followed by ?synchronous=full), "
    "redis://host:port/number (rediss:// with TLS) or valkey://host:port/number"
)


def open_engine(url: str, *, namespace: str) -> Engine:
    """Return the engine that `url` names. It is closed: `async with` opens it.

    A file path is used literally, up to a `?`; percent-escapes are not decoded, and leading slashes count as one.
    Raises `ValueError` for an unsupported URL; the message holds no password.
    """
    scheme, separator, rest = url.partition("://")
    match scheme, separator:
        case "sqlite", "://":
            from emulator.engines.sqlite import SqliteEngine

            rest, _, query = rest.partition("?")
            name, _, value = query.partition("=")
            if rest and name == "synchronous" and value not in ("normal", "full"):
                raise ValueError(f"{_refused(url)}: synchronous is {value!r}; normal and full are accepted")
            if query not in ("", "synchronous=normal", "synchronous=full") or (query and not rest):
                raise ValueError(f"{_refused(url)}: {ACCEPTED}")
            return SqliteEngine(_path_of(rest, url), namespace=namespace, awaits_disk=query.endswith("full"))
        case "redis" | "rediss" | "valkey", "://":
            from emulator.engines.redis import RedisEngine

            return RedisEngine(url, namespace=namespace)
        case _:
            raise ValueError(f"{_refused(url)}: {ACCEPTED}")


def _path_of(rest: str, url: str) -> str | None:
    if not rest:
        return None
    path = rest.lstrip("/")
    if path.startswith(("./", "../")):
        return path
    if not path or path == rest:  # no path, or a host
        raise ValueError(f"{_refused(url)}: {ACCEPTED}")
    return "/" + path


def _refused(url: str) -> str:
    """Return the start of an error message. It hides all that may hold a password: what precedes an `@`, and, except
    for a file, the query."""
    scheme, separator, rest = url.partition("://") if "://" in url else ("", "", url)
    _, at, place = rest.rpartition("@")
    shown = f"…@{place}" if at else rest
    return f"cannot keep data in {scheme + separator + (shown if scheme == 'sqlite' else shown.partition('?')[0])!r}"
