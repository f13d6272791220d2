"""What the rule of 4 kb makes of a message, worked out without asking anybody."""

from __future__ import annotations

import zlib
from typing import Any

from extcli.client import encoded

LARGEST = 4_096
"""Bytes of a message, as compact JSON or else compressed and in base64."""
PLAIN, COMPRESSED, REFUSED = "plain", "compressed", "refused"


def size_of(data: object) -> dict[str, Any]:
    """How large a message is, how large it is compressed, and how it would be sent."""
    text = encoded(data)
    squeezed = _in_base64(len(zlib.compress(text, 9)))
    sent = PLAIN if len(text) <= LARGEST else COMPRESSED if squeezed <= LARGEST else REFUSED
    return {"bytes": len(text), "compressed": squeezed, "limit": LARGEST, "sent": sent}


def _in_base64(size: int) -> int:
    return -(-size // 3) * 4
