"""Poll ids, the limits of votes, definitions with their terms, and refusals (rulings P2, P4); and the stored records of
polls, with how to check one that comes from outside. No I/O, no clock.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType, field

from emulator.contract import limits
from emulator.contract.kinds import are_equal_json
from emulator.contract.limits import HIGHEST_VOTE, LOWEST_VOTE, MAX_VOTES
from emulator.contract.names import POLL_ID, POLL_ID_RULE
from emulator.core.callers import GLOBAL, is_global
from emulator.core.clock import END_OF_TIME, SECOND, WEEK
from emulator.core.errors import BadRequest, Conflict, Facts, NotFound, ServiceError, refusal
from emulator.core.keys import NEVER
from emulator.core.wire import json_codec
from emulator.core.wire.refusals import invalid_member, too_long
from emulator.storage.kinds import Stored, decoded, text_of, wrong
from emulator.storage.records import BallotRecord, ChoiceRecord, EntryRecord
from emulator.storage.shapes import OVER_ALLOWANCE, UNKNOWN_VOTER, BallotEntry, Terms

_BAD_VOTE = "unacceptable vote"
_DEFINE_POLL_FIRST = "Define the poll first: `extcli vote define {poll}`."


@refusal(BadRequest, "Invalid poll id", "W8", "The poll id has the wrong form",
         "Choose another id, such as `lunch` or `global-lunch`.")  # fmt: skip
def invalid_poll_id(*, name: str, id: str) -> Facts:
    return Facts(f"{name}: must be {POLL_ID_RULE}", f'{name} "{id}"', POLL_ID_RULE)


@refusal(BadRequest, "Value out of bounds", "P2", "The value is out of bounds",
         "Send an integer from {lowest} to {highest}.")  # fmt: skip
def value_out_of_bounds(*, value: int, lowest: int, highest: int) -> Facts:
    return Facts(f"value: {value} is not within {lowest} to {highest}", f"value {value}", f"{lowest} to {highest}")


@refusal(BadRequest, _BAD_VOTE, "P4", "The number of votes is out of range", "Send a count from 1 to {highest}.")
def count_out_of_range(*, count: int, highest: int) -> Facts:
    return Facts(f"count: {count} is not within 1 to {highest}", f"count {count}", f"1 to {highest}")


@refusal(BadRequest, "poll is closed", "P4", "The poll is closed",
         "Look at its times with `extcli vote config {poll}`, or open it: `extcli vote reopen {poll}`.")  # fmt: skip
def poll_closed(*, poll: str, cause: str) -> Facts:
    return Facts(f"the poll {cause}", f"poll {poll}, which {cause}", "an open poll")


@refusal(BadRequest, _BAD_VOTE, "P4", "The vote exceeds a limit of the poll",
         "Vote less often, or raise the limits: `extcli vote edit {poll}`.")  # fmt: skip
def over_allowance(*, poll: str) -> Facts:
    detail = "the vote exceeds a limit of the poll: totalVotesPerUser, votesPerOption or distinctOptionsPerUser"
    return Facts(detail, f"more votes than the user has left in {poll}", "a vote within the limits of the poll")


@refusal(BadRequest, _BAD_VOTE, "P4", "Only users who share their identity may vote",
         "Use a token with user_id, or allow all users: `extcli vote edit {poll}`.")  # fmt: skip
def unknown_voter(*, poll: str) -> Facts:
    detail = "only users who share their identity may vote in this poll"
    return Facts(detail, f"a token without user_id, for poll {poll}", "a token with user_id")


@refusal(Conflict, "Poll changed", "P4", "Another caller has changed the poll",
         "Read the definition again with `extcli vote config {poll}`, and repeat the edit.")  # fmt: skip
def poll_changed(*, poll: str, members: str) -> Facts:
    detail = f"expected: the definition has changed since it was read; changed members: {members}"
    return Facts(detail, f"an outdated definition; changed members: {members}", "the current definition")


@refusal(Conflict, "Poll changed", "P4", "The poll has a definition already", "Edit it: `extcli vote edit {poll}`.")
def already_defined(*, poll: str) -> Facts:
    detail = f"expected: {{}} means no definition, but the poll {poll} has one"
    return Facts(detail, f"{{}} as expected, which means no definition, for poll {poll}", "the current definition")


@refusal(NotFound, "Not Found", rule="P4", title="The poll has no definition", next_step=_DEFINE_POLL_FIRST)
def no_definition(*, poll: str) -> Facts:
    return Facts(f"the poll {poll} has no definition", f"poll {poll}, which is not defined", "a defined poll")


@refusal(NotFound, "Not Found", "P4", "There is no such poll",
         "Define the poll with `extcli vote define {poll}`, or vote in it.")  # fmt: skip
def no_poll(*, poll: str) -> Facts:
    return Facts(f"there is no poll {poll}", f"poll {poll}", "an existing poll")


LIFETIME = WEEK
"""A poll expires this long after its last vote, in ms (Limits, ruling P5)."""
MAX_VOTES_PER_CALL = 30
"""Votes in one request."""
_POLL_ID = re.compile(POLL_ID)


@lru_cache(maxsize=1024)
def checked_poll_id(poll_id: str, name: str = "id") -> str:
    """Return a valid poll id (ruling W8); raises `BadRequest` for an invalid one. `name` is the member that has it."""
    if not _POLL_ID.fullmatch(poll_id):
        raise invalid_poll_id(name=name, id=poll_id[:64])
    return poll_id


_LAST_SECOND = END_OF_TIME // SECOND - 1
_END_NOW = -1


class PollConfig(Struct, rename="camel", kw_only=True):
    """A poll's definition as a client sends it. Times are Unix seconds; 0 is unset."""

    prompt: str = ""
    options: list[str] | UnsetType = UNSET
    """A vote for `options[i]` has the value i."""
    user_data: Any = None
    starts_at: int = 0
    ends_at: int = 0
    """-1 means now."""
    starts_in: int = 0
    """Seconds from now; ignored if `startsAt` is set."""
    ends_in: int = 0
    """Seconds from now; ignored if `endsAt` is set."""
    user_id_voting: bool = field(default=False, name="userIDVoting")
    """Only users who share their identity may vote."""
    distinct_options_per_user: int = 1
    total_votes_per_user: int = 1
    votes_per_option: int = 1
    disabled: bool = False
    global_: bool = field(default=False, name="global")


class Definition(Struct, rename="camel", kw_only=True):
    """A stored definition; with `status`, also the response of `GET vote_config`."""

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

    @property
    def terms(self) -> Terms:
        """The terms that the engine applies to votes."""
        return Terms(
            opens_at=self.starts_at * SECOND,
            closes_at=self.ends_at * SECOND or NEVER,
            disabled=self.disabled,
            known_voters_only=self.user_id_voting,
            per_voter=self.total_votes_per_user,
            per_choice=self.votes_per_option,
            choices=self.distinct_options_per_user,
        )

    def status_at(self, now: int) -> str:
        """`pending` before `startsAt`, `expired` from `endsAt` on, else `active`, even if disabled. `now` is in ms."""
        if self.ends_at and now >= self.ends_at * SECOND:
            return "expired"
        return "pending" if now < self.starts_at * SECOND else "active"

    def reconfigured(self, config: dict[str, Any], *, now: int) -> Definition:
        """Return the definition with these members replaced. `endsAt: -1` ends the poll now, unless it has ended.

        An empty list of options removes them. Raises `BadRequest`.
        """
        members = msgspec.to_builtins(self) | config
        for absolute, relative in (("startsAt", "startsIn"), ("endsAt", "endsIn")):
            if relative in config and absolute not in config:
                members[absolute] = 0
        if config.get("endsAt") == _END_NOW:
            if self.status_at(now) == "expired":
                members["endsAt"] = self.ends_at
            else:  # also ends a poll that has not started
                starts_at = members["startsAt"]
                members["startsAt"] = min(starts_at, now // SECOND) if type(starts_at) is int else 0
        if members["options"] == []:
            members.pop("options")
        return checked_definition(self.id, json_codec.convert(members, PollConfig, inside="data.config"), now=now)


def checked_definition(poll_id: str, config: PollConfig, *, now: int) -> Definition:
    """Return the definition with absolute times (`now` in ms); raises `BadRequest` naming the field and its limit."""
    options = _checked_options(config.options)
    _check_size("prompt", config.prompt, limits.MAX_PROMPT_BYTES)
    if (size := len(json_codec.encode(config.user_data))) > limits.MAX_USER_DATA_BYTES:
        raise too_long("userData", size=size, unit="bytes of JSON", limit=limits.MAX_USER_DATA_BYTES)
    if config.global_ and not is_global(poll_id):
        needed = f"an id that starts with {GLOBAL!r}"
        raise invalid_member("global", "true", needed, f"the id of a global poll must start with {GLOBAL!r}")
    _check_within("distinctOptionsPerUser", config.distinct_options_per_user, limits.MAX_DISTINCT_OPTIONS)
    _check_within("totalVotesPerUser", config.total_votes_per_user, MAX_VOTES)
    _check_within("votesPerOption", config.votes_per_option, MAX_VOTES)
    starts_at = _unix_seconds("startsAt", config.starts_at, "startsIn", config.starts_in, now)
    ends_at = _unix_seconds("endsAt", config.ends_at, "endsIn", config.ends_in, now)
    if starts_at and ends_at and starts_at > ends_at:
        raise invalid_member("startsAt", starts_at, f"at or before endsAt ({ends_at})")
    members = msgspec.structs.asdict(config)
    del members["starts_in"], members["ends_in"]
    members |= {"options": options, "starts_at": starts_at, "ends_at": ends_at, "global_": is_global(poll_id)}
    return Definition(id=poll_id, **members)


def vote_error(refused: str, poll_id: str, definition: Definition | None, now: int) -> ServiceError:
    """Return the error for a vote that an engine refused. `now` is in ms."""
    if refused == OVER_ALLOWANCE:
        return over_allowance(poll=poll_id)
    if refused == UNKNOWN_VOTER:
        return unknown_voter(poll=poll_id)
    cause = "was closed during the call"
    if definition is not None and definition.disabled:
        cause = "is disabled"
    elif definition is not None:
        cause = "has ended" if definition.status_at(now) == "expired" else "has not started"
    return poll_closed(poll=poll_id, cause=cause)


def check_unchanged(poll_id: str, found: Definition | None, expected: Mapping[str, object]) -> None:
    """Raise `Conflict` if a poll's definition has changed since the caller read it as `expected`, empty for none.

    The status is not compared.
    """
    current = {} if found is None else msgspec.to_builtins(found)
    changed = []
    for name in dict.fromkeys((*current, *expected)):
        is_same = are_equal_json(current.get(name, UNSET), expected.get(name, UNSET))
        if name != "status" and not is_same:
            changed.append(name)
    if changed and not expected:
        raise already_defined(poll=poll_id)
    if changed:
        raise poll_changed(poll=poll_id, members=", ".join(changed)[:200])


_ANNOUNCED_MEMBERS = {"prompt", "options", "user_data"}
"""The members of a poll's announcement in the channel state."""


def announcement(definition: Definition) -> dict[str, object]:
    """Return the member of the channel state by which pages know a poll."""
    return {"prompt": definition.prompt, "options": definition.options, "user_data": definition.user_data}


def aligned_member(definition: Definition | None, found: Any) -> Any:
    """Return the announcement of a poll, which is the member `found` if there is one, or `UNSET` without a poll.

    A member that is no announcement stays.
    """
    if definition is not None:
        return announcement(definition) if found is UNSET else found
    return UNSET if isinstance(found, dict) and found.keys() == _ANNOUNCED_MEMBERS else found


def _unix_seconds(name: str, absolute: int, relative_name: str, relative: int, now: int) -> int:
    """`startsAt` or `endsAt` in Unix seconds; 0 if unset. Relative times are rounded up, so no poll ends early."""
    seconds = now // SECOND
    if absolute == _END_NOW and name == "endsAt":
        return seconds
    if not 0 <= absolute <= _LAST_SECOND:
        raise invalid_member(name, absolute, f"within 0 to {_LAST_SECOND} Unix seconds")
    if not 0 <= relative < _LAST_SECOND - seconds:
        raise invalid_member(relative_name, relative, f"within 0 to {_LAST_SECOND - seconds - 1} seconds from now")
    return absolute or (-(-now // SECOND) + relative if relative else 0)


def _checked_options(options: list[str] | UnsetType) -> list[str]:
    """Return the options; none if the field is absent. An empty list is refused."""
    if options is UNSET:
        return []
    if not 1 <= len(options) <= limits.MAX_OPTIONS:
        given, needed = f"{len(options)} options", f"1 to {limits.MAX_OPTIONS} options; for none, leave the field out"
        raise invalid_member("options", given, needed, f"{given} given; a poll has {needed}")
    for index, option in enumerate(options):
        _check_size(f"options[{index}]", option, limits.MAX_OPTION_BYTES)
    return options


def _check_within(name: str, value: int, most: int) -> None:
    if not 1 <= value <= most:
        raise invalid_member(name, value, f"within 1 to {most}")


def _check_size(name: str, text: str, limit: int) -> None:
    size = len(text.encode())
    if size > limit:
        raise too_long(name, size=size, unit="bytes", limit=limit)


class Vote(Struct):
    """One entry of the vote log."""

    identifier: str
    """The user id, if the user shared it with the vote or later; else the opaque id."""
    opaque: str
    value: int
    timestamp: int
    count: int | UnsetType = UNSET
    """This user's votes for this value; only in polls where votes add up."""


def encode_log_entry(entry: BallotEntry, shared: Mapping[str, str], counted: bool) -> bytes:
    """Return the JSON of one `Vote`. `shared` has the ids that voters shared after they voted, by opaque id."""
    identifier = entry.note.decode() or shared.get(entry.voter, entry.voter)
    count = entry.times if counted or entry.times > 1 else UNSET
    return json_codec.encode(Vote(identifier, entry.voter, int(entry.choice), entry.cast_at, count))


def _check_poll(record: BallotRecord) -> None:
    checked_poll_id(record.key.name)
    terms = Terms()
    if record.definition is not None:
        definition = decoded(record.definition, Definition, "definition")
        if definition.id != record.key.name:
            raise wrong("definition", f"id: {definition.id[:64]!r} is not the id of the poll")
        try:
            terms = definition.reconfigured({}, now=0).terms
        except BadRequest as error:
            raise wrong("definition", "; ".join(error.details)) from None
    for name, found, needed in zip(terms._fields, record.terms, terms, strict=True):
        if found != needed:
            raise wrong(name, f"{found} differs from {needed} in the definition")


def _check_entry(record: EntryRecord) -> None:
    entry = record.entry
    _check_value(entry.choice)
    if not 1 <= entry.times <= MAX_VOTES:
        raise wrong("times", f"{entry.times} is not within 1 to {MAX_VOTES}")
    text_of(entry.note, "note")


def _check_value(choice: str) -> None:
    if choice not in _VALUE_TEXTS:
        raise wrong("choice", f"{choice[:40]!r} is not within {LOWEST_VOTE} to {HIGHEST_VOTE}")


_VALUE_TEXTS = frozenset(map(str, range(LOWEST_VOTE, HIGHEST_VOTE + 1)))
STORED = (
    Stored(BallotRecord, "poll", _check_poll),
    Stored(ChoiceRecord, "poll", lambda record: _check_value(record.choice)),
    Stored(EntryRecord, "poll", _check_entry),
)
