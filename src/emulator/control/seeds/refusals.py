"""Refusals of seeds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from emulator.errors import BadRequest, Facts, refusal

_SEED: Final = (BadRequest, "Invalid seed", "docs: Seeds")


@refusal(*_SEED, "The seed has another version",
         "Set its field extcli to {known}; `extcli seed example` prints a seed.")  # fmt: skip
def other_version(*, version: int, known: int) -> Facts:
    detail = f"extcli: this service reads version {known} of seeds, not {version}"
    return Facts(detail, f"version {version}", f"version {known}")


@refusal(*_SEED, "The seed is invalid", "Edit the fields named; `extcli seed check FILE` finds their lines.")
def invalid_seed(*, problems: Sequence[str]) -> Facts:
    return Facts(problems[0], problems[0], "a seed as `extcli seed example` prints it", problems[1:])
