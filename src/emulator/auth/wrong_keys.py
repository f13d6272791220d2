"""Keys that sign tokens by mistake: a text of the secret, or what another decoding makes of it. For hints."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Iterable, Iterator

_AROUND = {
    (b"", b""): "",
    **{(b"", end): " and a line break" for end in (b"\n", b"\r\n", b"\r", b"\n\n", b" \n")},
    **{(b"", end): " and white space" for end in (b" ", b"  ", b"\t")},
    (b" ", b""): " after a space",
    **{(b"\xef\xbb\xbf", end): " after a byte order mark" for end in (b"", b"\n", b"\r\n")},
    **{(each, each + end): " in quotes" for each in (b'"', b"'") for end in (b"", b"\n", b"\r\n")},
}
"""What may stand around a text of the secret, in words."""


def wrong_key_of(token: str, secrets: Iterable[bytes]) -> str:
    """Return in words which wrong key signed a token, and what to do; empty if none of these did."""
    signed, _, signature = token.encode("ascii", "ignore").rpartition(b".")
    for secret in secrets:
        for key, words in _wrong_keys(secret):
            made = base64.urlsafe_b64encode(hmac.digest(key, signed, hashlib.sha256)).rstrip(b"=")
            if hmac.compare_digest(made, signature):
                return words
    return ""


def _wrong_keys(secret: bytes) -> Iterator[tuple[bytes, str]]:
    texts = {base64.urlsafe_b64encode(secret): "base64url", base64.b64encode(secret): "base64"}
    texts |= {text.rstrip(b"="): kind for text, kind in texts.items()}
    for digits in secret.hex(), secret.hex().upper():
        texts[digits.encode()] = "hex"
    for text, kind in texts.items():
        for (before, after), around in _AROUND.items():
            yield before + text + after, f"the {kind} text of the secret{around}; decode the secret before you sign"
    for decoded in secret.decode("utf-8", "replace"), secret.decode("latin-1"):
        yield decoded.encode(), "the decoded secret as text; sign with its bytes"
    letters = re.sub(rb"[^A-Za-z0-9+/]", b"", secret.replace(b"-", b"+").replace(b"_", b"/"))
    if len(letters) % 4 != 1:
        yield base64.b64decode(letters + b"=="), "the secret decoded twice; decode it once"
