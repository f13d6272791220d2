"""Refusals of polls."""

from __future__ import annotations

from typing import Final

from emulator.contract.names import POLL_ID_RULE
from emulator.errors import BadRequest, Conflict, Facts, NotFound, refusal

_UNACCEPTABLE: Final = "unacceptable vote"
_DEFINE: Final = "Define the poll first: `extcli vote define {poll}`."


@refusal(BadRequest, "Invalid poll id", "W8", "The poll id has the wrong form",
         "Choose another id, such as `lunch` or `global-lunch`.")  # fmt: skip
def invalid_poll_id(*, name: str, id: str) -> Facts:
    return Facts(f"{name}: must be {POLL_ID_RULE}", f'{name} "{id}"', POLL_ID_RULE)


@refusal(BadRequest, "Value out of bounds", "P2", "The value is out of bounds",
         "Send an integer from {lowest} to {highest}.")  # fmt: skip
def value_out_of_bounds(*, value: int, lowest: int, highest: int) -> Facts:
    return Facts(f"value: {value} is not within {lowest} to {highest}", f"value {value}", f"{lowest} to {highest}")


@refusal(BadRequest, _UNACCEPTABLE, "P4", "The number of votes is out of range", "Send a count from 1 to {highest}.")
def count_out_of_range(*, count: int, highest: int) -> Facts:
    return Facts(f"count: {count} is not within 1 to {highest}", f"count {count}", f"1 to {highest}")


@refusal(BadRequest, "poll is closed", "P4", "The poll is closed",
         "Look at its times with `extcli vote config {poll}`, or open it: `extcli vote reopen {poll}`.")  # fmt: skip
def poll_closed(*, poll: str) -> Facts:
    detail = "the poll has not started, has ended or is disabled"
    return Facts(detail, f"poll {poll}, which has not started, has ended or is disabled", "an open poll")


@refusal(BadRequest, _UNACCEPTABLE, "P4", "The vote exceeds what the poll allows a user",
         "Vote less often, or raise the limits: `extcli vote edit {poll}`.")  # fmt: skip
def over_allowance(*, poll: str) -> Facts:
    detail = "the vote would exceed the poll's votes per user, votes per option or options per user"
    return Facts(detail, f"a user without that many votes left in {poll}", "votes within the limits of the definition")


@refusal(BadRequest, _UNACCEPTABLE, "P4", "Only users who share their identity may vote",
         "Use a token with user_id, or allow all users: `extcli vote edit {poll}`.")  # fmt: skip
def unknown_voter(*, poll: str) -> Facts:
    detail = "only users who share their identity may vote in this poll"
    return Facts(detail, f"a token without user_id, for poll {poll}", "a token with user_id")


@refusal(Conflict, "Poll changed", "P4", "Another edit of the poll came first",
         "Read the definition again with `extcli vote config {poll}`, and repeat the edit.")  # fmt: skip
def poll_changed(*, poll: str, members: str) -> Facts:
    detail = f"expected: the definition has changed since it was read: {members}"
    return Facts(detail, f"a definition that differs from the present one: {members}", "the present definition")


@refusal(Conflict, "Poll changed", "P4", "The poll has a definition already", "Edit it: `extcli vote edit {poll}`.")
def already_defined(*, poll: str) -> Facts:
    detail = f"expected: the poll {poll} has a definition; edit that one"
    return Facts(detail, f"no definition, for poll {poll}", "the present definition")


@refusal(NotFound, "Not Found", rule="P4", title="The poll has no definition", next_step=_DEFINE)
def no_definition(*, poll: str) -> Facts:
    return Facts(f"the poll {poll} has no definition", f"poll {poll}, not defined", "a defined poll")


@refusal(NotFound, "Not Found", "P4", "There is no such poll",
         "Define the poll, or vote in it, first: `extcli vote define {poll}`.")  # fmt: skip
def no_poll(*, poll: str) -> Facts:
    return Facts(f"there is no poll {poll}", f"poll {poll}", "an existing poll")
