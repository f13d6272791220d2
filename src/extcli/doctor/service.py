"""Checks of a service: clock, token, polls and environment.

Texts of findings may quote a service, so they are made safe to print.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from enum import Enum, StrEnum, auto
from typing import TYPE_CHECKING, Any

from emulator.contract.shell import quoted
from extcli import bounded_json
from extcli import clock as system_clock
from extcli.api.call import CONTROL, SERVICE
from extcli.api.http import Http, Response
from extcli.errors import CliError, TooLarge, is_from_service, reason_of, status_line
from extcli.output import times
from extcli.output.columns import Column, listing
from extcli.output.sanitize import visible
from extcli.reading.shapes import problem_of

if TYPE_CHECKING:
    from rich.console import RenderableType


class Status(StrEnum):
    """The result of a check."""

    OK = "ok"
    NOTE = "note"
    """Works, but may surprise."""
    FAIL = "fail"
    SKIPPED = "skipped"
    """Nothing to check, or an earlier check failed."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found. The texts never contain a secret or token."""

    check: str
    status: Status
    meaning: str
    action: str = ""
    """What to do; empty if there is nothing to do."""


def failed_finding(check: str, error: CliError) -> Finding:
    """Return the finding of a failed check, with the texts of an error."""
    return Finding(check, Status.FAIL, f"{error.what}: {error.why}" if error.why else error.what, error.fix)


_STYLES = {Status.OK: "green", Status.NOTE: "yellow", Status.FAIL: "bold red", Status.SKIPPED: "dim"}


def _styled(status: str) -> RenderableType:
    from rich.text import Text

    return Text(status, _STYLES[Status(status)])


def _advice(finding: dict[str, Any]) -> str:
    return visible(finding["meaning"]) + (f"\n→ {visible(finding['action'])}" if finding["action"] else "")


FINDINGS = listing(
    "checks",
    Column("status", heading="", text=_styled),
    Column("check", text=str),
    Column("meaning", in_table=False),
    Column("", _advice, "meaning, and what to do", str, folds=True),
    Column("action", in_table=False),
)


MAX_SKEW = 2_000
"""The clock skew in ms above which `clock` fails."""
STALE = 3_600_000
"""The age in ms from which votes may be from an earlier run."""
_SHOWN = 3

NOT_OURS = "check --url (EXTCLI_URL), and which program listens there"


@dataclass(frozen=True, slots=True)
class EmulatorClock:
    """The clock of a sandbox: its time in Unix ms, and its offset from the system time in ms."""

    now: int
    offset: int
    frozen: bool


@dataclass(frozen=True, slots=True)
class PollAge:
    """A poll with votes."""

    id: str
    channel: str
    """Empty for a poll of no channel."""
    count: int
    oldest: int
    """Unix ms of the oldest vote that is known."""


def environment(
    name: str | None, *, profile: str | None, marked_production: bool, control_host: str | None = None
) -> Finding:
    """Judge sandbox or production against the profile.

    `name` is what `ready` reports, `None` for a deployment. `profile` is the chosen profile. `control_host` is the host
    name of the URL if the sandbox refuses its control API to it.
    """
    check = "environment"
    if name == "sandbox" and marked_production:
        meaning = f"a sandbox, which accepts any token, but profile {profile} is marked production"
        return Finding(check, Status.FAIL, meaning, f"correct the url or the production key of profile {profile}")
    if name == "sandbox" and control_host:
        meaning = f"sandbox; its control API (reset, clock, ns) does not answer to the host {control_host}"
        return Finding(check, Status.NOTE, meaning, f"start it with --control-host {control_host}, or use 127.0.0.1")
    if name == "sandbox":
        return Finding(check, Status.OK, "sandbox: it accepts any token, and its clock can be moved")
    kind = "production: it verifies tokens" if name else "a deployment: it verifies tokens"
    if profile and not marked_production:
        meaning = f"{kind}; profile {profile} is not marked production, so extcli does not ask before data is lost"
        return Finding(check, Status.NOTE, meaning, f"`extcli -p {profile} config set production true`")
    return Finding(check, Status.OK, kind)


def clock(date: int | None, before: int, after: int, emulator: EmulatorClock | None) -> Finding:
    """Judge the skew between the clocks of two machines, in Unix ms.

    `date` is the `Date` of a response, which is cut to seconds. This machine's clock showed `before` when the request
    was sent, and `after` when its response arrived.
    """
    check = "clock"
    if date is None:
        return Finding(check, Status.SKIPPED, "the response has no Date header")
    skew = date - after if date > after else min(date + 1_000 - before, 0)
    if abs(skew) > MAX_SKEW:
        direction = "ahead of" if skew > 0 else "behind"
        meaning = f"the service's machine is {times.span(skew)} {direction} this one: tokens expire early or late"
        return Finding(check, Status.FAIL, meaning, "set both clocks by NTP; `serve --leeway 5` tolerates 5 s")
    if emulator and (emulator.offset or emulator.frozen):
        sign = "-" if emulator.offset < 0 else "+"
        moved = f"moved by {sign}{times.span(emulator.offset)}" if emulator.offset else "not moved"
        meaning = (
            f"the machines agree; the emulator's clock is {moved}{', frozen' if emulator.frozen else ''}: no fault"
        )
        return Finding(check, Status.NOTE, meaning, "`extcli reset` sets it back, and deletes all data")
    return Finding(check, Status.OK, "the clocks of both machines agree within 2 s")


def secret(label: str, secret: bytes, *, warning: str = "") -> Finding:
    """Judge a decoded secret. `label` names where it was found; `warning` is about the permissions of its file."""
    if len(secret) < 32:
        meaning = f"{label} has {len(secret)} bytes; HS256 requires at least 32"
        return Finding("secret", Status.FAIL, meaning, "copy the whole secret from Twitch, or create a new one")
    if warning:
        meaning, _, action = warning.partition(": ")
        return Finding("secret", Status.NOTE, meaning, action)
    return Finding("secret", Status.OK, f"{label} is base64 of at least 32 bytes")


def token(header: Mapping[str, Any], claims: Mapping[str, Any], *, origin: str, now: int, production: bool) -> Finding:
    """Judge a token by its claims at `now` (Unix ms). `production` is whether the service verifies tokens."""
    status, meaning, action = Status.FAIL, "", "`extcli token inspect` explains it; get a new one"
    expires, starts = times.instant_of(claims.get("exp")), times.instant_of(claims.get("nbf"))
    if production and claims.get("allowed_stage") == "sandbox":
        meaning = f"{origin} is for the sandbox (allowed_stage), and production refuses it"
        action = "use a token of production, or set EXTCLI_SECRET_FILE"
    elif expires is not None and expires <= now:
        meaning = f"{origin} expired {times.span(now - expires)} ago"
    elif starts is not None and starts > now:
        meaning = f"{origin} is not valid for another {times.span(starts - now)} (nbf)"
    elif header.get("alg") != "HS256":
        meaning = f"{origin} is not signed with HS256, which the service requires"
    elif claims.get("use") == "refresh":
        meaning, action = f"{origin} is a refresh token, which no endpoint accepts", "use `extcli link token`"
    elif expires is None and production:
        meaning = f"{origin} has no exp, and production refuses it"
    else:
        until = f"valid for {times.span(expires - now)}" if expires is not None else "never expires"
        status, meaning, action = Status.OK, f"{origin}: role {claims.get('role', 'viewer')}, {until}", ""
    return Finding("token", status, meaning, action)


def polls(found: Sequence[PollAge], *, now: int, named: str | None) -> Finding:
    """Judge the age of votes at `now` (Unix ms). Old votes are a failure in the poll `named`, a note in others."""
    stale = sorted((each for each in found if now - each.oldest > STALE), key=lambda each: each.oldest)
    if not found:
        return Finding("polls", Status.OK, f"poll {named} has no votes" if named else "no poll has votes")
    if not stale:
        those = f"poll {named}" if named else f"{len(found)} poll{'s' * (len(found) != 1)}"
        return Finding("polls", Status.OK, f"the votes of {those} are less than an hour old")
    names = ", ".join(f"{each.id} ({times.span(now - each.oldest)})" for each in stale[:_SHOWN])
    more = f" and {len(stale) - _SHOWN} more" if len(stale) > _SHOWN else ""
    meaning = f"votes over an hour old, which may be from an earlier run: {names}{more}"
    first = stale[0]
    channel = f" --channel {quoted(first.channel)}" if first.channel else ""
    action = f"`extcli vote rm {quoted(first.id)}{channel}` deletes them; or use a new id for each run"
    return Finding("polls", Status.FAIL if named else Status.NOTE, meaning, action)


def acting(faults: Sequence[Mapping[str, Any]], now: int) -> list[str]:
    """Return the ids of the faults that can still act at `now`, in Unix ms."""
    return [
        str(each["id"]) for each in faults if each["left"] != 0 and (each["ends_at"] is None or each["ends_at"] > now)
    ]


class Kind(Enum):
    """What answers at the URL."""

    NOTHING = auto()
    EMULATOR = auto()
    DEPLOYMENT = auto()
    """The hosted backend, which has no `/_emulator`, or a service behind a proxy that denies it."""
    WRONG_PATH = auto()
    """An extension service, but the URL has a path that it does not serve, such as `/v1/e`."""
    OTHER = auto()
    """Another program."""


@dataclass(frozen=True, slots=True)
class Probe:
    """What answers at the URL."""

    kind: Kind
    error: CliError | None = None
    """Why nothing answers."""
    reason: str = ""
    """Why it is not ready, what another program answered, or how a proxy refuses `/_emulator`."""
    ready: bool = False
    environment: str | None = None
    """`sandbox` or `production`, if an emulator that is ready reports it."""
    version: str = ""
    date: int | None = None
    """The `Date` of its response in Unix ms, cut to seconds."""
    before: int = 0
    """This machine's time when the request was sent."""
    after: int = 0
    """This machine's time when the response had arrived."""
    clock: EmulatorClock | None = None
    """The clock, which only a sandbox shows."""
    refuses_control: bool = False
    """Whether it has a control API, but not for this host name."""

    @property
    def is_ours(self) -> bool:
        """Whether the program at the URL is an extension service."""
        return self.kind in (Kind.EMULATOR, Kind.DEPLOYMENT)

    @property
    def now(self) -> int:
        """The service's time in Unix ms, or this machine's."""
        return self.clock.now if self.clock else system_clock.now()


def probe(http: Http) -> Probe:
    """Request the service's readiness, and determine from the response what kind of service it is."""
    before = system_clock.now()
    try:
        response = http.send("GET", f"{CONTROL}ready")
        after = system_clock.now()
        document, date = bounded_json.members(response.content), _date_header(response)
        if response.status_code == 200 and document.get("status") == "ready" and "environment" in document:
            own_clock, refuses = _clock(http)
            return Probe(
                Kind.EMULATOR,
                ready=True,
                environment=str(document["environment"]),
                version=str(document.get("version", "")),
                date=date,
                before=before,
                after=after,
                clock=own_clock,
                refuses_control=refuses,
            )
        reason = f"{status_line(response.status_code)}: {reason_of(response.content)}"
        if response.status_code == 503 and is_from_service(response.content):
            return Probe(Kind.EMULATOR, reason=reason, date=date, before=before, after=after)
        if _is_deployment(http):
            closed = "" if response.status_code == 404 else reason
            return Probe(Kind.DEPLOYMENT, reason=closed, ready=True, date=date, before=before, after=after)
        return Probe(Kind.WRONG_PATH if is_from_service(response.content) else Kind.OTHER, reason=reason)
    except TooLarge as error:
        return Probe(Kind.OTHER, reason=error.why)
    except CliError as error:
        return Probe(Kind.NOTHING, error=error)


def _clock(http: Http) -> tuple[EmulatorClock | None, bool]:
    """Return the emulator's clock, and whether it refuses to show it to this host name."""
    response = http.send("GET", f"{CONTROL}clock")
    document = bounded_json.members(response.content)
    if response.status_code != 200 or problem_of(document, {"now": int, "offset?": int}):
        return None, response.status_code == 403
    return EmulatorClock(document["now"], int(document.get("offset", 0)), bool(document.get("frozen"))), False


def _is_deployment(http: Http) -> bool:
    """Return whether the server refuses a call without credentials as an extension service does."""
    response = http.send("GET", f"{SERVICE}user_info")
    return response.status_code == 401 and is_from_service(response.content)


def _date_header(response: Response) -> int | None:
    try:
        return int(parsedate_to_datetime(response.headers["date"]).timestamp()) * 1_000
    except (KeyError, ValueError, OverflowError):
        return None
