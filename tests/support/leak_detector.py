"""What nobody but its owner may read, gathered while it is used, and looked for in what was written."""

from __future__ import annotations

import base64
import secrets
from typing import Any

import jwt


class LeakDetector:
    """Every secret by what it is, with all the pieces that would give it away."""

    def __init__(self) -> None:
        self._pieces: dict[str, str] = {}
        self._made = 0

    def __len__(self) -> int:
        return len(self._pieces)

    def add(self, secret: str, what: str) -> str:
        """One that stands for itself: a PIN, a code, a password."""
        assert len(secret) >= 6, f"{what} is too short to be looked for: {secret!r}"
        self._pieces[secret] = what
        return secret

    def add_key(self, key: bytes, what: str) -> str:
        """The secret of an extension, as it is and in base64; returns the latter."""
        self.add(key.decode(), what)
        self.add(base64.urlsafe_b64encode(key).decode(), f"{what} in base64")
        return self.add(base64.b64encode(key).decode(), f"{what} in base64")

    def add_token(self, token: str, what: str) -> str:
        """A token: its payload and its signature, and each half of them. Its header is the same in all."""
        _, payload, signature = token.split(".")
        for piece, name in ((payload, "payload"), (signature, "signature")):
            for half in (piece[: len(piece) // 2], piece[len(piece) // 2 :]):
                self.add(half, f"the {name} of {what}")
        return token

    def signed(self, key: bytes, what: str, **claims: Any) -> str:
        """A token with these claims, and one of its own, so that no two are alike."""
        return self.add_token(jwt.encode({"jti": secrets.token_hex(8), **claims}, key), what)

    def make(self, what: str) -> str:
        """A text that stands nowhere else, for a body, a query or a header."""
        self._made += 1
        return self.add(f"hidden-{secrets.token_hex(6)}-{self._made}", what)

    def found_in(self, text: str) -> set[str]:
        """What each secret is that stands in a text."""
        return {what for piece, what in self._pieces.items() if piece in text}
