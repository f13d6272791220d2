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
from emulator.contract.shell import quote_word
from extcli import bounded_json
from extcli.api import tokens
from extcli.api.call import CONTROL
from extcli.api.client import Service
from extcli.api.connection import addresses_of
from extcli.config import settings
from extcli.config.urls import is_loopback
from extcli.doctor.service import CHECK_URL, Finding, Probe, ServiceKind, Status, probe
from extcli.errors import CliError, Refused, shortened
from extcli.output import times
from extcli.output.sanitize import visible
from extcli.reading import document_of, expect_shape
from extcli.session import BACKEND, Session

MAX_SKEW = 2_000
"""The clock skew in ms above which `clock` fails."""
STALE_VOTE_AGE = 3_600_000
"""The age in ms from which votes may be from an earlier run."""
_MOST_POLLS = 20
"""Polls whose oldest vote is read; each takes a call."""
_MAX_NAMED = 3
_CONNECT_SECONDS = 1.0
_FAULTS_SHAPE = {"faults": [{"id": str, "left": (int, None), "ends_at": (int, None)}]}


ok = partial(Finding, "", Status.OK)
note = partial(Finding, "", Status.NOTE)
fail = partial(Finding, "", Status.FAIL)
skipped = partial(Finding, "", Status.SKIPPED)
_NO_SERVICE = skipped("no extension service answers")
_NOT_READY = skipped("the service is not ready")


class CheckContext:
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
        self.profile = profile if profile and profile.is_at(self.url) else None
        """The chosen profile, unless the URL from an option or a variable belongs to another service."""


def run_checks(session: Session, poll: str | None) -> Iterator[Finding]:
    """Run all checks in order."""
    context = CheckContext(session, poll)
    for name, check in CHECKS.items():
        try:
            result = check(context)
        except CliError as error:
            result = _failed_check(error)
        if result is not None:
            yield replace(result, check=name)


def _failed_check(error: CliError) -> Finding:
    return fail(f"{error.what}: {error.why}" if error.why else error.what, error.fix)


def _check_reachable(context: CheckContext) -> Finding:
    if context.found.error:
        raise context.found.error
    return ok(f"{context.url} answers")


def _check_service(context: CheckContext) -> Finding:
    answer = shortened(context.found.reason, 120)
    match context.found.kind:
        case ServiceKind.NOTHING:
            return _NO_SERVICE
        case ServiceKind.WRONG_PATH:
            meaning = f"an extension service answers, but the path of the URL is wrong: {answer}"
            return fail(meaning, "use its base URL, without /v1/e")
        case ServiceKind.OTHER:
            return fail(f"{context.url} is not an extension service; it answered {answer}", CHECK_URL)
        case ServiceKind.EMULATOR:
            return ok(f"extcli serve {context.found.version}".rstrip())
        case ServiceKind.DEPLOYMENT if answer:
            meaning = f"an extension service that denies access to /_emulator/ ({answer})"
            return note(meaning, "to check its readiness, run `extcli wait` on its own machine")
        case ServiceKind.DEPLOYMENT:
            return ok("an extension service without /_emulator/")


def _check_ready(context: CheckContext) -> Finding:
    found = context.found
    if not found.is_extension_service:
        return _NO_SERVICE
    if found.kind is ServiceKind.DEPLOYMENT:
        return skipped("this service does not report whether it is ready")
    if not found.ready:
        action = "see the service's log; `extcli wait` waits until it is ready"
        return fail(f"the service answers, but is not ready: {found.reason}", action)
    return ok("the service accepts requests")


def _check_environment(context: CheckContext) -> Finding:
    """Judge sandbox or production against the profile."""
    found, profile = context.found, context.profile
    if not found.ready:
        return _NOT_READY
    if found.environment == "sandbox":
        if profile and profile.production:
            meaning = f"a sandbox, which accepts any token, but profile {profile.name} is marked production"
            return fail(meaning, f"correct the url or the production key of profile {profile.name}")
        if found.clock is None:
            meaning = f"a sandbox, which refuses its control API (reset, clock, ns) at the host name {context.host}"
            return note(meaning, f"start it with --control-host {context.host}, or use 127.0.0.1 in the URL")
        return ok("a sandbox: it accepts any token, and its clock can be moved")
    kind = "production: it verifies tokens" if found.environment else "a hosted service: it verifies tokens"
    if profile and not profile.production:
        meaning = f"{kind}; profile {profile.name} is not marked production, so extcli does not ask before data is lost"
        return note(meaning, f"run `extcli -p {profile.name} config set production true`")
    return ok(kind)


def judge_clock(found: Probe) -> Finding:
    """Judge the skew between the clocks of two machines. The `Date` of a response is cut to seconds."""
    if not found.is_extension_service:
        return _NO_SERVICE
    if found.date is None:
        return skipped("the response has no Date header")
    skew = found.date - found.after if found.date > found.after else min(found.date + 1_000 - found.before, 0)
    if abs(skew) > MAX_SKEW:
        direction = "ahead of" if skew > 0 else "behind"
        by = times.duration_text(skew)
        meaning = f"the service's machine is {by} {direction} this one: tokens expire early or late"
        return fail(meaning, "set both clocks by NTP; `serve --leeway 5` tolerates 5 s")
    moved = found.clock
    if moved and (moved["offset"] or moved["frozen"]):
        state = " and ".join(filter(None, (times.clock_offset_text(moved["offset"]), moved["frozen"] and "frozen")))
        meaning = f"the machines' clocks agree, but the emulator's clock is {state}"
        return note(meaning, "`extcli reset` sets it back, and deletes all data")
    return ok("the clocks of both machines agree within 2 s")


def _check_port(context: CheckContext) -> Finding:
    if not is_loopback(context.host):
        return skipped(f"{context.host} is not a loopback address")
    return judge_port(context.port, port_holders(context.port), context.found.kind)


class PortHolder(NamedTuple):
    """A socket that listens on a port of this machine."""

    address: str
    pid: int | None
    """The process; `None` if it belongs to another user."""
    program: str = ""

    def __str__(self) -> str:
        who = f"{self.program or 'a program'} (pid {self.pid})" if self.pid else "a program of another user"
        return f"{who} on {self.address}"


def port_holders(port: int) -> list[PortHolder] | None:
    """Return what listens on a TCP port; `None` if the system shows that to administrators only."""
    try:
        sockets = psutil.net_connections("tcp")
    except psutil.AccessDenied:
        return None
    found = [each for each in sockets if each.status == psutil.CONN_LISTEN and each.laddr.port == port]
    return [PortHolder(each.laddr.ip, each.pid, _program_name(each.pid) if each.pid else "") for each in found]


def _program_name(pid: int) -> str:
    with suppress(psutil.Error):  # it has ended
        return str(psutil.Process(pid).name())
    return ""


def judge_port(port: int, holders: Sequence[PortHolder] | None, kind: ServiceKind) -> Finding:
    """Judge which program holds a port. `holders` is `None` where the system does not list them."""
    answers = kind is not ServiceKind.NOTHING
    if holders is None:
        found = "a program" if answers else "no program"
        return skipped(f"{found} answers on port {port}; the system hides which programs listen")
    if not holders and answers:
        return ok(f"port {port} answers, but no program listens here: the port is forwarded")
    if not holders:
        return ok(f"port {port} is free: `extcli serve --port {port}` can use it")
    named = ", ".join(map(str, holders[:_MAX_NAMED])) + (" and more" if len(holders) > _MAX_NAMED else "")
    if kind in (ServiceKind.NOTHING, ServiceKind.OTHER):
        action = "stop that program, or use `extcli serve --port 0` and the URL it prints"
        return fail(f"port {port} is held by {named}, which does not answer as an extension service", action)
    return ok(f"port {port} belongs to the service: {named}")


def _check_localhost(context: CheckContext) -> Finding:
    if not is_loopback(context.host):
        return skipped(f"{context.host} is not a loopback address")
    is_name = context.host == "localhost" or context.host.endswith(".localhost")
    host = context.host if is_name else "localhost"
    accepting = {each for each in ("127.0.0.1", "::1") if _accepts_connections(each, context.port)}
    return judge_localhost(host, context.port, addresses_of(host), accepting, in_url=is_name)


def _accepts_connections(address: str, port: int) -> bool:
    with suppress(OSError):
        socket.create_connection((address, port), _CONNECT_SECONDS).close()
        return True
    return False


def judge_localhost(host: str, port: int, addresses: Sequence[str], accepting: Set[str], *, in_url: bool) -> Finding:
    """Judge whether a name of this machine leads to the service.

    `addresses` belong to `host`, in the order of the resolver. `accepting` are the loopback addresses on which the
    port accepts connections. If the URL does not use the name (`in_url`), a failure is a note.
    """
    if not accepting:
        return skipped(f"nothing listens on port {port}")
    place = min(accepting)
    action = f"use {f'[{place}]' if ':' in place else place}:{port} in clients"
    if not accepting & set(addresses):
        found = " and ".join(addresses) or "no address"
        meaning = f"{host} resolves to {found}, but the service listens only on {place}"
        return fail(meaning, action) if in_url else note(meaning, action)
    if addresses[0] not in accepting:
        meaning = f"{host} resolves first to {addresses[0]}, where nothing listens; some clients try only this address"
        return note(meaning, action)
    return ok(f"{host} resolves to {addresses[0]}, where the service listens")


def judge_proxy(scheme: str, host: str, port: int) -> Finding:
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
        return note(f"calls to {host} go through the proxy in {used}", f"to avoid that, append to NO_PROXY: {host}")
    meaning = f"{used} applies to {', '.join(caught)}: clients other than extcli send these calls to the proxy"
    return fail(meaning, f"append to NO_PROXY: {','.join(caught)}")


def _check_secret(context: CheckContext) -> Finding:
    resolver = context.session.resolver
    found = resolver.find_secret()
    if found is None:
        return skipped("no secret is configured; only a sandbox issues tokens without one")
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


def _check_token(context: CheckContext) -> Finding:
    """Let the service judge the token that a backend command would send."""
    credentials = context.session.credentials(BACKEND)
    service = context.session.service_with(credentials).probing()
    if not context.found.ready:
        return _NOT_READY
    inspection = tokens.inspect(credentials.token(), now=context.found.now)
    try:
        service.get("user_info")
    except Refused as error:
        if error.status in (401, 403):
            why = "; ".join(filter(None, (error.why, *inspection.traps)))
            return fail(f"{credentials.origin} is refused: {why}", credentials.advice)
    context.service = service
    return ok(f"the service accepts {credentials.origin}, with the role {inspection.claims.get('role', 'viewer')}")


def _check_polls(context: CheckContext) -> Finding:
    """Judge the polls of the first page. Old votes are a failure in the poll that the user named, a note in others."""
    if context.service is None:
        return skipped("this check needs a ready service and a valid token")
    try:
        oldest = _oldest_votes(context.service, context.poll)
    except Refused as error:  # the token may be one of a viewer
        return replace(_failed_check(error), status=Status.SKIPPED)
    now = context.found.now
    stale = sorted(each for each in oldest if now - each[0] > STALE_VOTE_AGE)
    if not stale:
        polls = f"poll {context.poll}" if context.poll else "the service"
        return ok(f"{polls} has no votes over an hour old")
    names = ", ".join(f"{poll} ({times.duration_text(now - at)})" for at, poll, _ in stale[:_MAX_NAMED])
    more = f" and {len(stale) - _MAX_NAMED} more" if len(stale) > _MAX_NAMED else ""
    meaning = f"votes over an hour old, which may be from an earlier run: {names}{more}"
    _, first, channel = stale[0]
    where = f" --channel {quote_word(channel)}" if channel else ""
    action = f"`extcli vote rm {quote_word(first)}{where}` deletes them; or use a new id for each run"
    return fail(meaning, action) if context.poll else note(meaning, action)


def _oldest_votes(service: Service, named: str | None) -> list[tuple[int, str, str]]:
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


def _check_faults(context: CheckContext) -> Finding | None:
    """Return a note about faults that still act, because their errors look like errors of a broken service."""
    if context.found.clock is None:
        return None
    acting: list[str] = []
    with suppress(CliError):
        response = context.session.http.send("GET", f"{CONTROL}faults")
        for each in document_of(response, _FAULTS_SHAPE)["faults"]:
            is_over = each["ends_at"] is not None and each["ends_at"] <= context.found.now
            if each["left"] != 0 and not is_over:
                acting.append(each["id"])
    if not acting:
        return None
    names = shortened(visible(", ".join(acting)), 120)
    action = "`extcli fault list` shows what they do, `extcli fault clear` removes them"
    return note(f"faults make some requests fail on purpose: {names}", action)


CHECKS: dict[str, Callable[[CheckContext], Finding | None]] = {
    "reachable": _check_reachable,
    "service": _check_service,
    "ready": _check_ready,
    "environment": _check_environment,
    "clock": lambda context: judge_clock(context.found),
    "port": _check_port,
    "localhost": _check_localhost,
    "proxy": lambda context: judge_proxy(context.scheme, context.host, context.port),
    "secret": _check_secret,
    "token": _check_token,
    "polls": _check_polls,
    "faults": _check_faults,
}
