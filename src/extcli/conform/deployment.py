"""The service as one probe uses it: callers of each role, sockets, new ids, and the removal of written data."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from extcli import clock
from extcli.api import tokens
from extcli.api.call import SERVICE, encoded
from extcli.api.http import is_loopback
from extcli.api.token_sources import service_time
from extcli.api.tokens import opaque_id
from extcli.config import secret_lookup
from extcli.config.urls import socket_of
from extcli.conform.calls import Caller, Exchange, Reply
from extcli.conform.rule import Rule, Skipped
from extcli.conform.sockets import PATH, Page, Socket
from extcli.conform.target import OMIT, PREFIX, Pace, Target, fresh
from extcli.doctor.service import Kind, Probe, probe
from extcli.errors import CliError, ErrorResponse, ExpectationFailed, Unreachable, UsageError, shortened

if TYPE_CHECKING:
    from extcli.session import Session


def target_of(session: Session, *, writes: bool, whole_extension: bool) -> Target:
    """Return the service at the URL. Raises `Unreachable`, `ExpectationFailed` for another program, or `UsageError`."""
    found = _checked_probe(session)
    url = session.resolver.url()
    environment = _environment(session, found)
    is_sandbox_emulator = found.kind is Kind.EMULATOR and environment == "sandbox"
    now = service_time(session.http) if found.clock else None
    secret = secret_lookup.secret(session.resolver, url)
    token = _given_token(session) if secret is None or session.resolver.flags.token_file else None
    target = Target(
        http=session.http,
        ws_url=session.resolver.ws_url(),
        environment=environment,
        is_emulator=found.kind is Kind.EMULATOR,
        has_control=found.clock is not None,
        client_id=session.resolver.client_id(),
        secret=secret,
        token=token,
        writes=writes,
        whole_extension=whole_extension,
        ahead=now - clock.now() if now is not None else 0,
        timeout=session.resolver.timeout(),
        pace=Pace(unlimited=is_sandbox_emulator, shared=not is_loopback(urlsplit(url).hostname or "")),
        has_default_ws=session.resolver.configured_ws_url() is None,
    )
    if is_sandbox_emulator and token is None:
        _use_own_extension(target)
    return target


def _checked_probe(session: Session) -> Probe:
    """Probe the service. Raises `Unreachable`, also if it is not ready, or `ExpectationFailed` for another program."""
    found = probe(session.http)
    url = session.resolver.url()
    if found.error:
        raise found.error
    if not found.is_ours:
        raise ExpectationFailed(
            f"{url} is not an extension service", why=shortened(found.reason), fix="check --url (EXTCLI_URL)"
        )
    if not found.ready:
        raise Unreachable(f"{url} is not ready", why=shortened(found.reason), fix="`extcli wait` waits until it is")
    return found


def _given_token(session: Session) -> str | None:
    """Return the token that the user gave, or `None`. Raises `UsageError` if it is not a JWT."""
    token = secret_lookup.token(session.resolver, session.resolver.url())
    if token is not None and not tokens.claims_in(token):
        fix = "check it with `extcli token inspect`, or unset EXTCLI_TOKEN (--token-file)"
        raise UsageError("the given token is not a JWT", fix=fix)
    return token


def _use_own_extension(target: Target) -> None:
    """Let a run in a sandbox emulator use a client id of its own, so that it shares no data with other extensions."""
    target.secret = target.secret or secrets.token_bytes(32)  # a sandbox does not check signatures (ruling A1)
    client_id = fresh()
    authorization = f"{client_id} {target.token_of({'role': 'viewer'}, client_id)}"
    with target.http.stream("GET", f"{SERVICE}user_info", authorization=authorization) as answer:
        if answer.status_code == 200:  # not with `serve --registered-only`
            target.client_id, target.whole_extension = client_id, True


def _environment(session: Session, found: Probe) -> str:
    if found.environment:
        return found.environment
    # A deployment does not say it; only a sandbox issues tokens.
    body = encoded({"app_id": session.resolver.client_id(), "role": "viewer", "channel_id": "1", "user_id": "1"})
    answer = session.http.send("POST", f"{SERVICE}authtoken", body=body)
    return "sandbox" if answer.status_code == 200 else "production"


STORES = {
    "config/channel": "channel_config",
    "config/extension": "extension_config",
}
VIEWER_STORES = ("viewer_state", "extension_viewer_state")
CHANNEL_STORES = ("channel_state", "channel_config")
EXTENSION_STORES = ("extension_state", "extension_config", "extension_hidden_state")

_GONE = (200, 404)
"""The statuses of a removal after which nothing is left."""


class Leftovers:
    """The data that one probe has written, with the calls that remove it."""

    def __init__(self, at: Deployment) -> None:
        self._at = at
        self._removals: dict[tuple[str, str], Callable[[], Reply]] = {}
        self._is_removing = False

    def wrote(self, caller: Caller, path: str, query: Mapping[str, Any], body: Any) -> None:
        """Record what to remove after a call that has succeeded, or may have."""
        where = urlsplit(path)
        name = where.path.strip("/").removeprefix("v1/e/")
        in_path = {name: values[0] for name, values in parse_qs(where.query).items()}
        name = STORES.get(name, name)
        members = body if isinstance(body, dict) else {}
        id = str(query.get("id") or in_path.get("id") or members.get("id") or "default")
        match name:
            case "vote" | "vote_config":
                self.poll(id)
            case "rank":
                self._add(f"ranking {id}", lambda: self._clear("rank", id))
            case "codes":
                self._add("codes", lambda: self._at.admin.delete("codes"))
            case "curated_poll_edit":
                self._add(f"question {id}", lambda: self._at.admin.delete("curated_poll_edit", {"id": id}))
            case "json_store":
                self._add(f"json_store {id}", lambda: self._at.admin.post("json_store", {}, id=id))
            case "validate_pin" | "link/pin" | "gamelink/pin" | "gamelink/token" | "pin":
                self.link()
            case _ if name in VIEWER_STORES:
                self._add(f"{name} of a {caller.role}", lambda: caller.post(name, {}), str(caller.authorization))
            case _ if name in CHANNEL_STORES:
                self.store(name)
            case _ if name in EXTENSION_STORES:
                self._add(name, lambda: self._at.extension_admin.post(name, {}))

    def note_socket_write(self, action: str, target: str, data: Mapping[str, Any]) -> None:
        """Record what to remove after a socket request that has succeeded, or may have."""
        if action == "create" and target == "poll":
            self.poll(str(data.get("poll_id", "default")))
            self.store("channel_state")
        elif action in ("set", "patch") and target in ("state", "config"):
            self.store(f"channel_{target}")
        elif action == "authenticate" and ("pin" in data or "jwt" in data):
            self.link()

    def poll(self, id: str) -> None:
        """Record a written poll, to be removed."""
        self._add(f"poll {id}", lambda: self._clear("vote", id))

    def store(self, name: str) -> None:
        """Record a written store of the channel, to be cleared."""
        self._add(name, lambda: self._at.broadcaster.post(name, {}))

    def link(self) -> None:
        """Record that the channel was linked, so that its links are revoked."""
        self._add("links", lambda: self._at.broadcaster.delete("pin"))

    def _clear(self, path: str, id: str) -> Reply:
        """Delete a poll or ranking: in all channels if only this probe can have made it, otherwise in the probe's
        channel.
        """
        own = id.removeprefix("global-").startswith(PREFIX)
        return (self._at.extension_admin if own else self._at.admin).delete(path, id=id)

    def _add(self, what: str, removal: Callable[[], Reply], owner: str = "") -> None:
        if not self._is_removing:
            self._removals[what, owner] = removal

    def remove(self) -> list[str]:
        """Remove all recorded data, the latest first. Return what could not be removed."""
        self._is_removing = True
        failed = []
        for (what, _), removal in reversed(self._removals.items()):
            try:
                is_gone = removal().status in _GONE
            except CliError:
                is_gone = False
            if not is_gone:
                failed.append(what)
        self._removals.clear()
        return failed


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
        """Return the service's time in Unix ms, from its difference to this machine's at the start of the run."""
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
        """Return a caller that sends this token. `role` names the caller in recordings."""
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
        """Return a token with these claims, completed as for `caller`."""
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
        except ErrorResponse as refused:
            return refused.status
        return 101

    def _socket_url(self, path: str | None) -> str:
        if path is None:
            return self.target.ws_url
        if not self.target.has_default_ws:
            raise Skipped("the address of the socket cannot be derived from the URL")
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
        except ErrorResponse as refused:
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

    def wrote(self, caller: Caller, path: str, query: Mapping[str, Any], body: Any) -> None:
        """Record the data to remove after a call that has succeeded."""
        self._leftovers.wrote(caller, path, query, body)

    def note_socket_write(self, action: str, target: str, data: Mapping[str, Any]) -> None:
        """Record the data to remove after a socket request that has succeeded."""
        if self.rule.writes:
            self._leftovers.note_socket_write(action, target, data)
