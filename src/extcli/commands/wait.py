"""`extcli wait`: blocks until something is so."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from extcli import clock
from extcli.api.client import Service
from extcli.api.http import Answer
from extcli.cli.shared_options import shared
from extcli.errors import CliError, ErrorAnswer, ExpectationFailed, Unreachable, UsageError, is_from_service
from extcli.session import Session

_PAUSE = 0.1
_STRANGER = "check that --url (EXTCLI_URL) is an extension service"


@shared
def wait(
    session: Session,
    ready: Annotated[bool, typer.Option("--ready", help="Until the service answers the next request.")] = False,
) -> None:
    """Wait until the service is ready, at most --timeout (30s unless told).

    Exit code 3 if nobody ever answered, 7 if somebody did but was not ready,
    or is no extension service.

    Example: extcli serve & extcli wait --ready --timeout 5s
    """
    if not ready:
        raise UsageError("nothing to wait for", fix="extcli wait --ready")
    deadline = clock.elapsed() + session.resolver.timeout()
    answered: ExpectationFailed | None = None
    while True:
        try:
            why, fix = _what_is_missing(session, deadline)
            if not why:
                return
            answered = ExpectationFailed(
                f"{session.resolver.url()} answers, but was not ready in time", why=why, fix=fix
            )
            failure: CliError = answered
        except Unreachable as error:
            failure = answered or error
        if clock.elapsed() + _PAUSE > deadline:
            raise failure
        clock.sleep(_PAUSE)


def _service(session: Session, deadline: float) -> Service:
    """The service, for one request in the time that is left: a whole timeout each would make the wait longer."""
    session.http.allow(max(deadline - clock.elapsed(), _PAUSE))
    return session.open_service()


def _what_is_missing(session: Session, deadline: float) -> tuple[str, str]:
    """Why the service is not ready, nothing if it is, and what to do about it."""
    try:
        answer = _service(session, deadline).is_ready()
        return ("", "") if _object(answer).get("status") == "ready" else ("its answer is no service's", _STRANGER)
    except ErrorAnswer as error:
        if error.status == 404:
            return _what_is_missing_in_a_deployment(session, deadline)
        return error.why or error.what, "" if error.status >= 500 else _STRANGER


def _what_is_missing_in_a_deployment(session: Session, deadline: float) -> tuple[str, str]:
    """A deployment has no readiness path, so it is known by how it asks for credentials."""
    try:
        answer = _service(session, deadline).read_user_info()
        return ("", "") if _object(answer) else ("its answer is no service's", _STRANGER)
    except ErrorAnswer as error:
        if error.status == 401 and is_from_service(error.body):
            return "", ""
        return error.why or error.what, _STRANGER


def _object(answer: Answer) -> dict[str, Any]:
    try:
        document = json.loads(answer.content)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}
