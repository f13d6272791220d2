"""`extcli codes`: reward codes for the winners of a poll."""

from __future__ import annotations

from contextlib import closing
from typing import Annotated

import typer

from extcli.cli.confirm import Yes
from extcli.cli.shared_options import command, noun
from extcli.codes.entries import Entries
from extcli.codes.formats import FileFormat
from extcli.errors import ExpectationFailed, UsageError
from extcli.output import times, views
from extcli.output.sanitize import visible
from extcli.session import BACKEND, VIEWER, Session

app = noun("Codes: upload sets, mark winners, redeem.")

Sets = Annotated[
    list[str],
    typer.Option(
        "--set", metavar="NAME=FILE", help="A set and its codes, - for standard input; repeat it.", show_default=False
    ),
]
Column = Annotated[
    str | None,
    typer.Option(
        metavar="NAME|N",
        help="The column of CSV, by its heading or, without headings, its number; the member of JSON lines.",
        show_default=False,
    ),
]
Form = Annotated[
    FileFormat | None,
    typer.Option("--format", help="What the files are, whatever their names end in.", show_default=False),
]
Duplicates = Annotated[bool, typer.Option("--allow-duplicates", help="The same code may come twice.")]
Prizes = Annotated[
    list[int],
    typer.Option("--prize", metavar="I", help="A code of this set; repeat it for more than one.", show_default=False),
]
Limits = Annotated[
    list[str] | None,
    typer.Option(
        "--limit",
        metavar="[I=]N",
        help="The most codes that a user may have of each set, or of set I; what they hold counts. "
        "Else as many as are granted.",
        show_default=False,
    ),
]
Reveal = Annotated[bool, typer.Option("--reveal", help="Show codes in full in a table, too.")]


@command(app)
def upload(
    session: Session,
    sets: Sets,
    index: Annotated[
        list[int] | None,
        typer.Option(
            "--index", metavar="N", help="Where the sets go, 0 to 9, one for each; else 0, 1, ….", show_default=False
        ),
    ] = None,
    column: Column = None,
    form: Form = None,
    allow_duplicates: Duplicates = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check, ask the service what is there, send nothing.")
    ] = False,
    yes: Yes = False,
) -> None:
    """Define sets of codes, at most ten of under a million each. Acts as backend.

    A file has one code on each line, or is CSV (with --column), a JSON array or JSON
    lines by its name; gzip is recognised. All codes are checked before anything is
    sent. Sets at other indices stay. Replacing a set needs a yes.

    \b
    Examples:
      extcli codes upload --set "Pistol skin"=pistol.txt --set Hat=hats.txt.gz
      extcli codes upload --set Hat=more-hats.csv --column code --index 1 --yes
      extcli codes upload --set Hat=hats.txt --dry-run
    """
    from extcli.cli import confirm
    from extcli.codes import sets as code_sets
    from extcli.codes import upload
    from extcli.codes import views as code_views

    opened = code_sets.open_sets(sets, index or [], form=form, column=column)
    try:
        upload.look_at(session, opened, allow_duplicates=allow_duplicates).check()
        service = session.service(BACKEND)
        giving_way = upload.replaced(opened, upload.sets_there(service))
        if dry_run:
            found = [{**each.facts(), "replaces": giving_way.get(each.index)} for each in opened]
            session.output.show_value(found, code_views.INSPECTION)
            session.output.note("nothing was sent")
            return
        losses = upload.losses(opened, giving_way)
        if losses and not yes:
            confirm.ask(session, losses, "What was not handed out of the old codes is lost. Replace them?")
        codes = sum(each.count for each in opened)
        what = f"{upload.counted(len(opened), 'set')} of {upload.counted(codes, 'code')}"
        body = upload.body_of(opened, name_indices=bool(index))
        session.output.show(upload.send(session, body, service.define_codes, what), views.NOTHING)
    finally:
        code_sets.close(opened)


@command(app)
def check(
    session: Session,
    sets: Sets,
    column: Column = None,
    form: Form = None,
    allow_duplicates: Duplicates = False,
) -> None:
    """Check sets of codes as upload does, asking nobody.

    Faults are named by line, with exit code 2. Plain output is index, name, codes,
    longest, duplicates and those in earlier sets, separated by tabs.

    Example: extcli codes check --set Hat=hats.txt
    """
    from extcli.codes import sets as code_sets
    from extcli.codes import upload
    from extcli.codes import views as code_views

    opened = code_sets.open_sets(sets, [], form=form, column=column)
    try:
        faults = upload.look_at(session, opened, allow_duplicates=allow_duplicates)
        session.output.show_value([each.facts() for each in opened], code_views.INSPECTION)
        faults.check()
    finally:
        code_sets.close(opened)


@command(app, "list")
def list_sets(session: Session) -> None:
    """List the active sets. Acts as backend.

    Plain output is `index<TAB>name`.

    Example: extcli codes list
    """
    from extcli.codes import views as code_views

    session.output.show(session.service(BACKEND).list_codes(), code_views.SETS)


@command(app)
def rm(session: Session, yes: Yes = False) -> None:
    """End all sets, and tell how many codes were handed out. Acts as backend.

    Eligibility ends with them; viewers keep the codes they have. Plain output is `index<TAB>name<TAB>handed out`.

    Example: extcli codes rm --yes
    """
    from extcli.cli import confirm
    from extcli.codes import upload
    from extcli.codes import views as code_views

    service = session.service(BACKEND)
    there = upload.sets_there(service)
    if there and not yes:
        losses = [f"set {index}, {visible(name)!r}, ends" for index, name in sorted(there.items())]
        confirm.ask(session, losses, "Codes that were not handed out are lost. End all sets?")
    session.output.show(service.clear_codes(), code_views.distributed(there))


@command(app)
def mark_from_poll(
    session: Session,
    correct: Annotated[int, typer.Option("--correct", metavar="N", help="The vote that wins.", show_default=False)],
    prizes: Prizes,
    poll: Annotated[str, typer.Argument(metavar="POLL", help="The poll's id.")] = "default",
    limits: Limits = None,
    cutoff: Annotated[
        str | None,
        typer.Option(
            metavar="INSTANT",
            help="Later votes do not win: Unix ms, Unix seconds or ISO 8601; else now.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Grant codes to everybody whose latest vote is right. Acts as backend.

    That is in all channels, unless --channel names one.

    \b
    Examples:
      extcli codes mark-from-poll quiz --correct 2 --prize 0
      extcli codes mark-from-poll quiz --correct 2 --prize 0 --prize 1 --limit 1=3
    """
    from extcli import clock
    from extcli.codes import grants

    granted = grants.grant(prizes, limits or [])
    instant = grants.cutoff(cutoff) if cutoff is not None else session.service_now() or clock.now()
    body = {**granted, "correct": correct, "cutoff_timestamp": instant}
    service = session.service(BACKEND)
    session.output.show(service.mark_from_poll(poll, body), views.NOTHING)
    if grants.has_votes(service, poll):
        session.output.note(f"those who voted {correct} in poll {poll} by {times.shown(instant)} are marked")
    else:
        session.output.report(f"poll {visible(poll)} has no votes: nobody is marked")


@command(app)
def mark_from_list(
    session: Session,
    prizes: Prizes,
    users: Annotated[list[str] | None, typer.Argument(metavar="USER", help="Users' ids.", show_default=False)] = None,
    limits: Limits = None,
    source: Annotated[
        str | None,
        typer.Option("--from", metavar="FILE", help="Ids in a file, written like codes; - too.", show_default=False),
    ] = None,
    column: Column = None,
    form: Form = None,
) -> None:
    """Grant codes to users by their ids. Acts as backend.

    \b
    Examples:
      extcli codes mark-from-list U1 U2 --prize 0
      extcli codes mark-from-list --from winners.csv --column user --prize 0
    """
    from extcli.codes import grants, upload

    granted = grants.grant(prizes, limits or [])
    if bool(users) == (source is not None):
        raise UsageError("nobody to mark, or too much", fix="give either user ids or --from FILE")
    service = session.service(BACKEND)
    if source is None:
        answer = service.mark_from_list(grants.named(users or [], granted))
    else:
        with closing(Entries(source, form=form, column=column, take_numbers=True)) as listed:
            answer = upload.mark_all(session, listed, granted, service.mark_from_list)
    session.output.show(answer, views.NOTHING)


@command(app)
def eligible(session: Session) -> None:
    """Show how many codes of each set may be redeemed. Acts as viewer:U1.

    Plain output is `index<TAB>count`.

    Example: extcli codes eligible --as viewer:U2
    """
    from extcli.codes import views as code_views

    session.output.show(session.service(VIEWER).read_eligibility(), code_views.ELIGIBILITY)


@command(app)
def redeemed(session: Session, reveal: Reveal = False) -> None:
    """List the codes that were redeemed. Acts as viewer:U1.

    A table masks them. Plain output is `index<TAB>code`, in full.

    Example: extcli codes redeemed --as viewer:U2 --reveal
    """
    from extcli.codes import views as code_views

    session.output.show(session.service(VIEWER).read_redeemed(), code_views.redeemed(reveal=reveal))
    if not reveal:
        session.output.note("--reveal shows codes in full")


@command(app)
def redeem(
    session: Session,
    prize: Annotated[int, typer.Argument(metavar="PRIZE", help="The index of the set.")],
    reveal: Reveal = False,
) -> None:
    """Exchange eligibility for a code, and print it. Acts as viewer:U1.

    A terminal shows it masked. Without a code the exit code is 7.

    Example: extcli codes redeem 0 --as viewer:U2 -o plain > code.txt
    """
    from extcli.codes import views as code_views

    answer = session.service(VIEWER).redeem_code(prize)
    session.output.show(answer, code_views.redemption(reveal=reveal))
    if not reveal and code_views.codes_of(answer.json()):
        session.output.note("it is handed out once; `extcli codes redeemed --reveal` shows it in full")
    if not code_views.codes_of(answer.json()):
        raise ExpectationFailed(
            f"there is no code of set {prize}",
            why="the user is not eligible, has redeemed it before, or the set has none left",
            fix="`extcli codes eligible` and `extcli codes redeemed` say which",
        )
