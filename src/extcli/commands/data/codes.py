"""`extcli codes`: reward codes."""

from __future__ import annotations

from contextlib import closing
from enum import StrEnum
from typing import Annotated

from extcli.cli import argument, command, confirm, flag, noun, option
from extcli.cli.confirm import Yes
from extcli.codes import views as code_views
from extcli.codes.entries import Entries, FileFormat
from extcli.codes.streamed_body import counted
from extcli.codes.upload import existing_sets, plan_upload
from extcli.errors import ExpectationFailed, UsageError
from extcli.output import times, views
from extcli.output.sanitize import visible
from extcli.reading.shapes import document_of
from extcli.session import BACKEND, VIEWER, Session

app = noun("Reward codes: upload sets, mark winners, redeem.")

Sets = Annotated[
    list[str], option("--set NAME=FILE", "A set's name and the file of its codes; - reads standard input. Repeatable.")
]
Column = Annotated[
    str | None,
    option(
        "--column NAME|N",
        "Where the codes are: a column of a CSV file, by heading or by number from 1, or a member of JSON lines.",
    ),
]
Form = Annotated[
    FileFormat | None, option("--format", "The format of the files. Default: by their file name extension.")
]
Prizes = Annotated[list[int], option("--prize I", "Grant one code of the set at index I. Repeatable.")]
Limits = Annotated[
    list[str] | None,
    option(
        "--limit [I=]N",
        "The most codes a user may get of each set, or of the set at index I, including earlier grants. "
        "Default: as many as this command grants.",
    ),
]
Reveal = Annotated[bool, flag("--reveal", "Show complete codes in tables, where they are masked by default.")]


@command(app, prints=code_views.CHECKED_SETS)
def upload(
    session: Session,
    sets: Sets,
    index: list[int] | None = option(
        "--index N", "The index of a set, 0 to 9; give one for each --set. By default 0, 1, …."
    ),
    column: Column = None,
    form: Form = None,
    yes: Yes = False,
) -> None:
    """Upload up to ten sets, each of fewer than a million codes. Acts as backend.

    The extension of a file decides its format: CSV (needs --column), a JSON array, JSON lines,
    otherwise one code per line. gzip is detected. All codes are checked before anything is sent.
    Existing sets at other indices stay. Replacing a set asks for confirmation, except in a sandbox;
    --yes skips it. --dry-run checks the files, counts their codes and duplicates,
    shows what would be replaced, and sends nothing. Its plain output is $columns.

    \b
    Examples:
      extcli codes upload --set "Pistol skin"=pistol.txt --set Hat=hats.txt.gz
      extcli codes upload --set Hat=more-hats.csv --column code --index 1 --yes
      extcli codes upload --set Hat=hats.txt --dry-run
    """
    with plan_upload(session, sets, index or [], form=form, column=column) as plan:
        if session.dry_run:
            session.output.show_value(plan.facts(), code_views.CHECKED_SETS)
            session.output.note("nothing was sent")
            return
        losses = plan.losses()
        if losses and not yes and not confirm.in_sandbox(session):
            confirm.ask(session, losses, "Codes not handed out from the old sets will be lost. Replace them?")
        session.output.show(plan.send(), views.NOTHING)
        for line in plan.changes():
            session.output.report(line)


@command(app, "list", prints=code_views.SETS)
def list_sets(session: Session) -> None:
    """List the active sets, with the codes handed out and left. Acts as backend.

    Plain output is $columns.

    Example: extcli codes list
    """
    session.output.show(session.service(BACKEND).list_codes(), code_views.SETS)


@command(app, prints=code_views.distributed({}))
def rm(session: Session, yes: Yes = False) -> None:
    """End all sets, and print how many codes each handed out. Acts as backend.

    Viewers keep the codes they have redeemed, but can redeem no more. Asks for
    confirmation, except in a sandbox; --yes skips it. Plain output is
    $columns.

    Example: extcli codes rm --yes
    """
    service = session.service(BACKEND)
    existing = existing_sets(service)
    if existing and not yes and not confirm.in_sandbox(session):
        losses = [f"set {index}, {visible(name)!r}, ends" for index, name in sorted(existing.items())]
        confirm.ask(session, losses, "Codes not handed out will be lost. End all sets?")
    session.output.show(service.clear_codes(), code_views.distributed(existing))


class CutoffUnit(StrEnum):
    """The unit of a time that is sent."""

    SECONDS = "s"
    MILLISECONDS = "ms"


@command(app)
def mark_from_poll(
    session: Session,
    correct: Annotated[int, option("--correct N", "The value of the correct vote.")],
    prizes: Prizes,
    poll: str = argument("POLL", "The poll's id.", "default"),
    limits: Limits = None,
    cutoff: str | None = option("--cutoff TIME", f"Ignore later votes: {times.FORMS_AGO}. Default: now."),
    unit: CutoffUnit = option("--cutoff-unit", "Send the time in seconds, rounded up, or in ms.", CutoffUnit.SECONDS),
) -> None:
    """Grant codes to the users who chose the correct option. Acts as backend.

    Counts votes in all channels; --channel selects one. Reports how many users may redeem
    more codes than before.

    \b
    Examples:
      extcli codes mark-from-poll quiz --correct 2 --prize 0
      extcli codes mark-from-poll quiz --correct 2 --prize 0 --prize 1 --limit 1=3
    """
    from extcli.codes import upload

    granted = upload.grant(prizes, limits or [])
    instant = times.instant(cutoff, session.now, ago=True) if cutoff is not None else session.now()
    sent = upload.cutoff_of(instant, milliseconds=unit is CutoffUnit.MILLISECONDS)
    body = {**granted, "correct": correct, "cutoff_timestamp": sent}
    service = session.service(BACKEND)
    response = service.mark_from_poll(poll, body)
    session.output.show(response, views.NOTHING)
    marked = upload.count_in(response, "extcli-marked")
    if not marked and not upload.has_votes(service, poll):
        session.output.report(f"poll {visible(poll)} has no votes; no user was marked")
        return
    voted, voters = (
        f"voted {correct} in poll {visible(poll)} by {times.shown(times.instant(str(sent), session.now))}",
        upload.count_in(response, "extcli-users"),
    )
    if marked is None:
        session.output.report(f"marked all users who {voted}")
    elif voters is None:
        session.output.report(f"marked {counted(marked, 'user')} who {voted}")
    else:
        session.output.report(f"{counted(voters, 'user')} {voted}; {marked:,} newly marked")


@command(app)
def mark_from_list(
    session: Session,
    prizes: Prizes,
    users: list[str] | None = argument("USER", "User ids.", None),
    limits: Limits = None,
    source: str | None = option(
        "--from FILE", "A file of user ids, in any format that `codes upload` reads; - reads standard input."
    ),
    column: Column = None,
    form: Form = None,
) -> None:
    """Grant codes to users by their ids. Acts as backend.

    Reports how many users may redeem more codes than before.

    \b
    Examples:
      extcli codes mark-from-list U1 U2 --prize 0
      extcli codes mark-from-list --from winners.csv --column user --prize 0
    """
    from extcli.codes import upload

    granted = upload.grant(prizes, limits or [])
    if bool(users) == (source is not None):
        raise UsageError("no users, or two lists of users", fix="give either user ids or --from FILE")
    service = session.service(BACKEND)
    if source is None:
        sent, response = len(users or []), service.mark_from_list(upload.body_of(users or [], granted))
    else:
        with closing(Entries(source, form=form, column=column, take_numbers=True)) as listed:
            sent, response = upload.mark_all(session, service, listed, granted)
    session.output.show(response, views.NOTHING)
    marked = upload.count_in(response, "extcli-marked")
    session.output.report(
        f"sent {counted(sent, 'user')}; the service does not say how many it marked"
        if marked is None
        else f"{counted(sent, 'user')} sent, {marked:,} newly marked"
    )


@command(app, prints=code_views.ELIGIBILITY)
def eligible(session: Session) -> None:
    """Show how many codes of each set the viewer may redeem. Acts as viewer:U1.

    Plain output is $columns.

    Example: extcli codes eligible --as viewer:U2
    """
    session.output.show(session.service(VIEWER).read_eligibility(), code_views.ELIGIBILITY)


@command(app, prints=code_views.redeemed(reveal=True))
def redeemed(session: Session, reveal: Reveal = False) -> None:
    """List the codes the viewer has redeemed. Acts as viewer:U1.

    Tables mask the codes; all other formats show them. Plain output is $columns.

    Example: extcli codes redeemed --as viewer:U2 --reveal
    """
    session.output.show(session.service(VIEWER).read_redeemed(), code_views.redeemed(reveal=reveal))
    if not reveal:
        session.output.note("--reveal shows complete codes")


@command(app)
def redeem(session: Session, prize: int = argument("PRIZE", "The index of the set."), reveal: Reveal = False) -> None:
    """Redeem a code and print it. Acts as viewer:U1.

    A terminal shows it masked. Exits 7 if no code is available.

    Example: extcli codes redeem 0 --as viewer:U2 -o plain > code.txt
    """
    response = session.service(VIEWER).redeem_code(prize)
    session.output.show(response, code_views.redemption(reveal=reveal))
    if not code_views.codes_of(document_of(response, object)):
        raise ExpectationFailed(
            f"no code of set {prize} is available",
            why="the viewer is not marked for it or has redeemed it already, or the set is used up",
            fix="`extcli codes eligible`, `redeemed` and `list` show which",
        )
    if not reveal:
        session.output.note("codes are handed out once; `extcli codes redeemed --reveal` shows it in full")
