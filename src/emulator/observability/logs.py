"""The log: lines on standard error, of text or of JSON, each with the id of the request that it is about."""

from __future__ import annotations

import logging
import re
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from emulator.errors import ConfigurationError
from emulator.observability.access_log import REQUESTS
from emulator.observability.dedup import OncePerSecond
from emulator.observability.redaction import discreet, kind_of, way_of
from emulator.observability.request_context import current

_OWN: Final = "emulator"
_NEVER: Final = logging.CRITICAL + 1
_CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_USUAL: Final = frozenset({*logging.makeLogRecord({}).__dict__, "message", "asctime", "taskName", "request_id"})


class _OfRequest(logging.Filter):
    """Notes the request that is being worked on, where a line is written."""

    def filter(self, record: logging.LogRecord) -> bool:
        context = current.get()
        record.request_id = context.id if context else ""
        return True


class Text(logging.Formatter):
    """A line for people; lines of a traceback follow it. Nothing in a message can look like a line of its own."""

    def format(self, record: logging.LogRecord) -> str:
        """One record."""
        request_id = getattr(record, "request_id", "")
        where = f"{record.name} [{request_id}]" if request_id else record.name
        message = _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), _message_of(record))
        left_out = getattr(record, "left_out", 0)
        more = f" ({left_out} more like this were left out)" if left_out else ""
        line = f"{self.formatTime(record)} {record.levelname} {where}: {message}{more}"
        error = _error_of(record)
        return line if error is None else f"{line}\n{way_of(error)}"


class Json(logging.Formatter):
    """One object per line: what a line of text has, and the `extra` fields by their names."""

    def format(self, record: logging.LogRecord) -> str:
        """One record."""
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, Any] = {
            "time": time.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _message_of(record).encode(errors="backslashreplace").decode(),
        }
        if request_id := getattr(record, "request_id", ""):
            line["request_id"] = request_id
        error = _error_of(record)
        if error is not None:
            line["exception"] = {"type": kind_of(error), "traceback": way_of(error)}
        line |= {name: _shown(value) for name, value in record.__dict__.items() if name not in _USUAL}
        return msgspec.json.encode(line, enc_hook=str).decode()


LEVELS: Final = ("debug", "info", "warning", "error", "critical")
FORMATS: Final[dict[str, type[logging.Formatter]]] = {"text": Text, "json": Json}


@dataclass(frozen=True)
class Logs:
    """How much is logged, and how; wrong words raise `ConfigurationError` on construction."""

    level: str = "info"
    format: str = "text"
    requests: bool = False
    """Whether there is a line for each answered request."""

    def __post_init__(self) -> None:
        for flag, word, known in (("level", self.level.lower(), LEVELS), ("format", self.format, tuple(FORMATS))):
            if word not in known:
                raise ConfigurationError(f"--log-{flag}: {word!r} is none of {', '.join(known)}")

    def begin(self) -> None:
        """Log this way in this process. Standard output is left alone: it carries one line, the URL."""
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(FORMATS[self.format]())
        handler.addFilter(_OfRequest())
        handler.addFilter(OncePerSecond())
        logging.basicConfig(handlers=[handler])
        # What libraries have to say below a warning may quote what passes through them.
        logging.getLogger().setLevel(max(logging.WARNING, self._number))
        logging.getLogger(_OWN).setLevel(self._number)
        logging.getLogger(REQUESTS).setLevel(logging.INFO if self.requests else _NEVER)
        # A line that cannot be written would be shown with all that it was made of.
        logging.raiseExceptions = False

    @property
    def _number(self) -> int:
        return logging.getLevelNamesMapping()[self.level.upper()]


def _message_of(record: logging.LogRecord) -> str:
    return discreet(record.getMessage().rstrip())


def _shown(value: object) -> object:
    return discreet(value).encode(errors="backslashreplace").decode() if isinstance(value, str) else value


def _error_of(record: logging.LogRecord) -> BaseException | None:
    return record.exc_info[1] if record.exc_info else None
