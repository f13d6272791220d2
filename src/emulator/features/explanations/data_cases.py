"""Refusals of votes, stores, broadcasts, codes, purchases and trivia."""

from __future__ import annotations

from typing import Final

from emulator.features.explanations.cases import cases

DATA: Final = (
    *cases(
        "Message too large",
        rows=(
            (r"", "X3", "The socket message is too large", "Send less, or raise --max-frame of `extcli serve`.",
             "a message over the limit", "at most 2 MiB; 4 KiB before authentication"),
        ),
    ),
)  # fmt: skip
