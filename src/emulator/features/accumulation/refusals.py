"""Refusals of accumulation."""

from __future__ import annotations

from emulator.errors import BadRequest, Facts, refusal


@refusal(BadRequest, "Body too large", "R3", "The document is too large for a buffer",
         "Send less, or keep the data in a store: `extcli state set`.")  # fmt: skip
def document_too_large(*, size: int, limit: int) -> Facts:
    detail = f"the body is {size} bytes as compact JSON; it must be under {limit}"
    return Facts(detail, f"{size} bytes of compact JSON", f"under {limit} bytes")
