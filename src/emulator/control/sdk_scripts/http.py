"""`/_emulator/sdk.js` and `/_emulator/platform-helper.js`, in sandbox only, for pages of any origin."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

from emulator.http.endpoint import Audience, Call, JavaScript, Text, endpoint
from emulator.parity.service import excuse

_SCRIPT_TYPE = "text/javascript"  # Litestar adds the charset


@endpoint("GET", "/_emulator/sdk.js", audience=Audience.PUBLIC, answer=JavaScript)
async def read_sdk_script(_: object, call: Call) -> Text:
    """Get the script that connects the published SDK to this service; load it before the SDK."""
    excuse()
    return Text(_read("sdk.js"), _SCRIPT_TYPE)


@endpoint("GET", "/_emulator/platform-helper.js", audience=Audience.PUBLIC, answer=JavaScript)
async def read_platform_helper(_: object, call: Call) -> Text:
    """Get the script that replaces the platform's helper."""
    excuse()
    return Text(_read("platform-helper.js"), _SCRIPT_TYPE)


@cache
def _read(name: str) -> bytes:
    """Return the content of a script, after the parts that both scripts share."""
    folder = Path(__file__).parent
    return b"".join((folder / part).read_bytes() for part in ("network.js", "files.js", "identity.js", name))


endpoints: Final = (read_sdk_script, read_platform_helper)
