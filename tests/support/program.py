"""The path of the installed program, and raw HTTP responses for it."""

from __future__ import annotations

import base64
import sys
from pathlib import Path

from support.service import SECRET

PROGRAM = Path(sys.executable).with_name("extcli")
SECRET_BASE64 = base64.b64encode(SECRET).decode()


def http_response(
    status: str, body: bytes | str = b"{}", content_type: str = "application/json", **fields: str
) -> bytes:
    """Return a raw HTTP response."""
    content = body.encode() if isinstance(body, str) else body
    head = {"content-type": content_type, "content-length": str(len(content)), **fields}
    lines = [f"HTTP/1.1 {status}", *(f"{name.replace('_', '-')}: {value}" for name, value in head.items())]
    return "\r\n".join([*lines, "", ""]).encode() + content
