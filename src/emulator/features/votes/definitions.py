"""What a poll's definition may be, what it means for voting, and when it is pending, active or expired (ruling P4)."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType, field

from emulator.engines.base import NEVER, Terms
from emulator.errors import BadRequest
from emulator.features.votes.rules import GLOBAL, is_global
from emulator.wire import json_codec

_LONGEST_PROMPT = 256
_LONGEST_OPTION = 128
_MOST_OPTIONS = 64
_LARGEST_USER_DATA = 1_024
_BOUNDS = {"distinctOptionsPerUser": 258, "totalVotesPerUser": 1_024, "votesPerOption": 1_024}
_LAST_SECOND = 253_402_300_799
_NOW = -1


class PollConfig(Struct, rename="camel", kw_only=True):
    """A poll's definition, as `POST vote_config` takes it. Instants are Unix seconds, 0 for unset."""

    prompt: str = ""
    options: list[str] | UnsetType = UNSET
    """Option i has the vote value i."""
    user_data: Any = None
    starts_at: int = 0
    ends_at: int = 0
    """-1 means now."""
    starts_in: int = 0
    """Seconds from now; without effect where `startsAt` is set."""
    ends_in: int = 0
    user_id_voting: bool = field(default=False, name="userIDVoting")
    """Only users who shared their identity may vote."""
    distinct_options_per_user: int = 1
    total_votes_per_user: int = 1
    votes_per_option: int = 1
    disabled: bool = False
    global_: bool = field(default=False, name="global")


class Definition(Struct, rename="camel", kw_only=True):
    """A definition as it is kept; also, with `status`, the answer of `GET vote_config`."""

    id: str
    prompt: str
    options: list[str]
    user_data: Any
    starts_at: int
    ends_at: int
    user_id_voting: bool = field(name="userIDVoting")
    distinct_options_per_user: int
    total_votes_per_user: int
    votes_per_option: int
    disabled: bool
    global_: bool = field(name="global")
    status: str = ""
    """`pending`, `active` or `expired`."""


def checked_definition(poll_id: str, config: PollConfig, *, now: int) -> Definition:
    """The definition with all instants absolute; raises `BadRequest` naming the field and its limit."""
    options = [] if config.options is UNSET else config.options
    if config.options is not UNSET and not 1 <= len(options) <= _MOST_OPTIONS:
        raise _invalid("options", f"{len(options)} given, 1 to {_MOST_OPTIONS} are taken")
    for index, option in enumerate(options):
        _check_size(f"options[{index}]", option, _LONGEST_OPTION)
    _check_size("prompt", config.prompt, _LONGEST_PROMPT)
    if len(json_codec.encode(config.user_data)) > _LARGEST_USER_DATA:
        raise _invalid("userData", f"over {_LARGEST_USER_DATA} bytes of JSON")
    if config.global_ and not is_global(poll_id):
        raise _invalid("global", f"a global poll's id begins with {GLOBAL!r}")
    allowances = {
        "distinctOptionsPerUser": config.distinct_options_per_user,
        "totalVotesPerUser": config.total_votes_per_user,
        "votesPerOption": config.votes_per_option,
    }
    for name, value in allowances.items():
        if not 1 <= value <= _BOUNDS[name]:
            raise _invalid(name, f"{value} is not within 1 to {_BOUNDS[name]}")
    starts_at = _instant("startsAt", config.starts_at, "startsIn", config.starts_in, now)
    ends_at = _instant("endsAt", config.ends_at, "endsIn", config.ends_in, now)
    if starts_at and ends_at and starts_at > ends_at:
        raise _invalid("startsAt", "after endsAt")
    return Definition(
        id=poll_id,
        prompt=config.prompt,
        options=options,
        user_data=config.user_data,
        starts_at=starts_at,
        ends_at=ends_at,
        user_id_voting=config.user_id_voting,
        distinct_options_per_user=config.distinct_options_per_user,
        total_votes_per_user=config.total_votes_per_user,
        votes_per_option=config.votes_per_option,
        disabled=config.disabled,
        global_=is_global(poll_id),
    )


def terms_of(definition: Definition) -> Terms:
    """What the definition means for casting votes."""
    return Terms(
        opens_at=definition.starts_at * 1000,
        closes_at=definition.ends_at * 1000 or NEVER,
        disabled=definition.disabled,
        known_voters_only=definition.user_id_voting,
        per_voter=definition.total_votes_per_user,
        per_choice=definition.votes_per_option,
        choices=definition.distinct_options_per_user,
    )


def status_of(definition: Definition, *, now: int) -> str:
    """`pending` before `startsAt`, `expired` from `endsAt` on, else `active`, also while disabled."""
    if definition.ends_at and now >= definition.ends_at * 1000:
        return "expired"
    return "pending" if now < definition.starts_at * 1000 else "active"


def next_turn(definition: Definition, *, now: int) -> int | None:
    """When the status next changes by itself, in ms; `None` if it does not."""
    turns = (definition.starts_at * 1000, definition.ends_at * 1000)
    return next((turn for turn in turns if turn > now), None)


def reconfigured(definition: Definition, config: dict[str, Any], *, now: int) -> Definition:
    """The definition with some members changed; `endsAt` -1 stops the poll, and leaves one that has ended as it is.

    Raises `BadRequest` naming the member that does not fit.
    """
    members = msgspec.to_builtins(definition) | config
    if "endsIn" in config and "endsAt" not in config:
        members["endsAt"] = 0
    if "startsIn" in config and "startsAt" not in config:
        members["startsAt"] = 0
    if config.get("endsAt") == _NOW:
        if status_of(definition, now=now) == "expired":
            members["endsAt"] = definition.ends_at
        else:  # a poll that has not begun may be stopped too
            members["startsAt"] = min(members["startsAt"], now // 1000) if _is_int(members["startsAt"]) else 0
    if not members["options"]:
        members.pop("options")
    return checked_definition(definition.id, json_codec.convert(members, PollConfig, inside="data.config"), now=now)


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _instant(name: str, absolute: int, relative_name: str, relative: int, now: int) -> int:
    """One end of the window in Unix seconds, 0 for none; `now` is in ms.

    A time from now is rounded up, so that a poll is never open for less than it was given.
    """
    seconds = now // 1000
    if absolute == _NOW and name == "endsAt":
        return seconds
    if not 0 <= absolute <= _LAST_SECOND:
        raise _invalid(name, f"{absolute} is no Unix time in seconds")
    if not 0 <= relative < _LAST_SECOND - seconds:
        raise _invalid(relative_name, f"{relative} is no number of seconds from now")
    return absolute or (-(-now // 1000) + relative if relative else 0)


def _check_size(name: str, text: str, limit: int) -> None:
    size = len(text.encode())
    if size > limit:
        raise _invalid(name, f"{size} bytes, at most {limit} are taken")


def _invalid(field_name: str, what: str) -> BadRequest:
    return BadRequest("Invalid body", f"{field_name}: {what}")
