"""A service as a caller with credentials sees it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

from extcli.api.call import SERVICE, Body, Call, encoded, error_of, is_expired, nonempty_id
from extcli.api.http import RESPONSE, Http, Response
from extcli.errors import Refused

if TYPE_CHECKING:
    from extcli.api.tokens import Credentials


@dataclass(frozen=True, eq=False, repr=False)
class Service:
    """Sends calls, and again with a new token if a sandbox refuses one as expired.

    Each method raises `Refused`, `ServerError` or `Unreachable`. A query leaves out parameters that are `None`.
    """

    http: Http
    credentials: Credentials | None = None
    _: KW_ONLY
    client_id: str = ""
    base: str = SERVICE
    """Where paths begin, unless they have a slash in front."""
    query: Mapping[str, str] = field(default_factory=dict)
    """Parameters of every call."""
    place: Sequence[str] = ()
    """The options that name the service, for `extcli explain`."""
    withhold: Callable[[Call], None] | None = None
    """Sees each call before it is sent."""
    is_probe: bool = False

    @property
    def authorization(self) -> str:
        """The header `Authorization` of its calls; empty without credentials."""
        return f"{self.client_id} {self.credentials.token()}".rstrip() if self.credentials else ""

    def probing(self) -> Self:
        """Return the service for reads that extcli makes for itself, which the journal leaves out."""
        return replace(self, is_probe=True)

    def get(self, path: str, /, **query: Any) -> Response:
        """Send a GET request."""
        return self.send("GET", path, **query)

    def find(self, path: str, /, **query: Any) -> Response | None:
        """Send a GET request. Return `None` if there is nothing there (404)."""
        try:
            return self.get(path, **query)
        except Refused as error:
            if error.status != 404:
                raise
            return None

    def post(self, path: str, document: object, /, **query: Any) -> Response:
        """Send a POST request with a document as JSON."""
        return self.send("POST", path, encoded(document), **query)

    def delete(self, path: str, document: object = None, /, **query: Any) -> Response:
        """Send a DELETE request, with a document as JSON unless it is `None`."""
        return self.send("DELETE", path, None if document is None else encoded(document), **query)

    def send(self, method: str, path: str, body: Body | None = None, /, **query: Any) -> Response:
        """Send a request with a body as it is."""
        return self.perform(self._call(method, path, body, query))

    def stream(self, path: str, /, **query: Any) -> AbstractContextManager[Response]:
        """Send a GET request, and return its response before the body is read. The body's size is not limited."""
        return self._response(self._call("GET", path, None, query), None)

    def define_poll(
        self, poll: str, config: Mapping[str, Any], *, expected: Mapping[str, Any] | None = None
    ) -> Response:
        """Define a poll.

        With `expected`, the service responds 409 unless that is the current definition; empty means none.
        """
        more = {} if expected is None else {"expected": expected}
        return self.post("vote_config", {"id": nonempty_id(poll), "config": config, **more})

    def broadcast(
        self, event: str, data: object, *, target: str, method: str, channel: str | None = None, path: str = "broadcast"
    ) -> Response:
        """Send an event, with GET and a body, as specified, or with POST for deployments that accept nothing else."""
        owner = {} if channel is None else {"user_id": channel}
        return self.send(method, path, encoded({"event": event, "target": target, **owner, "data": data}))

    def perform(self, call: Call) -> Response:
        """Send a call and return its whole response."""
        with self._response(call, RESPONSE) as response:
            response.read()
            self.http.trace_body(response)
            return response

    def _call(self, method: str, path: str, body: Body | None, query: Mapping[str, Any]) -> Call:
        given = {name: value for name, value in query.items() if value is not None}
        if self.base == SERVICE and "id" in given:
            nonempty_id(given["id"])
        return Call(method, path if path.startswith("/") else self.base + path, given, body)

    @contextmanager
    def _response(self, call: Call, limit: int | None) -> Iterator[Response]:
        call, credentials = replace(call, query={**self.query, **call.query}), self.credentials
        if self.withhold:
            self.withhold(call)
        for may_renew in (True, False):
            with self.http.stream(
                call, authorization=self.authorization, is_probe=self.is_probe, limit=limit
            ) as response:
                if response.status_code < 300:
                    yield response
                    return
                response.read()
                if not (may_renew and credentials and is_expired(response) and credentials.renew()):
                    raise error_of(call, response, credentials.advice if credentials else "", self.place)
