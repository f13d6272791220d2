"""The commands of `extcli vote` that define, change, close, reopen and restart a poll."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer

from emulator.contract.shell import joined
from emulator.contract.shell import posix as quote
from extcli.cli import argument, command, confirm, flag, option
from extcli.cli.confirm import Yes
from extcli.cli.json_input import read_json
from extcli.cli.options import with_options
from extcli.errors import CliError, Refused, UnexpectedResponse, UsageError, Withheld
from extcli.output import times, views
from extcli.output.printer import write_stderr
from extcli.output.sanitize import visible
from extcli.reading.shapes import SHAPE_ERRORS, document_of
from extcli.session import Session, definer_of, is_global

if TYPE_CHECKING:
    from extcli.api.client import Service
    from extcli.api.http import Response

Poll = Annotated[str, argument("POLL", "The poll's id.")]
EndsAt = Annotated[str | None, option("--ends-at TIME", f"When it closes: {times.FORMS}.")]
EndsIn = Annotated[str | None, option("--ends-in DURATION", "How long until it closes, for example 90s.")]

_STATED = ("id", "status", "global")
"""Members of a definition that its id and the clock decide."""
_UNSET: tuple[Any, ...] = ("", None, 0, 1, [])
"""Values of members that a definition has if nothing sets them; also `False`. User data is unset only if `None`."""
_ATTEMPTS = 20
"""Edits of one poll at once that all succeed; each conflict is the success of another one."""
_NOW = -1
"""As `endsAt`, ends the poll now."""
_DEFINE = ("extcli", "api", "POST", "vote_config", "--yes", "--input", "-")
_NONE = 0
"""As `startsAt` or `endsAt`: no limit."""


def _members(
    session: Session,
    prompt: str | None = option("--prompt", "The poll's question."),
    option: list[str] | None = option("--option TEXT", "One answer. Repeatable."),
    options: str | None = option("--options A,B,C", "All answers, separated by commas."),
    starts_at: str | None = option("--starts-at TIME", f"When it opens: {times.FORMS}."),
    starts_in: str | None = option("--starts-in DURATION", "How long until it opens."),
    ends_at: EndsAt = None,
    ends_in: EndsIn = None,
    user_data: str | None = option("--user-data JSON", "Your own data, stored with the definition: JSON, @file or -."),
    total_votes: int | None = option("--total-votes N", "The most votes per user. Above 1, a user's votes add up."),
    votes_per_option: int | None = option("--votes-per-option N", "The most votes per user and answer."),
    distinct_options: int | None = option("--distinct-options N", "The most answers per user."),
    user_id_voting: bool | None = flag(
        "--user-id-voting/--no-user-id-voting", "Whether only users who share their identity can vote.", None
    ),
    disabled: bool | None = flag("--disabled/--enabled", "Whether the poll refuses votes.", None),
) -> dict[str, Any]:
    """Return the members of a definition that the options give, as `vote_config` takes them."""
    if option and options is not None:
        raise UsageError("--option and --options exclude each other")
    if options == "":
        raise UsageError("--options is empty", fix='give the answers, such as --options "A,B"')
    members: dict[str, Any] = {
        "prompt": prompt,
        "options": option or ([text.strip() for text in options.split(",")] if options else None),
        **_window(session, "starts", starts_at, starts_in),
        **_window(session, "ends", ends_at, ends_in),
        "userData": None if user_data is None else read_json(user_data, "--user-data"),
        "totalVotesPerUser": total_votes,
        "votesPerOption": votes_per_option,
        "distinctOptionsPerUser": distinct_options,
        "userIDVoting": user_id_voting,
        "disabled": disabled,
    }
    is_null = user_data is not None and members["userData"] is None  # which removes it
    return {name: value for name, value in members.items() if value is not None or (name == "userData" and is_null)}


def _window(session: Session, name: str, at: str | None, after: str | None) -> dict[str, int]:
    """Return `startsAt` or `startsIn` (or `ends…`) in seconds, rounded up: 0 would mean no limit."""
    if at is not None and after is not None:
        raise UsageError(f"--{name}-at and --{name}-in exclude each other")
    if at is not None:
        return {f"{name}At": -(-times.instant(at, session.now) // 1000)}
    return {f"{name}In": -(-times.duration(after) // 1000)} if after is not None else {}


@with_options("members", _members)
def define(
    session: Session,
    poll: Poll,
    *,
    members: dict[str, Any],
    replace: bool = flag("--replace", "Replace an existing definition. Fields without an option are removed."),
    yes: Yes = False,
) -> None:
    """Define a poll: question, answers, times and limits. Acts as broadcaster, or backend for `global-…`.

    Existing votes stay. An existing definition is replaced as a whole, and only with --replace
    if that drops something it has, such as its end. `vote edit` changes parts.

    \b
    Examples:
      extcli vote define lunch --prompt "Which?" --options "A,B" --ends-in 90s
    """
    service = session.service(definer_of(poll))
    asks = not yes and not session.dry_run and session.is_production()
    if replace and not asks:
        _write(session, service, poll, members, "defined", given=members)
        return

    def checked(existing: dict[str, Any]) -> dict[str, Any]:
        if not replace and (lost := _dropped_fields(existing, members)):
            raise UsageError(
                f"poll {visible(poll)} has a definition, and this would delete its {lost}",
                why="`define` replaces the whole definition",
                fix="use `extcli vote edit` to change parts, or add --replace",
            )
        if asks and existing:
            confirm.ask(session, [f"the definition of poll {visible(poll)} is replaced"], "Continue?")
        return members

    _edit(session, service, poll, checked, "defined", given=members, read=lambda: _definition_if_any(service, poll))


@with_options("members", _members)
def edit(session: Session, poll: Poll, *, members: dict[str, Any]) -> None:
    """Change parts of a poll's definition; the rest and the votes stay. Acts as broadcaster, or backend for `global-…`.

    \b
    Examples:
      extcli vote edit lunch --prompt "Which one?"
      extcli vote edit lunch --ends-in 5m --enabled
    """
    if not members:
        raise UsageError("nothing to change", fix="give an option, such as --prompt TEXT or --ends-in 90s")
    service = session.service(definer_of(poll))
    _edit(session, service, poll, lambda definition: _changed(definition, members), "changed", given=members)


def close(session: Session, poll: Poll) -> None:
    """End a poll now: it refuses new votes, and keeps existing ones. Acts as broadcaster, or backend for `global-…`.

    `vote reopen` opens it again.

    Example: extcli vote close lunch
    """
    service = session.service(definer_of(poll))

    def read() -> dict[str, Any]:
        return _definition_if_any(service, poll, only_if=lambda: _has_votes(service, poll))

    def end(definition: dict[str, Any]) -> dict[str, Any] | None:
        if definition.get("status") == "expired":
            return None
        return _changed(definition, {"endsAt": _NOW, **_opened_definition(definition)})

    if not _edit(session, service, poll, end, "closed", given={}, read=read):
        session.output.report(f"poll {visible(poll)} was closed already")


def reopen(session: Session, poll: Poll, ends_at: EndsAt = None, ends_in: EndsIn = None) -> None:
    """Open a poll now that has ended, is disabled or has not started. Acts as broadcaster, or backend for `global-…`.

    Without --ends-at and --ends-in it stays open.

    Example: extcli vote reopen lunch --ends-in 90s
    """
    service = session.service(definer_of(poll))
    end = _window(session, "ends", ends_at, ends_in) or {"endsAt": _NONE}

    def begin(definition: dict[str, Any]) -> dict[str, Any]:
        return _changed(definition, {"disabled": False, **_opened_definition(definition), **end})

    _edit(session, service, poll, begin, "reopened", given=end)


def restart(session: Session, poll: Poll, ends_at: EndsAt = None, ends_in: EndsIn = None, yes: Yes = False) -> None:
    """Start a poll again: delete its votes, and keep its definition. Acts as broadcaster, or backend for `global-…`.

    A weekly poll keeps its question and answers that way. A poll that has ended needs a new end.
    If the restart fails halfway, the error has the command that defines the poll again.

    \b
    Examples:
      extcli vote restart lunch
      extcli vote restart lunch --ends-in 7d
    """
    service, name = session.service(definer_of(poll)), visible(poll)
    end = _window(session, "ends", ends_at, ends_in)
    before = _definition(service, poll)
    if before.get("status") == "expired" and not end:
        raise UsageError(f"poll {name} has ended", fix="give its new end: --ends-in 7d")
    confirm.guard(session, f"the votes of poll {name} are deleted, and its definition stays", yes=yes)
    members = _changed(before, end) | _global_member(poll)
    _begin_again(session, service, poll, members, expected=before)
    session.output.note("; ".join([f"poll {name} has no votes now, and the same definition", *_times(end)]))


def _begin_again(
    session: Session, service: Service, poll: str, members: dict[str, Any], *, expected: dict[str, Any]
) -> None:
    """Delete the poll, and define it again.

    The service first checks the definition, in place of the `expected` one. If a later call fails, the error, or a note
    after Ctrl-C, has the command that defines the poll again.
    """
    from extcli.api.retry import until_done

    calls: list[Callable[[], Response]] = [
        lambda: service.define_poll(poll, members, expected=expected),
        lambda: service.clear_poll(poll),
        lambda: service.define_poll(poll, members),
    ]
    if session.dry_run:
        for call in calls:
            with suppress(Withheld):
                call()
        raise Withheld
    check, *lossy = calls
    check()
    try:
        answers = [until_done(call, session.resolver.timeout()) for call in lossy]
    except (CliError, KeyboardInterrupt) as error:
        body = json.dumps({"id": poll, "config": members})
        line = f"printf %s {quote(body)} | {joined([*_DEFINE, *session.resolver.flags.words()], quote)}"
        fix = f"poll {visible(poll)} may have no definition; this defines it again: {line}"
        if isinstance(error, CliError):
            error.fix = fix
        else:
            write_stderr([fix])
        raise
    session.output.show(answers[-1], views.NOTHING)


def _opened_definition(definition: dict[str, Any]) -> dict[str, Any]:
    return {"startsAt": _NONE} if definition.get("status") == "pending" else {}


def _dropped_fields(existing: dict[str, Any], members: dict[str, Any]) -> str:
    """Return what the existing definition has and the new members do not set: `prompt, options, endsAt`."""
    lost = [
        name
        for name, value in existing.items()
        if name not in _STATED
        and (value is True or value not in ((None,) if name == "userData" else _UNSET))
        and not {name, name.replace("At", "In")} & members.keys()
    ]
    return ", ".join(lost)


def add_definition_verbs(app: typer.Typer) -> None:
    """Add these commands to the noun."""
    for function in (define, edit, close, reopen, restart):
        command(app)(function)


def _definition(service: Service, poll: str) -> dict[str, Any]:
    """Return the poll's definition. Raises `Refused` if it has none."""
    try:
        response = service.read_poll_definition(poll)
    except Refused as error:
        if error.status == 404:
            error.fix = "`extcli vote define` gives it one; backend and admin must name its channel with --channel"
        raise
    try:
        return dict(document_of(response))
    except SHAPE_ERRORS as error:
        raise UnexpectedResponse(response) from error


def _definition_if_any(service: Service, poll: str, *, only_if: Callable[[], bool] = lambda: True) -> dict[str, Any]:
    """Return the poll's definition, or an empty one if it has none and `only_if` is true."""
    try:
        return _definition(service.probing(), poll)
    except Refused as error:
        if error.status != 404 or not only_if():
            raise
        return {}


def exists(service: Service, poll: str) -> bool:
    """Return whether the poll has votes or a definition."""
    return _has_votes(service, poll) or bool(_definition_if_any(service, poll))


def _has_votes(service: Service, poll: str) -> bool:
    return bool(document_of(service.probing().read_poll(poll), {"stats": {"count": int}})["stats"]["count"])


def _changed(definition: dict[str, Any], members: dict[str, Any]) -> dict[str, Any]:
    """Return a poll's definition with these members replaced. A relative time also removes the absolute time."""
    kept = {name: value for name, value in definition.items() if name not in _STATED and (value or name != "options")}
    for name in ("starts", "ends"):
        if f"{name}In" in members:
            kept.pop(f"{name}At", None)
    return kept | members


def _edit(
    session: Session,
    service: Service,
    poll: str,
    change: Callable[[dict[str, Any]], dict[str, Any] | None],
    done: str,
    *,
    given: dict[str, Any],
    read: Callable[[], dict[str, Any]] | None = None,
) -> bool:
    """Replace the definition by its `change`, again if another edit came first, so that neither is lost.

    Returns False if `change` returns `None`: there is nothing to do.
    """
    for left in reversed(range(_ATTEMPTS)):
        definition = read() if read else _definition(service, poll)
        members = change(definition)
        if members is None:
            return False
        try:
            _write(session, service, poll, members, done, given=given, expected=definition)
        except Refused as error:
            if error.status != 409 or not left:
                raise
        else:
            break
    return True


def _write(
    session: Session,
    service: Service,
    poll: str,
    members: dict[str, Any],
    done: str,
    *,
    given: dict[str, Any],
    expected: dict[str, Any] | None = None,
) -> None:
    """Define the poll, and print what was `done`, with the times among the `given` members."""
    session.warn_without_channel(definer_of(poll), "the definition", poll)
    session.output.show(service.define_poll(poll, members | _global_member(poll), expected=expected), views.NOTHING)
    session.output.note("; ".join([f"{done} poll {visible(poll)}", *_times(given)]))


def _global_member(poll: str) -> dict[str, Any]:
    """Return the member that marks the definition of a poll of all channels."""
    return {"global": True} if is_global(poll) else {}


def _times(members: dict[str, Any]) -> Iterator[str]:
    """Yield when the poll opens and closes, if these members set it."""
    for name, verb in (("starts", "opens"), ("ends", "closes")):
        if (at := members.get(f"{name}At", _NONE)) > _NONE:
            yield f"{verb} at {times.shown(at * 1000)}"
        elif after := members.get(f"{name}In"):
            yield f"{verb} in {times.span(after * 1000)}"
