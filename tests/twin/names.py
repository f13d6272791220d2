"""Replaces random ids by numbers, in the order in which they first appear.

Both versions draw from the same seed, but may draw in another order. So a comparison of texts compares which id stands
where, not its characters. The kind of an id stays: its alphabet and length, and the header and the claims of a token.
"""

from __future__ import annotations

import base64
import json
import re
from contextlib import suppress

_WORD = re.compile(r"(?<![\w/+])(?:[0-9a-f]{8}-[0-9]+(?=/[0-9])|[\w.-]{10,}(?![\w/+=]))")
"""What may be an id, also of a message: `<id>/2`. A scan for this is fast, and few texts match it."""
_KINDS = {
    "token": re.compile(r"eyJ[\w-]{10,}\.[\w-]*\.[\w-]*"),
    "uuid": re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    "hex64": re.compile(r"[0-9a-f]{64}"),
    "cursor": re.compile(r"(?:[0-9a-f]{2}){33,}"),
    "hex32": re.compile(r"[0-9a-f]{32}"),
    # Of random ones, one in 80,000 has letters of one case only.
    "id22": re.compile(r"(?![a-z]+$|[A-Z]+$|[0-9]+$)[0-9A-Za-z]{22}"),
    "anonymous": re.compile(r"A[0-9]{20}"),
    "request": re.compile(r"[0-9a-f]{8}-[0-9]+"),
    "hex16": re.compile(r"(?!10{15}$)[0-9a-f]{16}"),  # 10**15 is a time that calls send
}
_PIN = re.compile(r'("(?:pin|token)" ?: ?")([A-Z2-9]{6})(")')


class Names:
    """The ids that one version has shown, with their numbers."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._pins: re.Pattern[str] | None = None

    def replaced(self, text: str) -> str:
        """Return a text with numbers in place of random ids."""
        for found in _PIN.finditer(text):
            self.pin(found[2])
        text = _WORD.sub(self._name, text)
        return self._pins.sub(self._name_pin, text) if self._pins else text

    def pin(self, text: str) -> None:
        """Know a PIN, wherever it appears from now on: only this distinguishes it from a word."""
        if f"pin {text}" not in self._numbers:
            self._number(f"pin {text}")
            known = [each[4:] for each in self._numbers if each.startswith("pin ")]
            self._pins = re.compile(r"\b(?:" + "|".join(known) + r")\b")

    def _name(self, found: re.Match[str]) -> str:
        text = found[0]
        for kind, pattern in _KINDS.items():
            if pattern.fullmatch(text):
                if kind == "token":
                    return self._token(text)
                return f"<{kind} {self._number(text)}>"
        return text

    def _name_pin(self, found: re.Match[str]) -> str:
        return f"<pin {self._number(f'pin {found[0]}')}>"

    def _number(self, text: str) -> int:
        return self._numbers.setdefault(text, len(self._numbers) + 1)

    def _token(self, text: str) -> str:
        head, claims, signature = text.split(".")
        shown = f"{decoded(head)} {self.replaced(decoded(claims))}".replace('"', "'")
        return f"<token {shown} {len(signature)} {self._number(text)}>"


def kinds(text: str) -> str:
    """Return a text with the kind of each random id in its place, where ids also decide the order."""

    def kind(found: re.Match[str]) -> str:
        names = (name for name, pattern in _KINDS.items() if pattern.fullmatch(found[0]))
        return next((f"<{name}>" for name in names), found[0])

    return _WORD.sub(kind, text)


def decoded(part: str) -> str:
    """Return a part of a token as JSON in the order of its members, or as it is."""
    with suppress(ValueError):
        return json.dumps(json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))))
    return part
