"""What the rule of 4 kb makes of a message, worked out without asking anybody."""

from __future__ import annotations

import zlib
from typing import Any

from extcli.api.client import encoded

LARGEST = 4_096
"""Bytes of a message, as compact JSON or else compressed and in base64."""
LARGEST_PLAIN = 512 * 1024
"""Bytes of compact JSON that `extcli serve` takes, however well they can be compressed: games are sent them whole."""
LARGEST_BODY = 64 * 1024
"""Bytes of a request's body, unless the service is told otherwise; messages to the socket may be larger."""
PLAIN, COMPRESSED, REFUSED = "plain", "compressed", "refused"


def size_of(data: object) -> dict[str, Any]:
    """How large a message is, how large it is compressed, and how it would be sent."""
    text = encoded(data)
    squeezed = _in_base64(len(zlib.compress(text, 9)))
    can_be_sent = squeezed <= LARGEST and len(text) <= LARGEST_PLAIN
    sent = PLAIN if len(text) <= LARGEST else COMPRESSED if can_be_sent else REFUSED
    return {"bytes": len(text), "compressed": squeezed, "limit": LARGEST, "sent": sent}


def _in_base64(size: int) -> int:
    return -(-size // 3) * 4
