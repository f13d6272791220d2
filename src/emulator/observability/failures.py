"""Turns exceptions of endpoints and actions into the errors that clients get."""

from __future__ import annotations

import logging

from emulator.errors import EngineError, ServiceError
from emulator.observability.recorder import Recorder
from emulator.refusals import internal_error, storage_failed
from emulator.wire.refusals import too_deep

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
