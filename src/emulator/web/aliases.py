"""Path normalization, and the alternative names that published clients use (ruling W1)."""

from __future__ import annotations

import re
from typing import Final

SERVICE: Final = "/v1/e/"

ALIASES: Final = {
    "config": "all_config",
    "config/extension": "extension_config",
    "config/channel": "channel_config",
    "broadcast_extension": "extension_broadcast",
    "codes/eligible": "codes/eligibility",
    "unauthed/pin": "pin",
    "gamelink/pin": "link/pin",
    "gamelink/token": "link/pin",
    "vote/vote_logs": "vote_logs",
    "user-info": "user_info",
    "trivia": "curated_poll",
}
_SLASHES = re.compile("//+")


def normalize_path(path: str) -> str:
    """Return the specification's spelling: collapse slashes, drop a trailing one, replace an alias."""
    if "//" in path:
        path = _SLASHES.sub("/", path)
    if path.endswith("/") and len(path) > 1:
        path = path[:-1]
    if path.startswith(SERVICE):
        name = path[len(SERVICE) :]
        return SERVICE + ALIASES.get(name, name)
    return path
