"""The service as one probe uses it: callers of each role, sockets, and new ids."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from extcli.api.tokens import opaque_id
from extcli.config.urls import socket_of
from extcli.conform.calls import Caller, Exchange
from extcli.conform.opening import Leftovers
from extcli.conform.rule import Rule, Skipped
from extcli.conform.sockets import PATH, Page, Socket
from extcli.conform.target import OMIT, Target, fresh
from extcli.errors import ErrorAnswer

OWN: Any = object()
"""Stands for the rule's own channel, user or client id."""


class Deployment:
    """One service, as one probe uses it. Channel and users are the probe's own."""

    def __init__(self, target: Target, rule: Rule) -> None:
        self.target = target
        self.rule = rule
        self.names: dict[str, str] = {target.client_id: "<client-id>"}
        """The random texts of this probe, with their names in recordings."""
        self.exchanges: list[Exchange] = []
        """What was sent and answered, in order."""
        self._leftovers = Leftovers(self)
        self.channel = self.fresh("channel")
        self.user = self.fresh("user")
        self._sockets: list[Socket | Page] = []

    @property
    def client_id(self) -> str:
        return self.target.client_id

    @property
    def request_id(self) -> str:
        """The id of the latest request; empty if the service returns none."""
        return next((each.request_id for each in reversed(self.exchanges) if each.request_id), "")

    def fresh(self, kind: str = "id", *, prefix: str = "") -> str:
        """Return a new id: `conform-…`, at most 32 characters. `prefix` makes it `global-conform-…`."""
        name = prefix + fresh()
        count = sum(each.startswith(f"<{kind}-") for each in self.names.values()) + 1
        self.names[name] = f"<{kind}-{count}>"
        return name

    def now(self) -> int:
        """Return the service's time in Unix ms, by its offset at the start of the run."""
        return self.target.now()

    # Callers

    @property
    def viewer(self) -> Caller:
        """The probe's own viewer, who has shared their id, in its own channel."""
        return self.caller("viewer")

    @property
    def broadcaster(self) -> Caller:
        """The owner of the probe's channel."""
        return self.caller("broadcaster")

    @property
    def admin(self) -> Caller:
        """An admin with a token for the probe's channel."""
        return self.caller("admin")

    @property
    def backend(self) -> Caller:
        """A backend with a token for the probe's channel."""
        return self.caller("backend")

    @property
    def extension_admin(self) -> Caller:
        """An admin of the whole extension: the token names no channel."""
        return self.caller("admin", channel=None)

    @property
    def anonymous(self) -> Caller:
        """A caller without credentials."""
        return Caller(self, "anonymous", None)

    def caller(
        self,
        role: str,
        user: str | None = OWN,
        *,
        channel: str | None = OWN,
        opaque: str | None = OWN,
        client_id: str = OWN,
        **claims: Any,
    ) -> Caller:
        """Return a caller with a token of these claims. `None` and `OMIT` leave out a claim of the three ids.

        A broadcaster's user is the owner of the channel; admins and backends have no user. Other claims are set as
        given, also to `None`; `exp=OMIT` leaves it out.
        """
        token = self.token(role, user, channel=channel, opaque=opaque, client_id=client_id, **claims)
        return self.bearer(token, role=role, client_id=client_id)

    def bearer(self, token: str, *, role: str = "bearer", client_id: str = OWN) -> Caller:
        """Return a caller with this token. `role` is its name in recordings."""
        return Caller(self, role, f"{self.client_id if client_id is OWN else client_id} {token}")

    def token(
        self,
        role: str | None,
        user: str | None = OWN,
        *,
        channel: str | None = OWN,
        opaque: str | None = OWN,
        client_id: str = OWN,
        **claims: Any,
    ) -> str:
        """Return a token with these claims, as `caller` has it."""
        where = self.channel if channel is OWN else channel
        if user is OWN:
            user = {"viewer": self.user, "broadcaster": where}.get(role or "")
        if opaque is OWN:
            opaque = opaque_id(user) if isinstance(user, str) else None
        ids = {"role": role, "channel_id": where, "user_id": user, "opaque_user_id": opaque}
        given = {name: value for name, value in ids.items() if value is not None and value is not OMIT}
        app = self.client_id if client_id is OWN else client_id
        return self.target.token_of({**given, **claims}, app)

    # Sockets

    def socket(self, path: str | None = None) -> Socket:
        """Open a game socket that is not authenticated. With `path`, at this path of the service."""
        socket = Socket(self, self._socket_url(path))
        self._sockets.append(socket)
        return socket

    def handshake(self, path: str) -> int:
        """Return the status of a handshake at this path of the service: 101 if it opens a socket."""
        try:
            self.socket(path)
        except ErrorAnswer as refused:
            return refused.status
        return 101

    def _socket_url(self, path: str | None) -> str:
        if path is None:
            return self.target.ws_url
        if not self.target.has_default_ws:
            raise Skipped("the address of the socket does not follow from the URL")
        return socket_of(self.target.http.url).removesuffix("/ws") + path

    def game(self, role: str = "broadcaster", **options: Any) -> Socket:
        """Open a game socket with the rights of a token, by default of the channel's owner."""
        socket = self.socket()
        caller = self.caller(role, **options)
        socket.data("authenticate", data={"client_id": self.client_id, "jwt": caller.token})
        socket.caller = caller
        return socket

    def page(self) -> Page:
        """Open a page's connection. Raises `Skipped` if the service has none."""
        try:
            page = Page(self, self._socket_url(PATH))
        except ErrorAnswer as refused:
            if refused.status != 404:
                raise
            raise Skipped("the service has no socket for pages") from None
        self._sockets.append(page)
        return page

    # After the probe

    def close(self) -> list[str]:
        """Close the sockets and remove what the probe wrote. Returns what could not be removed."""
        while self._sockets:
            self._sockets.pop().close()
        return self._leftovers.remove()

    def note(self, exchange: Exchange) -> None:
        """Keep an exchange for the report and for a recording."""
        self.exchanges.append(exchange)

    def wrote(self, caller: Caller, path: str, query: Mapping[str, Any], body: Any) -> None:
        """Note what must be removed after a call that has succeeded."""
        self._leftovers.wrote(caller, path, query, body)

    def wrote_over_socket(self, action: str, target: str, data: Mapping[str, Any]) -> None:
        """Note what must be removed after a request of a game that has succeeded."""
        if self.rule.writes:
            self._leftovers.wrote_over_socket(action, target, data)
