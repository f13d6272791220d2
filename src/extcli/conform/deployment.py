"""The service as one probe uses it: callers of each role, sockets, new ids, and the removal of written data."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from extcli import clock
from extcli.api import tokens
from extcli.api.call import SERVICE, Call, encoded
from extcli.api.tokens import opaque_id
from extcli.api.websocket import WebSocketClient
from extcli.config.urls import socket_of
from extcli.conform.calls import ANY, PREFIX, Caller, Probing, Reply, Target
from extcli.conform.rule import ROLES, Rule, Skipped, expect_that
from extcli.conform.sockets import GameSocket, PageSocket
from extcli.doctor.service import Probe, ServiceKind, probe
from extcli.errors import CliError, ErrorResponse, ExpectationFailed, Unreachable, UsageError, shortened

if TYPE_CHECKING:
    from extcli.session import Session


def make_target(session: Session, *, writes: bool, whole_extension: bool) -> Target:
    """Return the service at the URL. Raises `Unreachable`, `ExpectationFailed` for another program, or `UsageError`."""
    found = _checked_probe(session)
    url = session.resolver.url()
    environment = found.environment or _find_environment(session)
    secret = session.resolver.secret(url)
    token = _given_token(session) if secret is None or session.resolver.flags.token_file else None
    target = Target(
        http=session.http,
        ws_url=session.resolver.ws_url(),
        environment=environment,
        is_emulator=found.kind is ServiceKind.EMULATOR,
        has_control=found.clock is not None,
        client_id=session.resolver.client_id(),
        secret=secret,
        token=token,
        writes=writes,
        whole_extension=whole_extension,
        clock_lead=found.now - clock.now(),
    )
    if target.is_emulator and environment == "sandbox" and token is None:
        _use_own_extension(target)
    return target


def _checked_probe(session: Session) -> Probe:
    """Probe the service. Raises `Unreachable`, also if it is not ready, or `ExpectationFailed` for another program."""
    found = probe(session.http)
    url = session.resolver.url()
    if found.error:
        raise found.error
    if not found.is_extension_service:
        raise ExpectationFailed(
            f"{url} is not an extension service", why=shortened(found.reason), fix="check --url (EXTCLI_URL)"
        )
    if not found.ready:
        raise Unreachable(f"{url} is not ready", why=shortened(found.reason), fix="`extcli wait` waits until it is")
    return found


def _given_token(session: Session) -> str | None:
    """Return the token that the user gave, or `None`. Raises `UsageError` if it is not a JWT."""
    token = session.resolver.token()
    if token is not None and not tokens.claims_in(token):
        fix = "check it with `extcli token inspect`, or unset EXTCLI_TOKEN (--token-file)"
        raise UsageError("the given token is not a JWT", fix=fix)
    return token


def _random_id() -> str:
    """Return a random id that no one else uses. It ends in a digit, as ids of users do."""
    return f"{PREFIX}{secrets.token_hex(5)}{secrets.randbelow(10)}"


def _use_own_extension(target: Target) -> None:
    """Let a run in a sandbox emulator use a client id of its own, so that it shares no data with other extensions."""
    target.secret = target.secret or secrets.token_bytes(32)  # a sandbox does not check signatures (ruling A1)
    client_id = _random_id()
    authorization = f"{client_id} {target.token_of({'role': 'viewer'}, client_id)}"
    with target.http.stream(Call("GET", f"{SERVICE}user_info"), authorization=authorization) as answer:
        if answer.status_code == 200:  # not with `serve --registered-only`
            target.client_id, target.whole_extension = client_id, True


def _find_environment(session: Session) -> str:
    """Return the environment of a deployment, which does not state it: only a sandbox issues tokens."""
    body = encoded({"app_id": session.resolver.client_id(), "role": "viewer", "channel_id": "1", "user_id": "1"})
    answer = session.http.send("POST", f"{SERVICE}authtoken", body=body)
    return "sandbox" if answer.status_code == 200 else "production"


Removal = Callable[..., Reply]
OWN: Any = object()
"""Stands for the rule's own channel or user."""


class Deployment(Probing):
    """One service, as one probe uses it. Channel and users are the probe's own."""

    def __init__(self, target: Target, rule: Rule) -> None:
        super().__init__(target, rule)
        self.client_id = target.client_id
        self.names: dict[str, str] = {target.client_id: "<client-id>"}
        """The random texts of this probe, with their names in recordings."""
        self.channel = self.fresh("channel")
        self.user = self.fresh("user")
        self._sockets: list[WebSocketClient] = []

    def fresh(self, kind: str = "id", *, prefix: str = "") -> str:
        """Return a new id: `conform-…`, at most 32 characters. `prefix` makes it `global-conform-…`."""
        name = prefix + _random_id()
        count = sum(each.startswith(f"<{kind}-") for each in self.names.values()) + 1
        self.names[name] = f"<{kind}-{count}>"
        return name

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
    def extension_backend(self) -> Caller:
        """A backend of the whole extension: its token names no channel."""
        return self.caller("backend", channel=None)

    def stranger(self, **claims: Any) -> Caller:
        """Return another viewer, a new one each time."""
        return self.caller("viewer", self.fresh("user"), **claims)

    def elsewhere(self, role: str = "viewer", **claims: Any) -> Caller:
        """Return a caller in another channel, a new one each time."""
        return self.caller(role, channel=self.fresh("channel"), **claims)

    @property
    def anonymous(self) -> Caller:
        """A caller without credentials."""
        return Caller(self, "anonymous", None)

    def caller(self, role: str, user: str | None = OWN, *, client_id: str = "", **claims: Any) -> Caller:
        """Return a caller with a token of these claims, completed as for `token`."""
        return self.bearer(self.token(role, user, client_id=client_id, **claims), role=role, client_id=client_id)

    def bearer(self, token: str, *, role: str = "bearer", client_id: str = "") -> Caller:
        """Return a caller that sends this token. `role` names the caller in recordings."""
        return Caller(self, role, f"{client_id or self.client_id} {token}")

    def token(
        self,
        role: str,
        user: str | None = OWN,
        *,
        channel: str | None = OWN,
        opaque: str | None = OWN,
        client_id: str = "",
        **claims: Any,
    ) -> str:
        """Return a token with these claims. `None` leaves out a claim of the three ids.

        A broadcaster's user is the owner of the channel; admins and backends have no user. Other claims are set as
        given, also to `None`; `exp=OMIT` leaves it out.
        """
        where = self.channel if channel is OWN else channel
        if user is OWN:
            user = {"viewer": self.user, "broadcaster": where}.get(role)
        if opaque is OWN:
            opaque = opaque_id(user) if isinstance(user, str) else None
        ids = {"role": role, "channel_id": where, "user_id": user, "opaque_user_id": opaque}
        given = {name: value for name, value in ids.items() if value is not None}
        return self.target.token_of({**given, **claims}, client_id or self.client_id)

    def check_readers(self, readers: Collection[str], path: str, **query: str) -> None:
        """Raise `Differs` unless these roles can read a path, and others get 403."""
        for role in ROLES:
            self.caller(role).get(path, status=200 if role in readers else 403, **query)

    def check_are_recent(self, what: str, times: Sequence[Any]) -> None:
        """Raise `Differs` unless these are times in Unix ms less than a minute from the service's."""
        are_recent = all(isinstance(each, int) and abs(each - self.target.now()) < 60_000 for each in times)
        expect_that(what, are_recent, "the time of the call in Unix ms", times)

    # Sockets

    def socket(self, path: str | None = None) -> GameSocket:
        """Open a game socket that is not authenticated. With `path`, at this path of the service."""
        return GameSocket(self, self._connect(path))

    def handshake(self, path: str) -> int:
        """Return the status of a handshake at this path of the service: 101 if it opens a socket."""
        try:
            self._connect(path)
        except ErrorResponse as refused:
            return refused.status
        return 101

    def _connect(self, path: str | None) -> WebSocketClient:
        url, http = self.target.ws_url, self.target.http
        if path is not None:
            if url != socket_of(http.url):
                raise Skipped("the address of the socket cannot be derived from the URL")
            url = url.removesuffix("/ws") + path
        client = WebSocketClient(url, timeout=http.timeout, trace=lambda _: None)
        self._sockets.append(client)
        return client

    def game(self, role: str = "broadcaster", **options: Any) -> GameSocket:
        """Open a game socket with the rights of a token, by default of the channel's owner."""
        return self.linked_game(jwt=self.token(role, **options))

    def linked_game(self, **credential: str) -> GameSocket:
        """Open a game socket, and authenticate with this `pin`, `jwt` or `refresh`."""
        socket = self.socket()
        socket.authenticate(**credential)
        return socket

    def page(self) -> PageSocket:
        """Open a page's connection. Raises `Skipped` if the service has none."""
        try:
            return PageSocket(self, self._connect("/app/conform?protocol=7"))
        except ErrorResponse as refused:
            if refused.status != 404:
                raise
            raise Skipped("the service has no socket for pages") from None

    # After the probe

    def close(self) -> list[str]:
        """Close the sockets and remove what the probe wrote, the latest first. Returns what could not be removed."""
        while self._sockets:
            self._sockets.pop().close()
        removals = {}
        for caller, name, id in list(self.writes):
            if found := self._removal(caller, name, id):
                what, removal = found
                removals[what, caller.authorization if caller and "viewer_state" in name else ""] = removal
        return [what for (what, _), removal in reversed(removals.items()) if not _is_gone(removal)]

    def _removal(self, caller: Caller | None, name: str, id: str) -> tuple[str, Removal] | None:
        """Return what was written with these facts of a call, and the call that removes it."""
        # A poll or ranking is deleted in all channels if only this probe can have made it.
        owner = self.extension_backend if id.removeprefix("global-").startswith(PREFIX) else self.admin
        match name:
            case "vote" | "vote_config":
                return f"poll {id}", partial(owner.delete, "vote", id=id)
            case "rank":
                return f"ranking {id}", partial(owner.delete, "rank", id=id)
            case "codes":
                return "codes", partial(self.admin.delete, "codes")
            case "curated_poll_edit":
                return f"question {id}", partial(self.admin.delete, name, {"id": id})
            case "json_store":
                return f"json_store {id}", partial(self.admin.post, name, {}, id=id)
            case "channel_state" | "channel_config" | "config/channel":
                return name, partial(self.broadcaster.post, name, {})
            case "extension_state" | "extension_config" | "extension_hidden_state":
                return name, partial(self.extension_backend.post, name, {})
            case "viewer_state" | "extension_viewer_state" if caller:
                return f"{name} of the role {caller.role}", partial(caller.post, name, {})
            case "validate_pin" | "link/pin" | "pin":
                return "links", partial(self.broadcaster.delete, "pin")
        return None


def _is_gone(removal: Removal) -> bool:
    """Remove data, and return whether nothing is left of it."""
    try:
        return removal(status=ANY).status in (200, 404)
    except CliError:
        return False
