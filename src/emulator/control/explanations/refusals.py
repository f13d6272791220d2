"""Refusals of explanations."""

from __future__ import annotations

from typing import Final

from emulator.errors import Facts, NotFound, refusal

_RULE: Final = "docs: Journal"


@refusal(NotFound, "Not Found", _RULE, "The journal has no such entry", "List what it has: `extcli logs`.")
def no_entry(*, place: str, id: str, hint: str) -> Facts:
    detail = f"{place} has no entry of {id!r}{hint}"
    return Facts(detail, f"id {id!r}", "an entry that the journal still keeps")


@refusal(NotFound, "Not Found", _RULE, "There is no such rule", "Name another rule, or a request id.")
def no_rule(*, rule: str, hint: str) -> Facts:
    return Facts(f"there is no rule {rule!r}{hint}", f"rule {rule!r}", "a ruling such as A1, or a section")
