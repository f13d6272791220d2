"""The endpoints of a service by method and path, and the errors for requests that none of them answers."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

from emulator.core.errors import ServiceError
from emulator.core.wire.url import CONTROL, SERVICE, is_socket_path
from emulator.http.endpoint import Endpoint
from emulator.http.refusals import no_path, not_in_production, upgrade_missing, wrong_method

_LONGEST_GUESS = 64
"""Characters of an unknown path for which a similar one is looked for."""
_PREFIXES = (SERVICE, CONTROL, "/_ns/", "/schema/")
"""What a path begins with that needs no hint about where endpoints are."""

Name = tuple[str, str]
"""The method and the declared path of an endpoint."""


class EndpointTable:
    """The endpoints of one environment. All its services share it."""

    def __init__(self, endpoints: Mapping[Name, Endpoint], absent: Collection[Name]) -> None:
        self.endpoints = endpoints
        self.open_endpoints = [name for name, each in endpoints.items() if each.allows_any_origin]
        """The endpoints for extensions."""
        self.absent = absent
        """The endpoints that only other environments have."""
        self._with_parts = _patterns(endpoints)
        self._absent_with_parts = _patterns(absent)

    def find(self, method: str, path: str) -> tuple[Endpoint, Mapping[str, str]] | None:
        """Return the endpoint of a request, and the parts of the path that it declares in braces, by name."""
        if endpoint := self.endpoints.get((method, path)):
            return endpoint, {}
        for name, pattern in self._with_parts.items():
            if name[0] == method and (found := pattern.fullmatch(path)):
                return self.endpoints[name], found.groupdict()
        return None

    def error(self, method: str, path: str, *, guesses: bool) -> ServiceError:
        """Return the error for a request that no endpoint answers.

        It names a similar path if it `guesses`, and in `Allow` the methods that the path has (ruling W9).
        """
        if (method, path) in self.absent or method in _methods_of(path, self._absent_with_parts):
            return not_in_production(path=path)
        methods = {each for each, known in self.endpoints if known == path} | _methods_of(path, self._with_parts)
        if methods:
            if "GET" in methods:
                methods.add("HEAD")
            if self.is_open(path):
                methods.add("OPTIONS")
            error = wrong_method(path=path[:100], method=method)
            error.more = ((b"allow", ", ".join(sorted(methods)).encode()),)
            return error
        if method == "GET" and is_socket_path(path):
            return upgrade_missing(path=path[:100])
        hint = "" if method == "OPTIONS" or path.startswith(_PREFIXES) else f"the endpoints are under {SERVICE}"
        if guesses and (near := self._nearest(path)):
            hint = f"did you mean {near}?"
        return no_path(path=path[:100], hint=hint)

    def is_open(self, path: str) -> bool:
        """Whether pages of any origin may use `path` (ruling W5)."""
        return path.startswith("/v1/") or any(path == known for _, known in self.open_endpoints)

    def _nearest(self, path: str) -> str:
        """Return the path of an endpoint that is most like this one; empty if none is."""
        if len(path) > _LONGEST_GUESS:
            return ""
        from difflib import get_close_matches

        known = {known for _, known in self.endpoints if "{" not in known}
        found = get_close_matches(path, known, 1, 0.8)
        # the prefix counts for nothing: it alone makes /_emulator/nope like /_emulator/undo
        name, *names = (each.rpartition("/")[2] for each in (path, *found))
        return found[0] if get_close_matches(name, names, 1, 0.7) else ""


def _patterns(names: Iterable[Name]) -> dict[Name, re.Pattern[str]]:
    """Return a pattern for each path with parts in braces, which stand for any text."""
    return {
        name: re.compile(re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]*)", re.escape(name[1])))
        for name in names
        if "{" in name[1]
    }


def _methods_of(path: str, patterns: Mapping[Name, re.Pattern[str]]) -> set[str]:
    return {method for (method, _), pattern in patterns.items() if pattern.fullmatch(path)}
