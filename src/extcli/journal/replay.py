"""Repeats a request of the journal as its caller."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from extcli.api.call import SERVICE, encoded
from extcli.errors import CliError, UsageError
from extcli.journal.reading import find
from extcli.reading.shapes import document_of
from extcli.session import Session

Json = dict[str, Any]


def call_of(entry: Mapping[str, Any]) -> Json:
    """Return the body of `POST /_emulator/call` that repeats a request. Raises `UsageError` if that is impossible."""
    what = f"{entry['id']} cannot be repeated"
    body, caller = entry["request"], entry["caller"]
    if entry["kind"] != "request" or not entry["path"].startswith(SERVICE):
        raise UsageError(what, why=f"it is no request below {SERVICE}")
    if caller is None:
        raise UsageError(what, why="its caller is unknown: it had no token, or a refused one")
    if body["is_cut"]:
        raise UsageError(what, why=f"the journal keeps only the beginning of its {body['size']:,} bytes")
    if body["is_hidden"] or "[hidden]" in entry["path"]:
        raise UsageError(what, why="it has a secret, which the journal does not keep")
    if body["encoding"] != "text":
        raise UsageError(what, why="its body is not UTF-8")
    return {
        "method": entry["endpoint"].partition(" ")[0],
        "path": entry["path"],
        "body": body["text"] if body["size"] else None,
        "client_id": caller["client_id"],
        "role": caller["role"],
        "user_id": caller["user_id"] or "",
        "channel_id": caller["channel_id"] or "",
        "opaque_user_id": _opaque_id(caller),
    }


def _opaque_id(caller: Mapping[str, Any]) -> str:
    """Return the opaque id that a token has to name; empty if the service derives it."""
    user, opaque = caller["user_id"], str(caller["opaque_id"])
    derived = (user if user.startswith("U") else f"U{user}") if user else f"A-{caller['role']}"
    return "" if opaque == derived else opaque


_ANSWER = {"status": int, "request_id": str}


def replay(session: Session, entry: Mapping[str, Any], times: int) -> Json:
    """Repeat a request so many times, and compare each answer with the first one. Raises `UsageError`."""
    call = encoded(call_of(entry))
    control = session.control()
    replays = []
    for _ in range(times):
        answer = document_of(control.call_as(call), _ANSWER)
        replays.append(
            {
                "before": entry["status"],
                "status": answer["status"],
                "same_body": _is_same(session, entry, answer["request_id"]),
                "request_id": answer["request_id"],
            }
        )
    return {"id": entry["id"], "replays": replays}


def _is_same(session: Session, entry: Mapping[str, Any], id: str) -> bool | None:
    """Compare the answers as the journal has them, both without secrets; `None` if it lacks one of them."""
    if not entry["response"]["size"]:
        return None
    try:
        again = find(session, id)
    except CliError:
        return None
    return bool(again["response"] == entry["response"])
