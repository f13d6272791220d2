"""Collects the secrets of a test, and finds them in logs and other output."""

from __future__ import annotations

import base64
import secrets
from typing import Any

import jwt


class LeakDetector:
    """Maps each revealing piece of a secret to the secret's label."""

    def __init__(self) -> None:
        self._pieces: dict[str, str] = {}
        self._created = 0

    def __len__(self) -> int:
        return len(self._pieces)

    def add(self, secret: str, label: str) -> str:
        """Add a PIN, a code or a password, and return it."""
        assert len(secret) >= 6, f"{label} is too short to search for: {secret!r}"
        self._pieces[secret] = label
        return secret

    def add_key(self, key: bytes, label: str) -> str:
        """Add the secret of an extension, and return it in base64."""
        self.add(key.decode(), label)
        self.add(base64.urlsafe_b64encode(key).decode(), f"{label} in base64")
        return self.add(base64.b64encode(key).decode(), f"{label} in base64")

    def add_token(self, token: str, label: str) -> str:
        """Add both halves of a token's payload and of its signature, and return the token. All headers are alike."""
        _, payload, signature = token.split(".")
        for piece, name in ((payload, "payload"), (signature, "signature")):
            for half in (piece[: len(piece) // 2], piece[len(piece) // 2 :]):
                self.add(half, f"the {name} of {label}")
        return token

    def sign(self, key: bytes, label: str, **claims: Any) -> str:
        """Return a new token with these claims and a `jti`."""
        return self.add_token(jwt.encode({"jti": secrets.token_hex(8), **claims}, key), label)

    def make(self, label: str) -> str:
        """Return a new unique text for a body, a query or a header."""
        self._created += 1
        return self.add(f"hidden-{secrets.token_hex(6)}-{self._created}", label)

    def found_in(self, text: str) -> set[str]:
        """Return the labels of the secrets that a text contains."""
        return {label for piece, label in self._pieces.items() if piece in text}
