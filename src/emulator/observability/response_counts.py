"""The interface that counts a service's responses, and the conversion of exceptions to errors for clients."""

from __future__ import annotations

import logging
from typing import Protocol

from emulator.errors import EngineError, ServiceError, internal_error, storage_failed
from emulator.wire.refusals import too_deep


class Recorder(Protocol):
    """Counts requests and failures. No method blocks or raises.

    `seconds` is the time from the complete headers of a request to its response.
    """

    def answered(self, method: str, path: str, status: int, seconds: float) -> None:
        """Count a response of an endpoint. `path` is the declared path, without query."""

    def replied(self, action: str, status: int, seconds: float) -> None:
        """Count a reply over a socket; `action` is empty if unknown."""

    def refused(self, error: ServiceError) -> None:
        """Count an error response."""

    def storage(self, *, ok: bool) -> None:
        """Record whether an operation of the storage engine succeeded."""


_log = logging.getLogger("emulator")


def answerable(failure: Exception, where: str, recorder: Recorder) -> ServiceError:
    """Count an exception, log it if the client did not cause it, and return the error that the client gets.

    Call it while the exception is being handled. `where` names the endpoint or the action in the log.
    """
    if isinstance(failure, ServiceError):
        recorder.refused(failure)
        return failure
    if isinstance(failure, RecursionError):
        return too_deep(reason="Invalid body", what="the request")
    if isinstance(failure, EngineError):
        recorder.storage(ok=False)
        _log.error("storage failed in %s: %s", where, failure)
        return storage_failed()
    _log.exception("unexpected failure in %s", where)
    return internal_error()
