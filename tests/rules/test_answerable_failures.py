"""What clients, the log and the metrics get of an exception in an endpoint or an action."""

from __future__ import annotations

import logging

import pytest

from emulator.control.operation.metrics import Metrics
from emulator.errors import EngineError, Forbidden, ServiceError, TooManyRequests
from emulator.observability.response_counts import answerable

INTERNAL = (500, "Internal Service Error", "an internal error prevented processing")
UNAVAILABLE = (503, "Service Unavailable", "storage is unavailable; try again")
NESTED = (400, "Invalid body", "the request is nested too deeply")
CASES = {
    "a bug": (ValueError("a text of a client"), INTERNAL, ["unexpected failure in POST /v1/e/vote"]),
    "storage that fails": (EngineError("disk full"), UNAVAILABLE, ["storage failed in POST /v1/e/vote: disk full"]),
    "endless nesting": (RecursionError("maximum depth"), NESTED, []),
    "a refusal": (Forbidden("no", "why not"), (403, "no", "why not"), []),
}


def handled(failure: Exception, recorder: Metrics) -> ServiceError:
    """Return the error that the client gets, as from an `except` clause."""
    try:
        raise failure
    except Exception as caught:
        return answerable(caught, "POST /v1/e/vote", recorder)


@pytest.fixture
def recorder() -> Metrics:
    return Metrics("sandbox", "1.0", sockets=lambda: pytest.fail("not read"), held=lambda: 0)


@pytest.mark.parametrize(("failure", "expected", "logged"), CASES.values(), ids=CASES)
def test_a_failure_becomes_the_error_of_its_kind_and_a_line_in_the_log(
    failure: Exception,
    expected: tuple[int, str, str],
    logged: list[str],
    recorder: Metrics,
    caplog: pytest.LogCaptureFixture,
):
    error = handled(failure, recorder)

    assert expected == (error.status, error.reason, error.detail)
    assert logged == [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]


def test_storage_failures_and_limits_are_counted(recorder: Metrics):
    for failure in (EngineError("disk full"), TooManyRequests("Too many requests"), ValueError("a bug")):
        handled(failure, recorder)

    assert (1, {"Too many requests": 1}) == (recorder.storage_failures, recorder.limited)
