"""The checks of `doctor`, in their order. Each returns a finding; an error in one is a failure of this check alone."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit
from urllib.request import getproxies_environment, proxy_bypass

import psutil

from emulator.contract.limits import MIN_SECRET_BYTES
from emulator.contract.shell import quoted
from extcli import bounded_json
from extcli.api import tokens
from extcli.api.call import CONTROL
from extcli.api.client import Service
from extcli.api.connection import addresses_of
from extcli.config import settings
from extcli.config.urls import is_loopback
from extcli.doctor.service import NOT_OURS, Finding, Kind, Probe, Status, probe
from extcli.errors import CliError, Refused, shortened
from extcli.output import times
from extcli.output.sanitize import visible
from extcli.reading import document_of, expect_shape
from extcli.session import BACKEND, Session

MAX_SKEW = 2_000
"""The clock skew in ms above which `clock` fails."""
STALE = 3_600_000
"""The age in ms from which votes may be from an earlier run."""
_MOST_POLLS = 20
"""Polls whose oldest vote is read; each takes a call."""
_SHOWN = 3
_CONNECT_SECONDS = 1.0
_FAULTS = {"faults": [{"id": str, "left": (int, None), "ends_at": (int, None)}]}


ok = partial(Finding, "", Status.OK)
note = partial(Finding, "", Status.NOTE)
fail = partial(Finding, "", Status.FAIL)
skipped = partial(Finding, "", Status.SKIPPED)
_UNANSWERED = skipped("needs a service that answers")


class Case:
    """What the checks know."""

    def __init__(self, session: Session, poll: str | None) -> None:
        """`poll` is the only poll to check; `None` for all."""
        self.session = session
        self.poll = poll
        self.found = probe(session.http)
        self.service: Service | None = None
        """The service, once it has accepted the token."""
        self.url = session.resolver.url()
        parts = urlsplit(self.url)
        self.scheme, self.host = parts.scheme, parts.hostname or ""
        self.port = parts.port or {"http": 80}.get(parts.scheme, 443)
        profile = session.resolver.profile
        self.profile = profile if profile and profile.is_of(self.url) else None
        """The chosen profile, unless the URL from an option or a variable belongs to another service."""


def findings(session: Session, poll: str | None) -> Iterator[Finding]:
    """Run all checks in order."""
    case = Case(session, poll)
    for name, check in CHECKS.items():
        try:
            result = check(case)
        except CliError as error:
            result = _failed(error)
        if result is not None:
            yield replace(result, check=name)


def _failed(error: CliError) -> Finding:
    return fail(f"{error.what}: {error.why}" if error.why else error.what, error.fix)


def _reachable(case: Case) -> Finding:
    if case.found.error:
        raise case.found.error
    return ok(f"{case.url} answers")


def _service(case: Case) -> Finding:
    answer = shortened(case.found.reason, 120)
    match case.found.kind:
        case Kind.NOTHING:
            return _UNANSWERED
        case Kind.WRONG_PATH:
            meaning = f"an extension service answers, but not at this path: {answer}"
            return fail(meaning, "use its base URL, without /v1/e")
        case Kind.OTHER:
            return fail(f"{case.url} is not an extension service; it answered {answer}", NOT_OURS)
        case Kind.EMULATOR:
            return ok(f"extcli serve {case.found.version}".rstrip())
        case Kind.DEPLOYMENT if answer:
            meaning = f"a deployment; its /_emulator/ is closed ({answer})"
            return note(meaning, "check its readiness on its own machine: `extcli wait`")
        case Kind.DEPLOYMENT:
            return ok("an extension service without /_emulator: a deployment")


def _ready(case: Case) -> Finding:
    found = case.found
    if not found.is_ours:
        return _UNANSWERED
    if found.kind is Kind.DEPLOYMENT:
        return skipped("a deployment does not report it")
    if not found.ready:
        action = "see the service's log; `extcli wait` waits until it is ready"
        return fail(f"it answers, but is not ready: {found.reason}", action)
    return ok("the next request will succeed")


def _environment(case: Case) -> Finding:
    """Judge sandbox or production against the profile."""
    found, profile = case.found, case.profile
    if not found.ready:
        return _UNANSWERED
    if found.environment == "sandbox":
        if profile and profile.production:
            meaning = f"a sandbox, which accepts any token, but profile {profile.name} is marked production"
            return fail(meaning, f"correct the url or the production key of profile {profile.name}")
        if found.clock is None:
            meaning = f"sandbox; its control API (reset, clock, ns) does not answer to the host {case.host}"
            return note(meaning, f"start it with --control-host {case.host}, or use 127.0.0.1")
        return ok("sandbox: it accepts any token, and its clock can be moved")
    kind = "production: it verifies tokens" if found.environment else "a deployment: it verifies tokens"
    if profile and not profile.production:
        meaning = f"{kind}; profile {profile.name} is not marked production, so extcli does not ask before data is lost"
        return note(meaning, f"`extcli -p {profile.name} config set production true`")
    return ok(kind)


def clock(found: Probe) -> Finding:
    """Judge the skew between the clocks of two machines. The `Date` of a response is cut to seconds."""
    if not found.is_ours:
        return _UNANSWERED
    if found.date is None:
        return skipped("the response has no Date header")
    skew = found.date - found.after if found.date > found.after else min(found.date + 1_000 - found.before, 0)
    if abs(skew) > MAX_SKEW:
        direction = "ahead of" if skew > 0 else "behind"
        meaning = f"the service's machine is {times.span(skew)} {direction} this one: tokens expire early or late"
        return fail(meaning, "set both clocks by NTP; `serve --leeway 5` tolerates 5 s")
    moved = found.clock
    if moved and (moved.offset or moved.frozen):
        by = f"moved by {'-' if moved.offset < 0 else '+'}{times.span(moved.offset)}" if moved.offset else "not moved"
        meaning = f"the two machines agree; the emulator's clock is {by}{', frozen' if moved.frozen else ''}"
        return note(meaning, "`extcli reset` sets it back, and deletes all data")
    return ok("the clocks of both machines agree within 2 s")


def _port(case: Case) -> Finding:
    if not is_loopback(case.host):
        return skipped(f"{case.host} is not this machine's loopback")
    return port(case.port, listeners(case.port), case.found.kind)


class Listener(NamedTuple):
    """A socket that listens on a port of this machine."""

    address: str
    pid: int | None
    """The process; `None` if it belongs to another user."""
    program: str = ""

    def __str__(self) -> str:
        who = f"{self.program or 'a program'} (pid {self.pid})" if self.pid else "a program of another user"
        return f"{who} on {self.address}"


def listeners(port: int) -> list[Listener] | None:
    """Return what listens on a TCP port; `None` if the system shows that to administrators only."""
    try:
        sockets = psutil.net_connections("tcp")
    except psutil.AccessDenied:
        return None
    found = [each for each in sockets if each.status == psutil.CONN_LISTEN and each.laddr.port == port]
    return [Listener(each.laddr.ip, each.pid, _program(each.pid) if each.pid else "") for each in found]


def _program(pid: int) -> str:
    with suppress(psutil.Error):  # it has ended
        return str(psutil.Process(pid).name())
    return ""


def port(port: int, listeners: Sequence[Listener] | None, kind: Kind) -> Finding:
    """Judge which program holds a port. `listeners` is `None` where the system does not list them."""
    answers = kind is not Kind.NOTHING
    if listeners is None:
        found = "a program" if answers else "no program"
        return skipped(f"{found} answers on port {port}; this system does not name it")
    if not listeners and answers:
        return ok(f"port {port} answers, forwarded from elsewhere")
    if not listeners:
        return ok(f"port {port} is free: `extcli serve --port {port}` can use it")
    holders = ", ".join(map(str, listeners[:_SHOWN])) + (" and more" if len(listeners) > _SHOWN else "")
    if kind in (Kind.NOTHING, Kind.OTHER):
        action = "stop that program, or use `extcli serve --port 0` and the URL it prints"
        return fail(f"port {port} is held by {holders}, which is not a ready service", action)
    return ok(f"port {port} is the service's: {holders}")


def _localhost(case: Case) -> Finding:
    if not is_loopback(case.host):
        return skipped("the URL is not on this machine's loopback")
    is_name = case.host == "localhost" or case.host.endswith(".localhost")
    host = case.host if is_name else "localhost"
    accepting = {each for each in ("127.0.0.1", "::1") if _accepts(each, case.port)}
    return localhost(host, case.port, addresses_of(host), accepting, in_url=is_name)


def _accepts(address: str, port: int) -> bool:
    with suppress(OSError):
        socket.create_connection((address, port), _CONNECT_SECONDS).close()
        return True
    return False


def localhost(
    host: str,
    port: int,
    addresses: Sequence[str],
    accepting: Set[str],
    *,
    in_url: bool,
) -> Finding:
    """Judge whether a name of this machine leads to the service.

    `addresses` belong to `host`, in the order of the resolver. `accepting` are the loopback addresses on which the
    port accepts connections. If the URL does not use the name (`in_url`), a failure is a note.
    """
    if not accepting:
        return skipped(f"nothing listens on port {port}")
    place = min(accepting)
    action = f"use {f'[{place}]' if ':' in place else place}:{port} in clients"
    if not accepting & set(addresses):
        meaning = f"{host} is {' and '.join(addresses) or 'nowhere'} only, and the service listens on {place} only"
        return fail(meaning, action) if in_url else note(meaning, action)
    if addresses[0] not in accepting:
        meaning = f"{host} is {addresses[0]} first, where nothing listens: a client that tries one address fails"
        return note(meaning, action)
    return ok(f"{host} is {addresses[0]}, where the service listens")


def proxy(scheme: str, host: str, port: int) -> Finding:
    """Judge the proxy variables by name. Their values are never shown, as they may contain a password."""
    variables = getproxies_environment()
    used = next((f"{name.upper()}_PROXY" for name in (scheme, "all") if variables.get(name)), None)
    if used is None:
        return ok("no proxy variable applies")
    wanted = dict.fromkeys([host, "127.0.0.1", "localhost"]) if is_loopback(host) else [host]
    caught = [each for each in wanted if not proxy_bypass(f"{each}:{port}")]
    if not caught:
        return ok(f"NO_PROXY exempts {', '.join(wanted)} from {used}")
    if not is_loopback(host):
        return note(f"calls to {host} go through the proxy in {used}", f"to avoid it, append to NO_PROXY: {host}")
    meaning = f"{used} catches {', '.join(caught)}: clients other than extcli go to the proxy instead"
    return fail(meaning, f"append to NO_PROXY: {','.join(caught)}")


def _secret(case: Case) -> Finding:
    resolver = case.session.resolver
    found = resolver.find_secret()
    if found is None:
        return skipped("none is configured; only a sandbox issues tokens without one")
    warning = ""
    if isinstance(found.value, Path):
        resolver.checked_files.add(found.value)  # the finding has the warning
        warning = settings.permission_warning(found.value)
    length = len(resolver.secret() or b"")
    if length < MIN_SECRET_BYTES:
        meaning = f"{found.label} has {length} bytes; HS256 requires at least {MIN_SECRET_BYTES}"
        return fail(meaning, "copy the whole secret from Twitch, or create a new one")
    if warning:
        meaning, _, action = warning.partition(": ")
        return note(meaning, action)
    return ok(f"{found.label} is base64 of at least {MIN_SECRET_BYTES} bytes")


def _token(case: Case) -> Finding:
    """Let the service judge the token that a backend command would send."""
    credentials = case.session.credentials(BACKEND)
    service = case.session.service_with(credentials).probing()
    if not case.found.ready:
        return skipped("needs a ready service")
    inspection = tokens.inspect(credentials.token(), now=case.found.now)
    try:
        service.get("user_info")
    except Refused as error:
        if error.status in (401, 403):
            why = "; ".join(filter(None, (error.why, *inspection.traps)))
            return fail(f"{credentials.origin} is refused: {why}", credentials.advice)
    case.service = service
    return ok(f"{credentials.origin}: role {inspection.claims.get('role', 'viewer')}")


def _polls(case: Case) -> Finding:
    """Judge the polls of the first page. Old votes are a failure in the poll that the user named, a note in others."""
    if case.service is None:
        return skipped("needs a ready service and a valid token")
    try:
        found = _first_votes(case.service, case.poll)
    except Refused as error:  # the token may be one of a viewer
        return replace(_failed(error), status=Status.SKIPPED)
    now = case.found.now
    stale = sorted(each for each in found if now - each[0] > STALE)
    if not found:
        return ok(f"poll {case.poll} has no votes" if case.poll else "no poll has votes")
    if not stale:
        return ok(f"the votes of {f'poll {case.poll}' if case.poll else 'all polls'} are less than an hour old")
    names = ", ".join(f"{poll} ({times.span(now - at)})" for at, poll, _ in stale[:_SHOWN])
    more = f" and {len(stale) - _SHOWN} more" if len(stale) > _SHOWN else ""
    meaning = f"votes over an hour old, which may be from an earlier run: {names}{more}"
    _, first, channel = stale[0]
    where = f" --channel {quoted(channel)}" if channel else ""
    action = f"`extcli vote rm {quoted(first)}{where}` deletes them; or use a new id for each run"
    return fail(meaning, action) if case.poll else note(meaning, action)


def _first_votes(service: Service, named: str | None) -> list[tuple[int, str, str]]:
    """Return the time of the oldest known vote of each poll, or of the named one, with its id and channel.

    Raises `CliError`.
    """
    response = service.get("polls", cursor="0")
    votes = []
    with expect_shape(response):
        for index, each in enumerate(bounded_json.decoded(response.content)["polls"]):
            if not each["count"] or named not in (None, each["id"]):
                continue
            oldest = [each["latest"]]
            if index < _MOST_POLLS:
                log = service.get("vote_logs", id=each["id"], limit=1, channel_id=each["channel_id"] or None)
                oldest += [int(vote["timestamp"]) for vote in bounded_json.decoded(log.content)["result"]]
            votes.append((min(oldest), str(each["id"]), str(each["channel_id"])))
    return votes


def _faults(case: Case) -> Finding | None:
    """Return a note about faults that still act, because their errors look like errors of a broken service."""
    if case.found.clock is None:
        return None
    acting: list[str] = []
    with suppress(CliError):
        response = case.session.http.send("GET", f"{CONTROL}faults")
        for each in document_of(response, _FAULTS)["faults"]:
            is_over = each["ends_at"] is not None and each["ends_at"] <= case.found.now
            if each["left"] != 0 and not is_over:
                acting.append(each["id"])
    if not acting:
        return None
    names = shortened(visible(", ".join(acting)), 120)
    action = "`extcli fault list` shows what they do, `extcli fault clear` removes them"
    return note(f"the service fails on purpose, by faults: {names}", action)


CHECKS: dict[str, Callable[[Case], Finding | None]] = {
    "reachable": _reachable,
    "service": _service,
    "ready": _ready,
    "environment": _environment,
    "clock": lambda case: clock(case.found),
    "port": _port,
    "localhost": _localhost,
    "proxy": lambda case: proxy(case.scheme, case.host, case.port),
    "secret": _secret,
    "token": _token,
    "polls": _polls,
    "faults": _faults,
}
