"""The endpoints of a service by method and path, and the errors for requests that none of them answers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from emulator.core.errors import ServiceError
from emulator.core.wire.url import CONTROL, SERVICE, is_socket_path
from emulator.http.endpoint import Offer
from emulator.http.refusals import no_path, not_in_production, upgrade_missing, wrong_method

_LONGEST_GUESS: Final = 64
"""Characters of an unknown path for which a similar one is looked for."""
_PREFIXES: Final = (SERVICE, CONTROL, "/_ns/", "/schema/")
"""What a path begins with that needs no hint about where endpoints are."""

Name = tuple[str, str]
"""The method and the declared path of an endpoint."""


class EndpointTable:
    """The endpoints of one environment. All its services share it."""

    def __init__(self, offers: Mapping[Name, Offer], absent: Collection[Name]) -> None:
        self.offers = offers
        self.open_endpoints = [name for name, offer in offers.items() if offer.endpoint.allows_any_origin]
        """The endpoints for extensions."""
        self.absent = absent
        """The endpoints that only other environments have."""
        self._with_parts = [(method, path) for method, path in offers if "{" in path]

    def find(self, method: str, path: str) -> tuple[Name, Mapping[str, str]] | None:
        """Return the endpoint of a request, and the parts of the path that it declares in braces, by name."""
        if (method, path) in self.offers:
            return (method, path), {}
        known = _similar(method, path, self._with_parts)
        if known is None:
            return None
        named = zip(known.split("/"), path.split("/"), strict=True)
        return (method, known), {name[1:-1]: part for name, part in named if name.startswith("{")}

    def error(self, method: str, path: str, *, guesses: bool) -> ServiceError:
        """Return the error for a request that no endpoint answers.

        It names a similar path if it `guesses`, and in `Allow` the methods that the path has (ruling W9).
        """
        if (method, path) in self.absent or _similar(method, path, self.absent):
            return not_in_production(path=path)
        methods = {each for each, known in self.offers if known == path}
        methods |= {each for each, known in self._with_parts if _similar(each, path, [(each, known)])}
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

        known = {known for _, known in self.offers if "{" not in known}
        found = get_close_matches(path, known, 1, 0.8)
        # the prefix counts for nothing: it alone makes /_emulator/nope like /_emulator/undo
        name, *names = (each.rpartition("/")[2] for each in (path, *found))
        return found[0] if get_close_matches(name, names, 1, 0.7) else ""


def _similar(method: str, path: str, endpoints: Iterable[Name]) -> str | None:
    """Return the declared path of the endpoint at `path`, whose parts in braces stand for any text."""
    parts = path.split("/")
    for verb, known in endpoints:
        declared = known.split("/") if verb == method else ()
        if len(declared) == len(parts) and all(map(_matches, declared, parts)):
            return known
    return None


def _matches(declared: str, part: str) -> bool:
    return declared == part or declared.startswith("{")
