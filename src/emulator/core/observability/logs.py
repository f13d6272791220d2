"""The log on standard error, as text or JSON, and the access log. Each line names its namespace and its request."""

from __future__ import annotations

import json
import logging
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec

from emulator.core.callers import Caller
from emulator.core.clock import monotonic
from emulator.core.errors import ConfigurationError
from emulator.core.observability.masking import exception_name, redact, safe_traceback
from emulator.core.observability.request_context import current

LONGEST_PATH = 200
_request_log = logging.getLogger("emulator.requests")
_audit_log = logging.getLogger("emulator.audit")
_SERVICE_LOGGER = "emulator"
_LEVEL_OFF = logging.CRITICAL + 1
_STANDARD_FIELDS = frozenset({*logging.makeLogRecord({}).__dict__, "message", "asctime", "taskName"})
_REPEAT_INTERVAL = 1.0
"""Seconds in which a record is not repeated."""
_MAX_REMEMBERED = 1_000
"""Distinct records remembered. The service has few, but a library may word each one differently."""


class OncePerSecond(logging.Filter):
    """Passes each warning and error of a namespace once a second, so that none floods the log.

    Two records count as equal if their logger, message and exception type are equal. During a request, messages are
    compared by their template. `left_out` counts the dropped ones in the next record.
    """

    def __init__(self, read: Callable[[], float] = monotonic) -> None:
        super().__init__()
        self._read = read
        self._lock = threading.Lock()
        self._passed: dict[tuple[object, ...], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING:
            return True
        kind = record.exc_info[0] if record.exc_info else None
        context = current()
        text = str(record.msg) if context.id else record.getMessage()
        key = (context.namespace, record.name, text, kind)
        with self._lock:
            now = self._read()
            at, left_out = self._passed.get(key, (now - _REPEAT_INTERVAL, 0))
            if now - at < _REPEAT_INTERVAL:
                self._passed[key] = (at, left_out + 1)
                return False
            if len(self._passed) >= _MAX_REMEMBERED:
                self._passed.clear()
            self._passed[key] = (now, 0)
        if left_out:
            record.left_out = left_out
        return True


class TextFormatter(logging.Formatter):
    """Formats a record as one line, then its traceback. No message can fake a line: see `_escape_unprintable`."""

    def format(self, record: logging.LogRecord) -> str:
        origin = " ".join(_namespace_and_request().values())
        where = f"{record.name} [{origin}]" if origin else record.name
        clean = _redacted_text(record.getMessage().rstrip())
        message = _escape_unprintable(clean, lambda found: found.encode("unicode_escape").decode())
        left_out = getattr(record, "left_out", 0)
        more = f" ({left_out} similar lines left out)" if left_out else ""
        line = f"{self.formatTime(record)} {record.levelname} {where}: {message}{more}"
        error = record.exc_info[1] if record.exc_info else None
        return line if error is None else f"{line}\n{safe_traceback(error)}"


class JsonFormatter(logging.Formatter):
    """Formats a record as a JSON object on one line, with its `extra` fields, in printable characters."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, Any] = {
            "time": time.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _redacted_text(record.getMessage().rstrip()),
        }
        line |= _namespace_and_request()
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            line["exception"] = {"type": exception_name(error), "traceback": safe_traceback(error)}
        extra = {name: value for name, value in record.__dict__.items() if name not in _STANDARD_FIELDS}
        for name, value in extra.items():
            line[name] = _redacted_text(value) if isinstance(value, str) else value
        text = msgspec.json.encode(line, enc_hook=str).decode()
        return _escape_unprintable(text, lambda found: json.dumps(found)[1:-1])


LOG_LEVELS = ("debug", "info", "warning", "error", "critical")
LOG_FORMATTERS: dict[str, type[logging.Formatter]] = {"text": TextFormatter, "json": JsonFormatter}


@dataclass(frozen=True)
class LogSettings:
    """The level and format of logs. Construction raises `ConfigurationError` for an unknown level or format."""

    level: str = "info"
    format: str = "text"
    requests: bool = False
    """Log a line for each answered request."""
    audit: bool = True
    """Log what operators and backends change for good (`audit.py`)."""

    def __post_init__(self) -> None:
        _check_choice("level", self.level.lower(), LOG_LEVELS)
        _check_choice("format", self.format, tuple(LOG_FORMATTERS))

    def configure_logging(self) -> None:
        """Configure the logging of this process. Everything goes to standard error: standard output has the URL."""
        level = logging.getLevelNamesMapping()[self.level.upper()]
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(LOG_FORMATTERS[self.format]())
        handler.addFilter(OncePerSecond())
        logging.basicConfig(handlers=[handler])
        # Below warning, libraries may quote requests and responses.
        logging.getLogger().setLevel(max(logging.WARNING, level))
        logging.getLogger(_SERVICE_LOGGER).setLevel(level)
        _request_log.setLevel(logging.INFO if self.requests else _LEVEL_OFF)
        _audit_log.setLevel(logging.INFO if self.audit else _LEVEL_OFF)
        # If a line cannot be written, logging would print its arguments.
        logging.raiseExceptions = False


def _check_choice(flag: str, value: str, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise ConfigurationError(f"--log-{flag}: {value!r} is not one of {', '.join(allowed)}")


def log_request(request: dict[str, str], status: int, seconds: float, size: int, caller: Caller | None) -> None:
    """Log one response, without its user. `request` holds JSON fields; `size` is the response in bytes."""
    fields: dict[str, object] = {**request, "status": status, "duration_ms": round(seconds * 1000, 3), "bytes": size}
    who = ""
    if caller is not None:
        fields |= {"client_id": caller.client_id, "role": str(caller.role), "channel": caller.channel_id}
        who = f", {caller.client_id} {caller.role} {caller.channel_id or '-'}"
    shown = " ".join(filter(None, request.values())) or "unreadable request"
    _request_log.info("%s: %s in %.1f ms, %s bytes%s", shown, status, seconds * 1000, size, who, extra=fields)


def _namespace_and_request() -> dict[str, str]:
    """Return the current namespace and request id, if known, without tokens: clients choose both texts."""
    context = current()
    named = {"namespace": context.namespace, "request_id": context.id}
    return {name: _redacted_text(value) for name, value in named.items() if value}


def _escape_unprintable(text: str, escape: Callable[[str], str]) -> str:
    """Escape control characters, and those that hide or reorder others on a terminal."""
    return text if text.isprintable() else "".join(each if each.isprintable() else escape(each) for each in text)


def _redacted_text(text: str) -> str:
    """Return a text without secrets and lone surrogates."""
    return redact(text).encode(errors="backslashreplace").decode()
