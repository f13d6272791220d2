"""Whether faults may be the reason why a connection to a sandbox on this machine was lost."""

from __future__ import annotations

from urllib.parse import urlsplit

from extcli import bounded_json
from extcli.api.call import CONTROL
from extcli.api.http import Http, is_loopback
from extcli.errors import CliError

_SECONDS = 0.25
"""The timeout of the head of the answer, and again of its body. To connect on this machine takes no time."""


def suspicion(url: str) -> str:
    """Return that faults have acted, and how to see them; empty if none have, or if the service does not say."""
    if not is_loopback(urlsplit(url).hostname or ""):
        return ""
    http = Http(url, timeout=_SECONDS, trace=None)
    try:
        faults = bounded_json.decoded(http.send("GET", f"{CONTROL}faults").content)["faults"]
        count = sum(each["hits"] > 0 for each in faults)
    except (CliError, KeyError, TypeError, ValueError):  # not a sandbox, or too slow
        return ""
    finally:
        http.close()
    if not count:
        return ""
    return f"perhaps on purpose: {count} fault{'s have' if count > 1 else ' has'} acted; see `extcli fault list`"
