"""Finds out what answers at a URL. Sends no credentials and changes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from enum import Enum, auto

from extcli import bounded_json, clock
from extcli.api.call import CONTROL, SERVICE
from extcli.api.http import Answer, Http
from extcli.doctor.service_rules import EmulatorClock
from extcli.errors import CliError, TooLarge, is_from_service, reason_of, status_line
from extcli.reading.shapes import problem_of


class Kind(Enum):
    """What answers at the URL."""

    NOTHING = auto()
    EMULATOR = auto()
    DEPLOYMENT = auto()
    """The hosted backend, which has no `/_emulator`."""
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
    """Why it is not ready, or what another program answered."""
    ready: bool = False
    environment: str | None = None
    """`sandbox` or `production`, if an emulator that is ready reports it."""
    version: str = ""
    date: int | None = None
    """The `Date` of its answer in Unix ms, cut to seconds."""
    before: int = 0
    """This machine's time when the request was sent."""
    after: int = 0
    """This machine's time when the answer had arrived."""
    clock: EmulatorClock | None = None
    """The clock, which only a sandbox shows."""
    refuses_control: bool = False
    """Whether it has a control API, but not for this host name."""

    @property
    def is_ours(self) -> bool:
        """Whether it is an extension service."""
        return self.kind in (Kind.EMULATOR, Kind.DEPLOYMENT)

    @property
    def now(self) -> int:
        """The service's time in Unix ms, or this machine's."""
        return self.clock.now if self.clock else clock.now()


def probe(http: Http) -> Probe:
    """Request the readiness, and tell from the answer what the service is."""
    before = clock.now()
    try:
        answer = http.send("GET", f"{CONTROL}ready")
        after = clock.now()
        document, date = bounded_json.members(answer.content), _date(answer)
        if answer.status_code == 200 and document.get("status") == "ready" and "environment" in document:
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
        reason = f"{status_line(answer.status_code)}: {reason_of(answer.content)}"
        if answer.status_code == 503 and is_from_service(answer.content):
            return Probe(Kind.EMULATOR, reason=reason, date=date, before=before, after=after)
        if answer.status_code == 404 and _is_deployment(http):
            return Probe(Kind.DEPLOYMENT, ready=True, date=date, before=before, after=after)
        return Probe(Kind.WRONG_PATH if is_from_service(answer.content) else Kind.OTHER, reason=reason)
    except TooLarge as error:
        return Probe(Kind.OTHER, reason=error.why)
    except CliError as error:
        return Probe(Kind.NOTHING, error=error)


def _clock(http: Http) -> tuple[EmulatorClock | None, bool]:
    """Return the emulator's clock, and whether it refuses to show it to this host name."""
    answer = http.send("GET", f"{CONTROL}clock")
    document = bounded_json.members(answer.content)
    if answer.status_code != 200 or problem_of(document, {"now": int, "offset?": int}):
        return None, answer.status_code == 403
    return EmulatorClock(document["now"], int(document.get("offset", 0)), bool(document.get("frozen"))), False


def _is_deployment(http: Http) -> bool:
    """Return whether it refuses a call without credentials as an extension service does."""
    answer = http.send("GET", f"{SERVICE}user_info")
    return answer.status_code == 401 and is_from_service(answer.content)


def _date(answer: Answer) -> int | None:
    try:
        return int(parsedate_to_datetime(answer.headers["date"]).timestamp()) * 1_000
    except (KeyError, ValueError, OverflowError):
        return None
