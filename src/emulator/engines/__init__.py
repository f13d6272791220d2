"""Which engine a URL means. Each engine's module is imported only when it is asked for."""

from __future__ import annotations

from emulator.engines.engine import Engine

ACCEPTED = (
    "sqlite:// (in memory), sqlite:///absolute/path/to/file.db, sqlite:///./relative/to/here.db "
    "(a file may be followed by ?synchronous=full), "
    "redis://host:port/number (rediss:// with TLS) or valkey://host:port/number"
)


def open_engine(url: str, *, namespace: str) -> Engine:
    """The engine that `url` names, still closed: `async with` opens it. A URL we cannot serve raises ValueError.

    Several slashes before a path count as one. The path is taken as it stands, without percent-decoding, up to a `?`.
    """
    scheme, separator, rest = url.partition("://")
    match scheme, separator:
        case "sqlite", "://":
            from emulator.engines.sqlite import SqliteEngine

            rest, _, query = rest.partition("?")
            name, _, value = query.partition("=")
            if rest and name == "synchronous" and value not in ("normal", "full"):
                raise ValueError(f"cannot keep data in {url!r}: synchronous is {value!r}; normal and full are accepted")
            if query not in ("", "synchronous=normal", "synchronous=full") or (query and not rest):
                raise ValueError(_unusable(url))
            return SqliteEngine(_path_of(rest, url), namespace=namespace, awaits_disk=query.endswith("full"))
        case "redis" | "rediss" | "valkey", "://":
            from emulator.engines.redis import RedisEngine

            return RedisEngine(url, namespace=namespace)
        case _:
            raise ValueError(_unusable(url))


def _path_of(rest: str, url: str) -> str | None:
    if not rest:
        return None
    path = rest.lstrip("/")
    if path.startswith(("./", "../")):
        return path
    if not path or path == rest:  # no file, or a name where a URL has its host
        raise ValueError(_unusable(url))
    return "/" + path


def _unusable(url: str) -> str:
    return f"cannot keep data in {url!r}: accepted are {ACCEPTED}"
