"""The commands of `extcli vote` that define, change, close, reopen and restart a poll."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated, Any

import typer

from emulator.contract.shell import join_words
from emulator.contract.shell import quote_posix as quote
from extcli.api.call import retry
from extcli.cli import argument, command, confirm, flag, option
from extcli.cli.confirm import Yes
from extcli.cli.json_input import read_json
from extcli.cli.options import with_options
from extcli.errors import CliError, Refused, RequestWithheld, UsageError, refuse_both
from extcli.output import times
from extcli.output.printer import write_stderr
from extcli.output.sanitize import visible
from extcli.reading import Response, document_of
from extcli.session import Service, Session, definer_role, is_global

Poll = Annotated[str, argument("POLL", "The poll's id.")]
EndsAt = Annotated[str | None, option("--ends-at TIME", f"When the poll closes: {times.FORMS}.")]
EndsIn = Annotated[str | None, option("--ends-in DURATION", "How long until the poll closes, for example 90s.")]

Members = dict[str, Any]
"""The members of a definition, or some of them."""

_DERIVED = ("id", "status", "global")
"""Members of a definition that its id and the clock decide."""
_DEFAULTS: tuple[Any, ...] = ("", None, 0, 1, [])
"""Values of members that a definition has if nothing sets them; also `False`. User data is unset only if `None`."""
_EDIT_ATTEMPTS = 20
"""Edits of one poll at once that all succeed; each conflict is the success of another one."""
_NOW = -1
"""As `endsAt`, ends the poll now."""
_DEFINE_COMMAND = ("extcli", "api", "POST", "vote_config", "--yes", "--input", "-")
_NO_LIMIT = 0
"""As `startsAt` or `endsAt`: no limit."""


def _definition_options(
    session: Session,
    prompt: str | None = option("--prompt", "The poll's question."),
    option: list[str] | None = option("--option TEXT", "One option. Repeatable."),
    options: str | None = option("--options A,B,C", "All options, separated by commas."),
    starts_at: str | None = option("--starts-at TIME", f"When the poll opens: {times.FORMS}."),
    starts_in: str | None = option("--starts-in DURATION", "How long until the poll opens."),
    ends_at: EndsAt = None,
    ends_in: EndsIn = None,
    user_data: str | None = option("--user-data JSON", "Your own data, stored with the definition: JSON, @file or -."),
    total_votes: int | None = option("--total-votes N", "The most votes per user. Above 1, a user's votes add up."),
    votes_per_option: int | None = option("--votes-per-option N", "The most votes per user and option."),
    distinct_options: int | None = option("--distinct-options N", "The most different options per user."),
    user_id_voting: bool | None = flag(
        "--user-id-voting/--no-user-id-voting", "Whether only users who share their identity can vote.", None
    ),
    disabled: bool | None = flag("--disabled/--enabled", "Whether the poll refuses votes.", None),
) -> Members:
    """Return the members of a definition that the options give, as `vote_config` takes them."""
    if options is not None and (option or not options):
        raise UsageError("the options are empty, or given twice", fix='give --options "A,B", or --option for each')
    members = {
        "prompt": prompt,
        "options": option or ([text.strip() for text in options.split(",")] if options else None),
        **_time_limit(session, "starts", starts_at, starts_in),
        **_time_limit(session, "ends", ends_at, ends_in),
        "totalVotesPerUser": total_votes,
        "votesPerOption": votes_per_option,
        "distinctOptionsPerUser": distinct_options,
        "userIDVoting": user_id_voting,
        "disabled": disabled,
    }
    given = {name: value for name, value in members.items() if value is not None}
    # Null is a value too: it removes the data.
    return given if user_data is None else given | {"userData": read_json(user_data, "--user-data")}


def _time_limit(session: Session, name: str, at: str | None, after: str | None) -> dict[str, int]:
    """Return `startsAt` or `startsIn` (or `ends…`) in seconds, rounded up: 0 would mean no limit."""
    refuse_both(at, after, f"--{name}-at and --{name}-in")
    if at is not None:
        return {f"{name}At": -(-times.parse_instant(at, session.now) // 1000)}
    return {f"{name}In": -(-times.parse_duration(after) // 1000)} if after is not None else {}


@with_options("members", _definition_options)
def define(
    session: Session,
    poll: Poll,
    *,
    members: Members,
    replace: bool = flag("--replace", "Replace an existing definition. Fields without an option are removed."),
    yes: Yes = False,
) -> None:
    """Define a poll: question, options, times and limits. Acts as broadcaster, or backend for `global-…`.

    Existing votes stay. An existing definition is replaced as a whole. If that would remove a
    field, such as the end, --replace is required. `vote edit` changes only the given fields.

    \b
    Examples:
      extcli vote define lunch --prompt "Which?" --options "A,B" --ends-in 90s
    """
    asks = not yes and not session.dry_run and session.why_production()

    def checked(existing: Members) -> Members:
        if not replace and (lost := _dropped_fields(existing, members)):
            raise UsageError(
                f"poll {visible(poll)} has a definition, and this would delete its {lost}",
                why="`define` replaces the whole definition",
                fix="use `extcli vote edit` to change parts, or add --replace",
            )
        if asks and existing:
            confirm.ask_about_loss(session, [f"the definition of poll {visible(poll)} is replaced"], "Continue?")
        return members

    _edit_definition(session, poll, checked, "defined", read=_definition_if_any if asks or not replace else None)


@with_options("members", _definition_options)
def edit(session: Session, poll: Poll, *, members: Members) -> None:
    """Change parts of a poll's definition; the rest and the votes stay. Acts as broadcaster, or backend for `global-…`.

    \b
    Examples:
      extcli vote edit lunch --prompt "Which one?"
      extcli vote edit lunch --ends-in 5m --enabled
    """
    if not members:
        raise UsageError("nothing to change", fix="give an option, such as --prompt TEXT or --ends-in 90s")
    _edit_definition(session, poll, lambda definition: _merge(definition, members), "changed")


def close(session: Session, poll: Poll) -> None:
    """End a poll now: it refuses new votes, and keeps existing ones. Acts as broadcaster, or backend for `global-…`.

    `vote reopen` opens it again.

    Example: extcli vote close lunch
    """

    def end(definition: Members) -> Members | None:
        if definition.get("status") == "expired":
            session.output.report(f"poll {visible(poll)} is already closed")
            return None
        return _merge(definition, {"endsAt": _NOW, **_start_now(definition)})

    _edit_definition(session, poll, end, "closed", read=lambda *of: _definition_if_any(*of, needs_votes=True))


def reopen(session: Session, poll: Poll, ends_at: EndsAt = None, ends_in: EndsIn = None) -> None:
    """Open a poll that has ended, is disabled or has not started. Acts as broadcaster, or backend for `global-…`.

    Without --ends-at and --ends-in, the poll stays open.

    Example: extcli vote reopen lunch --ends-in 90s
    """
    end = _time_limit(session, "ends", ends_at, ends_in) or {"endsAt": _NO_LIMIT}

    def begin(definition: Members) -> Members:
        return _merge(definition, {"disabled": False, **_start_now(definition), **end})

    _edit_definition(session, poll, begin, "reopened")


def restart(session: Session, poll: Poll, ends_at: EndsAt = None, ends_in: EndsIn = None, yes: Yes = False) -> None:
    """Start a poll again: delete its votes, and keep its definition. Acts as broadcaster, or backend for `global-…`.

    For example, a weekly poll keeps its question and options. A poll that has ended needs a new
    end. If the restart fails halfway, the error shows the command that defines the poll again.

    \b
    Examples:
      extcli vote restart lunch
      extcli vote restart lunch --ends-in 7d
    """
    service, name = session.service(definer_role(poll)), visible(poll)
    end = _time_limit(session, "ends", ends_at, ends_in)
    before = _definition(service, poll)
    if before.get("status") == "expired" and not end:
        raise UsageError(f"poll {name} has ended", fix="give its new end: --ends-in 7d")
    confirm.ask_in_production(session, f"the votes of poll {name} are deleted, and its definition stays", yes=yes)
    members = _merge(before, end) | _global_member(poll)
    # The service checks the definition before anything is lost.
    calls: list[Callable[[], Response]] = [
        lambda: service.define_poll(poll, members, expected=before),
        lambda: service.delete("vote", id=poll),
        lambda: service.define_poll(poll, members),
    ]
    if session.dry_run:
        for call in calls:
            with suppress(RequestWithheld):
                call()
        raise RequestWithheld
    check, *lossy = calls
    check()
    try:
        answers = [retry(call, session.resolver.timeout()) for call in lossy]
    except (CliError, KeyboardInterrupt) as error:
        _add_restore_command(error, session, poll, members)
        raise
    session.output.done(answers[-1], f"deleted the votes of poll {name}, and kept its definition")


def _add_restore_command(error: BaseException, session: Session, poll: str, members: Members) -> None:
    """Give an error the command that defines the poll again; after Ctrl-C print it."""
    body = json.dumps({"id": poll, "config": members})
    line = f"printf %s {quote(body)} | {join_words([*_DEFINE_COMMAND, *session.resolver.flags.words()], quote)}"
    fix = f"poll {visible(poll)} may have lost its definition; this command restores it: {line}"
    if isinstance(error, CliError):
        error.fix = fix
    else:
        write_stderr([fix])


def _start_now(definition: Members) -> Members:
    return {"startsAt": _NO_LIMIT} if definition.get("status") == "pending" else {}


def _dropped_fields(existing: Members, members: Members) -> str:
    """Return what the existing definition has and the new members do not set: `prompt, options, endsAt`."""
    given = {name.replace("In", "At") for name in members}
    lost = [name for name, value in existing.items() if _is_set(name, value) and name not in given]
    return ", ".join(lost)


def _is_set(name: str, value: object) -> bool:
    """Return whether a member of a definition differs from what it is if nothing sets it."""
    if name in _DERIVED:
        return False
    return value is not None if name == "userData" else value is True or value not in _DEFAULTS


def add_definition_verbs(app: typer.Typer) -> None:
    """Add these commands to the noun."""
    for function in (define, edit, close, reopen, restart):
        command(app)(function)


def _definition(service: Service, poll: str) -> Members:
    """Return the poll's definition. Raises `Refused` if it has none."""
    return dict(document_of(service.get("vote_config", id=poll)))


def _definition_if_any(service: Service, poll: str, *, needs_votes: bool = False) -> Members:
    """Return the poll's definition, or an empty one if it has none. If it `needs_votes` then, raises `Refused`."""
    try:
        return _definition(service.probing(), poll)
    except Refused as error:
        if error.status != 404 or (needs_votes and not _has_votes(service, poll)):
            raise
        return {}


def _has_votes(service: Service, poll: str) -> bool:
    return bool(document_of(service.probing().get("vote", id=poll), {"stats": {"count": int}})["stats"]["count"])


def _merge(definition: Members, members: Members) -> Members:
    """Return a poll's definition with these members replaced. A relative time also removes the absolute time."""
    kept = {name: value for name, value in definition.items() if name not in _DERIVED and (value or name != "options")}
    for name in ("starts", "ends"):
        if f"{name}In" in members:
            kept.pop(f"{name}At", None)
    return kept | members


def _edit_definition(
    session: Session,
    poll: str,
    change: Callable[[Members], Members | None],
    done: str,
    read: Callable[[Service, str], Members] | None = _definition,
) -> None:
    """Replace the definition by its `change`, again if another edit came first, so that neither is lost.

    If `change` returns `None`, there is nothing to do. Without `read`, whatever definition there is gets replaced.
    """
    service = session.service(definer_role(poll))
    session.warn_without_channel(definer_role(poll), "the definition", poll)
    for left in reversed(range(_EDIT_ATTEMPTS)):
        definition = read(service, poll) if read else None
        members = change(definition or {})
        try:
            if members is not None:
                response = service.define_poll(poll, members | _global_member(poll), expected=definition)
                session.output.done(response, f"{done} poll {visible(poll)}")
            return
        except Refused as error:
            if error.status != 409 or not left:
                raise


def _global_member(poll: str) -> Members:
    """Return the member that marks the definition of a poll of all channels."""
    return {"global": True} if is_global(poll) else {}
