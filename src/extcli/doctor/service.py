"""What a check of `doctor` finds, and what answers at a URL."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from enum import Enum, StrEnum, auto

from extcli import bounded_json, clock
from extcli.api.call import CONTROL, SERVICE
from extcli.api.http import Http, Response
from extcli.errors import CliError, TooLarge, UnexpectedResponse, is_from_service, reason_of, status_line
from extcli.output.columns import Column, listing
from extcli.output.printer import RenderableType
from extcli.output.sanitize import visible
from extcli.reading import Json, document_of


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
    """What a check found. The texts never contain a secret or token, but may quote a service."""

    check: str
    status: Status
    meaning: str
    action: str = ""
    """What to do; empty if there is nothing to do."""


_STYLES = {Status.OK: "good", Status.NOTE: "warning", Status.FAIL: "bad", Status.SKIPPED: "quiet"}


def _colored_status(status: str) -> RenderableType:
    from rich.text import Text

    return Text(status, _STYLES[Status(status)])


def _meaning_and_action(finding: Json) -> str:
    return visible(finding["meaning"]) + (f"\n→ {visible(finding['action'])}" if finding["action"] else "")


FINDINGS = listing(
    "checks",
    Column("status", heading="", text=_colored_status),
    Column("check"),
    Column("meaning", in_table=False),
    Column("", _meaning_and_action, "meaning, and what to do", str),
    Column("action", in_table=False),
)


CHECK_URL = "check --url (EXTCLI_URL), and which program listens there"


class ServiceKind(Enum):
    """What answers at the URL."""

    NOTHING = auto()
    EMULATOR = auto()
    DEPLOYMENT = auto()
    """The hosted backend, which has no `/_emulator`, or a service behind a proxy that denies it."""
    WRONG_PATH = auto()
    """An extension service, but the URL has a path that it does not serve, such as `/v1/e`."""
    OTHER = auto()
    """Another program."""


@dataclass(slots=True)
class Probe:
    """What answers at the URL."""

    kind: ServiceKind
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
    clock: Json | None = None
    """The response of `/_emulator/clock`, which only a sandbox has, and only for hosts that may use its control API."""

    @property
    def is_extension_service(self) -> bool:
        """Whether the program at the URL is an extension service."""
        return self.kind in (ServiceKind.EMULATOR, ServiceKind.DEPLOYMENT)

    @property
    def now(self) -> int:
        """The service's time in Unix ms, or this machine's."""
        return self.clock["now"] if self.clock else clock.now()


def probe(http: Http) -> Probe:
    """Request the service's readiness, and determine from the response what kind of service it is."""
    found = Probe(ServiceKind.NOTHING, before=clock.now())
    try:
        response = http.send("GET", f"{CONTROL}ready")
        found.after, found.date = clock.now(), _date_in_ms(response)
        _classify_service(found, response, http)
    except TooLarge as error:
        found.kind, found.reason = ServiceKind.OTHER, error.why
    except CliError as error:
        found.kind, found.error = ServiceKind.NOTHING, error
    return found


def _classify_service(found: Probe, response: Response, http: Http) -> None:
    document, is_error = bounded_json.members(response.content), is_from_service(response.content)
    found.reason = f"{status_line(response.status_code)}: {reason_of(response.content)}"
    if response.status_code == 200 and document.get("status") == "ready" and "environment" in document:
        found.kind, found.ready, found.reason = ServiceKind.EMULATOR, True, ""
        found.environment, found.version = str(document["environment"]), str(document.get("version", ""))
        found.clock = _read_clock(http)
    elif response.status_code == 503 and is_error:
        found.kind = ServiceKind.EMULATOR
    elif _is_deployment(http):
        found.kind, found.ready = ServiceKind.DEPLOYMENT, True
        found.reason = "" if response.status_code == 404 else found.reason
    else:
        found.kind = ServiceKind.WRONG_PATH if is_error else ServiceKind.OTHER


def _read_clock(http: Http) -> Json | None:
    """Return the emulator's clock, unless it refuses to show it, as to another host name."""
    with suppress(UnexpectedResponse):
        return dict(document_of(http.send("GET", f"{CONTROL}clock"), {"now": int, "offset": int, "frozen": bool}))
    return None


def _is_deployment(http: Http) -> bool:
    """Return whether the server refuses a call without credentials as an extension service does."""
    response = http.send("GET", f"{SERVICE}user_info")
    return response.status_code == 401 and is_from_service(response.content)


def _date_in_ms(response: Response) -> int | None:
    with suppress(KeyError, ValueError, OverflowError):
        return int(parsedate_to_datetime(response.headers["date"]).timestamp()) * 1_000
    return None
