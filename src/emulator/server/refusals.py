"""What the server refuses before a request has arrived."""

from __future__ import annotations

from typing import Final

from emulator.errors import BadRequest, HeadTooLarge, RequestTimeout
from emulator.refusals import Facts, refusal

_RULE: Final = "gaps: Limits"
_TOO_LARGE: Final = "Headers too large"


@refusal(BadRequest, "Duplicate header", rule=_RULE, title="A header occurs twice", next_step="Send {header} once.")
def duplicate_header(*, header: str) -> Facts:
    return Facts(f"{header}: the header occurs more than once", f"several {header} headers", f"one {header} header")


@refusal(HeadTooLarge, _TOO_LARGE, _RULE, "The headers are too large", "Send fewer or shorter headers and cookies.")
def head_too_large(*, part: str, limit: int) -> Facts:
    return Facts(f"{part} exceed {limit} bytes", f"{part} over {limit} bytes", f"at most {limit} bytes")


@refusal(HeadTooLarge, _TOO_LARGE, _RULE, "The request has too many headers", "Send at most {limit} headers.")
def too_many_headers(*, count: int, limit: int) -> Facts:
    return Facts(f"{count} headers, limit {limit}", f"{count} headers", f"at most {limit} headers")


@refusal(RequestTimeout, "Request timeout", _RULE, "The request did not arrive in time",
         "Send the body faster, or raise --request-timeout of `extcli serve`.")  # fmt: skip
def request_timeout(*, seconds: str) -> Facts:
    detail = f"the request did not arrive within {seconds} seconds"
    return Facts(detail, f"an incomplete request after {seconds} s", f"it within {seconds} s, plus 1 s per KiB")
