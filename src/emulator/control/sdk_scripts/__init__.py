"""Scripts for pages of any origin: they connect the published SDK to this service, and replace Twitch's helper."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from emulator.core.parity import UNJUDGED, overrule_verdict
from emulator.http.endpoint import Audience, Call, endpoint

_SCRIPT_TYPE = b"text/javascript"


@endpoint("GET", "/_emulator/sdk.js", audience=Audience.PUBLIC, content_type=_SCRIPT_TYPE)
async def read_sdk_script(_: object, call: Call) -> bytes:
    """Get the script that connects the published SDK to this service; load it before the SDK."""
    overrule_verdict(UNJUDGED)
    return _read("sdk.js")


@endpoint("GET", "/_emulator/platform-helper.js", audience=Audience.PUBLIC, content_type=_SCRIPT_TYPE)
async def read_platform_helper(_: object, call: Call) -> bytes:
    """Get the script that replaces Twitch's helper."""
    overrule_verdict(UNJUDGED)
    return _read("platform-helper.js")


@cache
def _read(name: str) -> bytes:
    """Return the content of a script, after the parts that both scripts share."""
    parts = ("network.js", "files.js", "console.js", "identity.js", name)
    return b"".join((Path(__file__).parent / part).read_bytes() for part in parts)
