"""Runs all checks of `doctor`. Each yields findings; a failing check does not end the command."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from extcli import bounded_json
from extcli.api import tokens
from extcli.api.call import CONTROL
from extcli.api.http import is_loopback
from extcli.api.token_sources import SandboxTokens
from extcli.config import secret_lookup
from extcli.config.profiles import Profile
from extcli.doctor import machine
from extcli.doctor import service as answers
from extcli.doctor.service import NOT_OURS, Finding, Kind, PollAge, Probe, Status, failed_finding, probe
from extcli.errors import CliError, ErrorResponse, UnexpectedResponse, shortened
from extcli.output.sanitize import visible
from extcli.reading.shapes import SHAPE_ERRORS
from extcli.session import BACKEND, Session

_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
_MAX_POLLS = 20
"""Polls whose oldest vote is read; each takes a call."""


def findings(session: Session, poll: str | None) -> Iterator[Finding]:
    """Run all checks in order. `poll` is the only poll to check; `None` for all."""
    found = probe(session.http)
    answers_at = Finding("reachable", Status.OK, f"{session.resolver.url()} answers")
    yield failed_finding("reachable", found.error) if found.error else answers_at
    yield _service(session, found)
    yield _ready(found)
    yield _environment(session, found)
    is_ours, times = found.is_ours, (found.date, found.before, found.after)
    yield answers.clock(*times, found.clock) if is_ours else _skipped_finding("clock")
    yield from _machine(session, found)
    yield _secret(session)
    yield from _token_and_polls(session, found, poll)
    yield from _faults(session, found)


def _service(session: Session, found: Probe) -> Finding:
    check = "service"
    match found.kind:
        case Kind.NOTHING:
            return _skipped_finding(check)
        case Kind.WRONG_PATH:
            meaning = f"an extension service answers, but not at this path: {shortened(found.reason, 120)}"
            return Finding(check, Status.FAIL, meaning, "use its base URL, without /v1/e")
        case Kind.OTHER:
            meaning = (
                f"{session.resolver.url()} is not an extension service; it answered {shortened(found.reason, 120)}"
            )
            return Finding(check, Status.FAIL, meaning, NOT_OURS)
        case Kind.EMULATOR:
            return Finding(check, Status.OK, f"extcli serve {found.version}".rstrip())
        case Kind.DEPLOYMENT if found.reason:
            meaning = f"a deployment; its /_emulator/ is closed ({shortened(found.reason, 120)})"
            return Finding(check, Status.NOTE, meaning, "check its readiness on its own machine: `extcli wait`")
        case Kind.DEPLOYMENT:
            return Finding(check, Status.OK, "an extension service without /_emulator: a deployment")


def _ready(found: Probe) -> Finding:
    check = "ready"
    if not found.is_ours:
        return _skipped_finding(check)
    if found.kind is Kind.DEPLOYMENT:
        return Finding(check, Status.SKIPPED, "a deployment does not report it")
    if not found.ready:
        action = "see the service's log; `extcli wait` waits until it is ready"
        return Finding(check, Status.FAIL, f"it answers, but is not ready: {found.reason}", action)
    return Finding(check, Status.OK, "the next request will succeed")


def _environment(session: Session, found: Probe) -> Finding:
    if not found.ready:
        return _skipped_finding("environment")
    profile = _profile(session)
    return answers.environment(
        found.environment,
        profile=profile.name if profile else None,
        marked_production=bool(profile and profile.production),
        control_host=urlsplit(session.resolver.url()).hostname if found.refuses_control else None,
    )


def _machine(session: Session, found: Probe) -> Iterator[Finding]:
    parts = urlsplit(session.resolver.url())
    host, on_loopback = parts.hostname or "", is_loopback(parts.hostname or "")
    if on_loopback:
        port = parts.port or {"http": 80}.get(parts.scheme, 443)
        listeners = machine.listeners(port)
        is_ours = found.is_ours or found.kind is Kind.WRONG_PATH
        yield machine.port(port, listeners, is_ours=is_ours, answers=found.kind is not Kind.NOTHING)
        yield localhost(host if _is_name(host) else "localhost", port, in_url=_is_name(host))
    else:
        yield Finding("port", Status.SKIPPED, f"{host} is not this machine's loopback")
        yield Finding("localhost", Status.SKIPPED, "the URL is not on this machine's loopback")
    variables = {name: session.resolver.variable(name) or "" for each in _PROXIES for name in (each, each.upper())}
    yield machine.proxy(parts.scheme, host, variables, is_loopback=on_loopback)


def localhost(host: str, port: int, *, in_url: bool) -> Finding:
    """Check that `localhost` leads to the program that listens on the port."""
    addresses, accepting = machine.addresses_of(host), machine.accepting(port)
    return machine.localhost(host, port, addresses, accepting, in_url=in_url)


def _faults(session: Session, found: Probe) -> Iterator[Finding]:
    """Yield a note about faults that still act, because their errors look like errors of a broken service."""
    if found.clock is None:
        return
    try:
        response = session.http.send("GET", f"{CONTROL}faults")
        faults = bounded_json.decoded(response.content)["faults"] if response.status_code == 200 else []
        acting = answers.acting(faults, found.now)
    except (CliError, *SHAPE_ERRORS):
        return
    if acting:
        names = shortened(visible(", ".join(acting)), 120)
        action = "`extcli fault list` shows what they do, `extcli fault clear` removes them"
        yield Finding("faults", Status.NOTE, f"the service fails on purpose, by faults: {names}", action)


def _secret(session: Session) -> Finding:
    resolver, check = session.resolver, "secret"
    try:
        found = secret_lookup.find_secret(resolver)
        if found is None:
            return Finding(check, Status.SKIPPED, "none is configured; only a sandbox issues tokens without one")
        warning = ""
        if isinstance(found.value, Path):
            resolver.checked_files.add(found.value)  # the finding has the warning
            warning = secret_lookup.permission_warning(found.value)
        return answers.secret(found.label, secret_lookup.secret(resolver) or b"", warning=warning)
    except CliError as error:
        return failed_finding(check, error)


def _token_and_polls(session: Session, found: Probe, poll: str | None) -> Iterator[Finding]:
    """Check the token, and with it the polls. A call that the service refuses with 401 is a failure of the token."""
    try:
        token = _token(session, found)
    except CliError as error:
        token = failed_finding("token", error)
    if token.status is not Status.OK or not found.ready:
        yield token
        yield Finding("polls", Status.SKIPPED, "needs a ready service and a valid token")
        return
    try:
        polls = _polls(session, found, poll)
    except ErrorResponse as error:
        if error.status == 401:
            token = failed_finding("token", error)
        polls = Finding("polls", Status.SKIPPED, f"{error.what}{f': {error.why}' if error.why else ''}", error.fix)
    except CliError as error:
        polls = failed_finding("polls", error)
    yield token
    yield polls


def _token(session: Session, found: Probe) -> Finding:
    """Judge the token that a backend command would send. Raises `CliError` if there is none."""
    credentials = session.credentials(BACKEND)
    if isinstance(credentials, SandboxTokens) and not found.ready:
        return Finding("token", Status.SKIPPED, "the sandbox issues it, once it is ready")
    inspection = tokens.inspect(credentials.token(), now=found.now)
    profile = _profile(session)
    production = found.kind is Kind.DEPLOYMENT or found.environment == "production"
    return answers.token(
        inspection.header,
        inspection.claims,
        origin=credentials.origin,
        now=found.now,
        production=production or bool(profile and profile.production),
    )


def _polls(session: Session, found: Probe, named: str | None) -> Finding:
    """Judge the polls of the first page, each by its oldest vote. Raises `CliError`."""
    service = session.service(BACKEND).probing()
    response = service.list_polls("0")
    try:
        listed = [each for each in bounded_json.decoded(response.content)["polls"] if each["count"]]
        chosen = [each for each in listed if named in (None, each["id"])]
        ages = [PollAge(each["id"], each["channel_id"], each["count"], each["latest"]) for each in chosen]
        for index, age in enumerate(ages[:_MAX_POLLS]):
            with service.read_vote_log(age.id, limit=1, channel=age.channel or None) as log:
                log.read()
                oldest = [int(vote["timestamp"]) for vote in bounded_json.decoded(log.content)["result"]]
            ages[index] = PollAge(age.id, age.channel, age.count, min([age.oldest, *oldest]))
    except SHAPE_ERRORS as error:
        raise UnexpectedResponse(response) from error
    return answers.polls(ages, now=found.now, named=named)


def _profile(session: Session) -> Profile | None:
    """Return the chosen profile, unless the URL from an option or a variable belongs to another service."""
    profile = session.resolver.profile
    return profile if profile and profile.is_of(session.resolver.url()) else None


def _skipped_finding(check: str) -> Finding:
    return Finding(check, Status.SKIPPED, "needs a service that answers")


def _is_name(host: str) -> bool:
    return host == "localhost" or host.endswith(".localhost")
