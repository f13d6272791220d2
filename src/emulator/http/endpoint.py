"""Declarations of HTTP endpoints, a call as an endpoint sees it, and the table that finds the endpoint of a request.

The declarations are the one source of routes, OpenAPI, role checks and the hot path.

`docs/roles.md` is a table of all endpoints and their roles, which is made of the declarations.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from enum import Enum
from functools import cached_property, partial
from typing import Any, TypeVar

import msgspec

from emulator.contract.limits import MAX_ID_LENGTH
from emulator.core.callers import ANYONE, Caller, Role
from emulator.core.errors import ServiceError
from emulator.core.wire import cursors, json_codec
from emulator.core.wire.cursors import FIRST
from emulator.core.wire.refusals import checked_text, invalid_parameter
from emulator.core.wire.url import CONTROL, SERVICE, is_socket_path
from emulator.http.refusals import no_path, not_in_production, upgrade_missing, wrong_method
from emulator.http.response import JSON
from emulator.http.response import Reply as Reply

T = TypeVar("T")

_INTEGER = re.compile(r"-?[0-9]{1,1000}")


@dataclass(slots=True, eq=False, repr=False)
class Call:
    """A call whose credential, role and body size have been checked."""

    _caller: Caller | None
    query: Mapping[str, str]
    """All query parameters by name."""
    raw: bytes
    """The whole body; empty if the endpoint streams it from `chunks`."""
    peer: str
    """The client's IP address; empty if unknown."""
    client_id: str
    """The header's client id, for endpoints that require no token; empty if absent."""
    chunks: AsyncIterator[bytes]
    """The body as a stream; iterating may raise `TooLarge` or `BadRequest`."""
    headers: Mapping[bytes, bytes] = field(default_factory=dict)
    """By lower-case name; the last of duplicate headers."""
    scheme: str = "http"
    """`http` or `https`, as the client uses it."""

    @property
    def caller(self) -> Caller:
        """The authenticated caller; only for endpoints that require a token."""
        assert self._caller is not None, "this endpoint requires no token, so it has no caller"
        return self._caller

    @property
    def has_caller(self) -> bool:
        return self._caller is not None

    @property
    def id(self) -> str:
        """The query parameter `id`; `default` if absent or empty."""
        return self.query.get("id") or "default"

    @property
    def checked_id(self) -> str:
        """As `id`, of a buffer, a ranking or a JSON store. Raises `BadRequest` if it is malformed."""
        return checked_text(self.id, MAX_ID_LENGTH, reason="Invalid id", name="id")

    @property
    def channel(self) -> str | None:
        """The channel that the call acts on; `None` for all channels together (ruling A4)."""
        caller, requested = self.caller, self.query.get("channel_id", "")
        if requested and caller.spans_channels:
            checked_text(requested, MAX_ID_LENGTH, reason="Malformed channel_id parameter", name="channel_id")
        return caller.channel(requested)

    def text(self, name: str) -> str:
        """A query parameter; empty if absent."""
        return self.query.get(name, "")

    def integer(self, name: str, default: int) -> int:
        """An integer query parameter; `default` if absent or empty. Raises `BadRequest` for anything else."""
        text = self.query.get(name, "")
        if not text:
            return default
        if not _INTEGER.fullmatch(text):
            raise invalid_parameter(name, text, "an integer")
        return int(text)

    @property
    def page(self) -> cursors.Page:
        """The page of a listing, from the parameters `limit` and `cursor`. Raises `BadRequest`."""
        return cursors.page_request(self.integer("limit", cursors.DEFAULT_PAGE), self.text("cursor"))

    def body(self, shape: type[T]) -> T:
        """The body decoded as `shape`; raises `BadRequest` naming the invalid field."""
        return json_codec.decode(self.raw, shape)

    def any_body(self) -> Any:
        """The body decoded as any JSON; raises `BadRequest` if it is not JSON."""
        return json_codec.decode_any(self.raw)


class Audience(Enum):
    """Who may reach an endpoint, before its roles are checked. The first three allow any web origin."""

    CLIENTS = "clients"
    """Extensions and games with a token."""
    CLIENT_ID = "client_id"
    """Clients that send a client id: in the header, with or without a token, or in the body."""
    PUBLIC = "public"
    """Clients without a credential."""
    HEALTH = "health"
    """Health checks: no credential and no limit, both environments."""
    MONITORING = "monitoring"
    """Metrics: no credential, both environments."""
    CONTROL = "control"
    """The control API: sandbox only, allowed hosts only, closed to web pages."""
    PAGE = "page"
    """Pages for browsers: as the control API, but links from other pages lead here. Not in the OpenAPI document."""
    DOCUMENT = "document"
    """The OpenAPI document and the files of its viewer: as metrics. Not in the document itself."""


UNDOCUMENTED = (Audience.PAGE, Audience.DOCUMENT)
"""The audiences whose endpoints the OpenAPI document leaves out."""
_UNRECORDED_AUDIENCES = (Audience.HEALTH, Audience.MONITORING, *UNDOCUMENTED)


@dataclass(frozen=True)
class Parameter:
    """A query parameter, or a header of a response."""

    name: str
    meaning: str
    kind: str = "string"
    """Its JSON Schema type."""


CHANNEL = Parameter("channel_id", "The channel, for roles admin and backend.")
CURSOR_PARAMETER = Parameter("cursor", f"`{FIRST}` for the first page, then `next` of the previous page.")

PAGE = (
    CHANNEL,
    Parameter("limit", f"At most this many, 1 to {cursors.MAX_PAGE:,}; {cursors.DEFAULT_PAGE} when absent.", "integer"),
    CURSOR_PARAMETER,
)
"""The parameters of a listing."""


def id_of(thing: str) -> Parameter:
    """The parameter that names one poll, buffer or other record of a channel."""
    return Parameter("id", f"The {thing} id; `default` when absent or empty.")


class Nothing(msgspec.Struct):
    """The response `{}`."""


def _undeclared(*_: object) -> Any:
    """The handler of a declaration that decorates no function yet, and its part of a service."""
    raise NotImplementedError


@dataclass(frozen=True)
class Endpoint:
    """A method and path with its handler. It is declared by decorating its handler.

    The handler returns a value to encode as JSON, bytes, an async generator of them, or a `Reply`, or raises a
    `ServiceError`. If the endpoint waits for events, a stream ends when the client leaves or the service stops.
    `answer` and `headers` are for the OpenAPI document.
    """

    method: str
    path: str
    """A part in braces, as in `/ui/{screen}`, stands for any text; it is a parameter of the call."""
    _: KW_ONLY
    handler: Callable[[Any, Call], Awaitable[object]] = _undeclared
    """Takes the feature's service, and the call."""
    part: Callable[[Any], Any] = _undeclared
    """Takes an `app.Service` and returns the part of it that handles the endpoint. The list of features sets it."""
    roles: frozenset[Role] = frozenset()
    audience: Audience = Audience.CLIENTS
    body: object | None = None
    """The type of the body; `None` without a body."""
    answer: object = Nothing
    content_type: bytes = JSON
    """The type of a response that the handler returns as bytes or as a stream; `answer` is for JSON only."""
    query: tuple[Parameter, ...] = ()
    headers: tuple[Parameter, ...] = ()
    """The headers of its response."""
    limit: str = "body"
    """The field of `Limits` with the largest body in bytes."""
    limit_roles: frozenset[Role] = ANYONE
    """The roles that `limit` is for; others have the limit `body`."""
    streamed: bool = False
    """Whether the handler reads the body, which may be large, from `Call.chunks`."""
    held: bool = False
    """Whether the response may take long. Such a request has no body; it ends when the client leaves."""
    status: int = 200
    """The status of a success; a `Reply` has its own."""
    secrets: frozenset[str] = frozenset()
    """The members of the body and of the response, and the parameters, that the journal hides; `*` hides all."""
    is_recorded: bool = True
    """Whether the journal records its responses, unless it is for monitoring or for a browser."""

    def __call__(self, handler: Callable[[Any, Call], Awaitable[object]]) -> Endpoint:
        """Declare the decorated function as the handler."""
        return replace(self, handler=handler)

    @property
    def name(self) -> str:
        """The handler's name, used as the operation id."""
        return self.handler.__name__

    @cached_property
    def is_body_read(self) -> bool:
        """Whether the body is read before the handler runs."""
        return not (self.streamed or self.held)

    @cached_property
    def is_in_journal(self) -> bool:
        """Whether the journal records its responses."""
        return self.is_recorded and self.audience not in _UNRECORDED_AUDIENCES

    @cached_property
    def title(self) -> str:
        """The method and the path."""
        return f"{self.method} {self.path}"

    @cached_property
    def shown_parameters(self) -> frozenset[str]:
        """The parameters that the journal shows."""
        return frozenset(each.name for each in self.query) - self.secrets

    @cached_property
    def allows_any_origin(self) -> bool:
        """Whether web pages of any origin may read the response."""
        return self.audience in (Audience.CLIENTS, Audience.CLIENT_ID, Audience.PUBLIC)


endpoint = Endpoint
"""Declares the decorated function as the handler of a method and path."""
control_endpoint = partial(endpoint, audience=Audience.CONTROL)
"""Declares it as the handler of a method and path of the control API."""


def endpoints_in(place: object) -> tuple[Endpoint, ...]:
    """Return the endpoints that are declared in a class or module, in their order there."""
    return tuple(each for each in vars(place).values() if isinstance(each, Endpoint))


_MAX_GUESSED_PATH = 64
"""Characters of an unknown path for which a similar one is looked for."""
_KNOWN_PREFIXES = (SERVICE, CONTROL, "/_ns/", "/schema/")
"""What a path begins with that needs no hint about where endpoints are."""

EndpointName = tuple[str, str]
"""The method and the declared path of an endpoint."""


class EndpointTable:
    """The endpoints of one environment. All its services share it."""

    def __init__(self, endpoints: Mapping[EndpointName, Endpoint], absent: Collection[EndpointName]) -> None:
        self.endpoints = endpoints
        self.open_endpoints = [name for name, each in endpoints.items() if each.allows_any_origin]
        """The endpoints for extensions."""
        self.absent = absent
        """The endpoints that only other environments have."""
        self._with_parts = _path_patterns(endpoints)
        self._absent_with_parts = _path_patterns(absent)

    def find(self, method: str, path: str) -> tuple[Endpoint, Mapping[str, str]] | None:
        """Return the endpoint of a request, and the parts of the path that it declares in braces, by name."""
        if endpoint := self.endpoints.get((method, path)):
            return endpoint, {}
        for name, pattern in self._with_parts.items():
            if name[0] == method and (found := pattern.fullmatch(path)):
                return self.endpoints[name], found.groupdict()
        return None

    def routing_error(self, method: str, path: str, *, guesses: bool) -> ServiceError:
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
        hint = "" if method == "OPTIONS" or path.startswith(_KNOWN_PREFIXES) else f"the endpoints are under {SERVICE}"
        if guesses and (near := self._nearest_path(path)):
            hint = f"did you mean {near}?"
        return no_path(path=path[:100], hint=hint)

    def is_open(self, path: str) -> bool:
        """Whether pages of any origin may use `path` (ruling W5)."""
        return path.startswith("/v1/") or any(path == known for _, known in self.open_endpoints)

    def _nearest_path(self, path: str) -> str:
        """Return the path of an endpoint that is most like this one; empty if none is."""
        if len(path) > _MAX_GUESSED_PATH:
            return ""
        from difflib import get_close_matches

        known = {known for _, known in self.endpoints if "{" not in known}
        found = get_close_matches(path, known, 1, 0.8)
        # the prefix counts for nothing: it alone makes /_emulator/nope like /_emulator/undo
        name, *names = (each.rpartition("/")[2] for each in (path, *found))
        return found[0] if get_close_matches(name, names, 1, 0.7) else ""


def _path_patterns(names: Iterable[EndpointName]) -> dict[EndpointName, re.Pattern[str]]:
    """Return a pattern for each path with parts in braces, which stand for any text."""
    return {
        name: re.compile(re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]*)", re.escape(name[1])))
        for name in names
        if "{" in name[1]
    }


def _methods_of(path: str, patterns: Mapping[EndpointName, re.Pattern[str]]) -> set[str]:
    return {method for (method, _), pattern in patterns.items() if pattern.fullmatch(path)}
