"""Refusals of reward codes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from emulator.errors import BadRequest, Facts, Unavailable, refusal


@refusal(BadRequest, "Invalid codes", "C2", "The code sets are malformed",
         "Correct them; `extcli codes check` finds errors in files.")  # fmt: skip
def malformed_sets(*, errors: Sequence[str]) -> Facts:
    return Facts(errors[0], errors[0], "sets as ruling C2 describes them, whose codes differ", errors[1:])


@refusal(BadRequest, "Invalid codes", "C2", "Another set has this name",
         "Choose another name; `extcli codes list` shows the names.")  # fmt: skip
def name_in_use(*, position: int, index: int) -> Facts:
    detail = f"names[{position}]: the code set at index {index} has this name"
    return Facts(detail, f"a name that the set at index {index} has", "a name that no active set has")


@refusal(Unavailable, "Codes removed", "C2", "A reset removed uploaded codes", "Upload the codes again.")
def codes_removed() -> Facts:
    detail = "the service was reset during the upload, or another state was loaded; nothing was changed"
    return Facts(detail, "an incomplete list of codes", "an upload without a reset")


@refusal(Unavailable, "Users removed", "C3", "A reset removed users of the call", "Send the call again.")
def users_removed() -> Facts:
    detail = "the service was reset during the call, or another state was loaded; nothing was changed"
    return Facts(detail, "an incomplete list of users", "a call without a reset")


@refusal(BadRequest, "Unknown prize", "C3", "There is no code set at this index",
         "Upload the set first: `extcli codes upload`; `extcli codes list` shows the indices.")  # fmt: skip
def no_set(*, position: int, index: int, indices: Iterable[int]) -> Facts:
    known = ", ".join(map(str, indices))
    existing = f"sets exist at {known}" if known else "no sets are defined"
    detail = f"prizes[{position}]: there is no code set at index {index}; {existing}"
    return Facts(detail, f"prize {index}", f"a prize with a set; {existing}")


@refusal(BadRequest, "Unknown prize", "C5", "No code set can have this index",
         "Redeem a prize from 0 to {highest}: `extcli codes redeem 0`.")  # fmt: skip
def no_such_prize(*, index: int, highest: int) -> Facts:
    return Facts(f"prize: {index} is not within 0 to {highest}", f"prize {index}", f"0 to {highest}")
