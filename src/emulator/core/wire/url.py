"""URLs as the service reads them: the paths of its API with their aliases, and query strings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import parse_qsl

from emulator.contract.names import ALIASES
from emulator.core.wire.refusals import too_many_parameters

SERVICE = "/v1/e/"
"""The start of the paths of the service API."""
CONTROL = "/_emulator/"
"""The start of the paths of the control API."""
MAX_PARAMETERS = 1_000
_MAX_CACHED_LENGTH = 256
_SOCKET_PATH = re.compile(r"/+(ws|app/+[^/]+|[0-9]+(\.[0-9]+)+(/+[^/]+){1,4})/?")
_SLASHES = re.compile("//+")


def normalize_path(path: str) -> str:
    """Return the specification's spelling: collapse slashes, drop a trailing one, replace an alias."""
    if "//" in path:
        path = _SLASHES.sub("/", path)
    if path.endswith("/") and len(path) > 1:
        path = path[:-1]
    if path.startswith(SERVICE):
        name = path[len(SERVICE) :]
        return SERVICE + ALIASES.get(name, name)
    return path


def is_socket_path(path: str) -> bool:
    """Whether a path is a documented address of WebSockets: `/ws`, `/0.2.0/<client id>` or `/app/<key>`."""
    return _SOCKET_PATH.fullmatch(path) is not None


def parse_query(raw: bytes) -> Mapping[str, str]:
    """Parse the query string of a request, as `parameters_of` does. Raises `BadRequest` for over 1,000 parameters."""
    return _parse_cached(raw) if len(raw) <= _MAX_CACHED_LENGTH else _parse_limited(raw)


def parameters_of(query: str) -> dict[str, str]:
    """Return the parameters of a query string. The first of a repeated name wins; invalid UTF-8 is replaced."""
    found: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        found.setdefault(name, value)
    return found


def _parse_limited(raw: bytes) -> Mapping[str, str]:
    count = raw.count(b"&") + 1
    if count > MAX_PARAMETERS:
        raise too_many_parameters(count=count, limit=MAX_PARAMETERS)
    return parameters_of(raw.decode("latin-1"))


_parse_cached = lru_cache(maxsize=1024)(_parse_limited)
"""A crowd sends the same few queries."""
