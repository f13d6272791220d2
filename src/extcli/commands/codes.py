"""`extcli codes`: reward codes."""

from __future__ import annotations

from contextlib import closing
from enum import StrEnum
from typing import Annotated

from extcli.cli import argument, command, confirm, flag, noun, option
from extcli.cli.confirm import Yes
from extcli.codes import views as code_views
from extcli.codes.entries import Entries, FileFormat
from extcli.codes.upload import cutoff_time, existing_sets, grant_body, mark_users, upload_sets, user_count
from extcli.errors import ExpectationFailed, UsageError, count_text
from extcli.output import times, views
from extcli.output.sanitize import visible
from extcli.reading import Response, document_of
from extcli.session import BACKEND, VIEWER, Session

app = noun("Reward codes: upload sets, mark winners, redeem.")

Column = Annotated[
    str | None,
    option("--column NAME|N", "The column or member to read: a CSV heading, a number from 1, or a name in JSON lines."),
]
EntryFormat = Annotated[FileFormat | None, option("--format", "The format of the files. Default: by the file names.")]
Prizes = Annotated[list[int], option("--prize I", "Grant one code of the set at index I. Repeatable.", min=0, max=9)]
Limits = Annotated[
    list[str] | None,
    option(
        "--limit [I=]N",
        "The most codes that a user may get from each set, or from the set at index I, including earlier grants. "
        "Default: as many as this command grants.",
    ),
]
Reveal = Annotated[bool, flag("--reveal", "Show complete codes in tables, where they are masked by default.")]


@command(app, prints=code_views.CHECKED_SETS)
def upload(
    session: Session,
    sets: list[str] = option("--set NAME=FILE|-", "A set's name, and the file of its codes. Repeatable.", ...),
    index: list[int] | None = option("--index N", "The index of each --set. Default: numbered from 0.", min=0, max=9),
    column: Column = None,
    form: EntryFormat = None,
    yes: Yes = False,
) -> None:
    """Upload up to ten sets, each of fewer than a million codes. Acts as backend.

    The suffix of the file's name selects the format: CSV (needs --column), a JSON array or JSON
    lines. Any other file has one code per line. gzip is detected. All codes are checked before
    anything is sent.
    Existing sets at other indices stay. Replacing a set asks for confirmation, except in a sandbox;
    --yes skips the question. --dry-run checks the files, counts their codes and duplicates,
    shows which sets would be replaced, and sends nothing. Its plain output is $columns.

    \b
    Examples:
      extcli codes upload --set "Pistol skin"=pistol.txt --set Hat=hats.txt.gz
      extcli codes upload --set Hat=more-hats.csv --column code --index 1 --yes
      extcli codes upload --set Hat=hats.txt --dry-run
    """
    upload_sets(session, sets, index or [], form=form, column=column, yes=yes)


@command(app, "list", prints=code_views.ACTIVE_SETS)
def list_sets(session: Session) -> None:
    """List the active sets, and how many codes were handed out and are left. Acts as backend.

    Plain output is $columns.

    Example: extcli codes list
    """
    session.output.show(session.service(BACKEND).get("codes"), code_views.ACTIVE_SETS)


@command(app, prints=code_views.ended_sets({}))
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
        confirm.ask_about_loss(session, losses, "Codes not handed out will be lost. End all sets?")
    session.output.show(service.delete("codes"), code_views.ended_sets(existing))


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
    cutoff: str | None = option("--cutoff TIME", f"Ignore votes after this time: {times.FORMS_AGO}. Default: now."),
    unit: CutoffUnit = option("--cutoff-unit", "Send the cutoff in seconds, rounded up, or in ms.", CutoffUnit.SECONDS),
) -> None:
    """Grant codes to the users who chose the correct option. Acts as backend.

    Counts votes in all channels; --channel selects one. Reports how many users may redeem
    more codes than before.

    \b
    Examples:
      extcli codes mark-from-poll quiz --correct 2 --prize 0
      extcli codes mark-from-poll quiz --correct 2 --prize 0 --prize 1 --limit 1=3
    """
    granted = grant_body(prizes, limits or [])
    instant = times.parse_instant(cutoff, session.now, ago=True) if cutoff is not None else session.now()
    sent = cutoff_time(instant, milliseconds=unit is CutoffUnit.MILLISECONDS)
    body = {**granted, "correct": correct, "cutoff_timestamp": sent}
    response = session.service(BACKEND).post("codes/mark_from_poll", body, id=poll)
    voters = user_count(response, "extcli-users")
    users = "an unknown number of users" if voters is None else count_text(voters, "user")
    _report_marked(session, response, f"{users} voted {correct} in poll {visible(poll)}")


@command(app)
def mark_from_list(
    session: Session,
    prizes: Prizes,
    users: list[str] | None = argument("USER", "User ids.", None),
    limits: Limits = None,
    source: str | None = option("--from FILE", "A file of user ids, in any format of `codes upload`, or -."),
    column: Column = None,
    form: EntryFormat = None,
) -> None:
    """Grant codes to users by their ids. Acts as backend.

    Reports how many users may redeem more codes than before.

    \b
    Examples:
      extcli codes mark-from-list U1 U2 --prize 0
      extcli codes mark-from-list --from winners.csv --column user --prize 0
    """
    granted = grant_body(prizes, limits or [])
    if bool(users) == (source is not None):
        raise UsageError("give either user ids or --from FILE")
    service = session.service(BACKEND)
    if source is None:
        sent = len(users or [])
        response = service.post("codes/mark_from_list", {"users": users, **granted})
    else:
        with closing(Entries(source, form=form, column=column)) as listed:
            sent, response = mark_users(session, service, listed, granted)
    _report_marked(session, response, f"{count_text(sent, 'user')} sent")


def _report_marked(session: Session, response: Response, users: str) -> None:
    """Report how many of these users may redeem more codes than before."""
    session.output.show(response, views.NOTHING)
    marked = user_count(response, "extcli-marked")
    session.output.report(f"{users}; {'an unknown number' if marked is None else f'{marked:,}'} newly marked")


@command(app, prints=code_views.ELIGIBILITY)
def eligible(session: Session) -> None:
    """Show how many codes of each set the viewer may redeem. Acts as viewer:U1.

    Plain output is $columns.

    Example: extcli codes eligible --as viewer:U2
    """
    session.output.show(session.service(VIEWER).get("codes/eligibility"), code_views.ELIGIBILITY)


@command(app, prints=code_views.redeemed_codes(reveal=True))
def redeemed(session: Session, reveal: Reveal = False) -> None:
    """List the codes the viewer has redeemed. Acts as viewer:U1.

    Tables mask the codes; all other formats show them. Plain output is $columns.

    Example: extcli codes redeemed --as viewer:U2 --reveal
    """
    session.output.show(session.service(VIEWER).get("codes/redeemed"), code_views.redeemed_codes(reveal=reveal))


@command(app)
def redeem(
    session: Session, prize: int = argument("PRIZE", "The index of the code set."), reveal: Reveal = False
) -> None:
    """Redeem a code and print it. Acts as viewer:U1.

    A terminal shows it masked. Exits 7 if no code is available.

    Example: extcli codes redeem 0 --as viewer:U2 -o plain > code.txt
    """
    response = session.service(VIEWER).post("codes/redeem", {"prize": prize})
    session.output.show(response, code_views.redeemed_code_view(reveal=reveal))
    if not code_views.redeemed_code(document_of(response, object)):
        raise ExpectationFailed(
            f"no code of set {prize} is available",
            why="the viewer is not marked for the set, or has redeemed the code, or no code is left",
            fix="find out with `extcli codes eligible`, `codes redeemed` and `codes list`",
        )
