"""`/_emulator/sdk.js` and `/_emulator/platform-helper.js`: sandbox only, for pages of every origin."""

from __future__ import annotations

from typing import Final

from emulator.features.sdk_scripts.service import Scripts
from emulator.web.call import Call
from emulator.web.endpoint import Audience, JavaScript, Text, endpoint

_SCRIPT_TYPE = "text/javascript"  # Litestar adds the charset


@endpoint("GET", "/_emulator/sdk.js", audience=Audience.PUBLIC, answer=JavaScript)
async def read_sdk_script(scripts: Scripts, call: Call) -> Text:
    """Load before the published SDK: its calls and events then go to this service."""
    return Text(scripts.sdk(), _SCRIPT_TYPE)


@endpoint("GET", "/_emulator/platform-helper.js", audience=Audience.PUBLIC, answer=JavaScript)
async def read_platform_helper(scripts: Scripts, call: Call) -> Text:
    """Load in a frame in place of the platform's helper script."""
    return Text(scripts.platform_helper(), _SCRIPT_TYPE)


endpoints: Final = (read_sdk_script, read_platform_helper)
