"""Events that an emulator on this machine sent while `extcli listen` waited for others."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from urllib.parse import urlencode, urlsplit

from extcli import bounded_json
from extcli.api.call import CONTROL
from extcli.api.http import is_loopback
from extcli.errors import CliError
from extcli.session import Session

_MOST = 1_000
"""Deliveries that are looked at."""
_NAMED = 5


def other_events(session: Session, wanted: Sequence[str], since: int) -> str:
    """Return which other events were sent since `since`, in Unix ms; empty if none were, or if it is not known.

    Only a service on this machine is asked, because no deployment has a journal.
    """
    if not wanted or not is_loopback(urlsplit(session.http.url).hostname or ""):
        return ""
    query = urlencode({"kind": "delivery", "limit": _MOST, "client_id": session.resolver.client_id()})
    try:
        entries = bounded_json.decoded(session.http.send("GET", f"{CONTROL}journal?{query}").content)["entries"]
        sent = [each["endpoint"] for each in entries if each["system_at"] >= since]
    except (CliError, KeyError, TypeError, ValueError):  # not a sandbox, or too slow
        return ""
    names = dict.fromkeys(name for kind, _, name in (each.partition(":") for each in sent) if kind == "event")
    others = [name for name in names if name not in wanted]
    if near := [found for each in wanted for found in get_close_matches(each, others, 1, 0.75)]:
        return f"{near[0]} was sent meanwhile; did you mean that?"
    return f"other events were sent meanwhile: {', '.join(others[:_NAMED])}" if others else ""
