"""`extcli simulate`: crowds with exact results."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from extcli.cli.confirm import Yes, guard, in_production
from extcli.cli.option_groups import with_options
from extcli.cli.shared_options import command, noun
from extcli.errors import UsageError
from extcli.session import Session

if TYPE_CHECKING:
    from extcli.simulate.crowds import Options
    from extcli.simulate.subjects import Poll, Ranking

app = noun("Simulate crowds: predict the result, send at planned instants, and compare.")

_DEFAULT_RATE, _DEFAULT_PRODUCTION_RATE = "500/s", "100/s"


class Kind(StrEnum):
    """The clients that receive broadcasts."""

    PAGE = "page"
    GAME = "game"


Viewers = Annotated[
    int,
    typer.Option("--viewers", metavar="N", min=1, max=1_000_000, help="The number of viewers. Each is another user."),
]
Mix = Annotated[
    str,
    typer.Option(
        "--mix", metavar="CHOICE:WEIGHT,…", help="The final choices and their weights, such as 0:60,1:30,2:10."
    ),
]
ChangeMind = Annotated[
    str,
    typer.Option(
        "--change-mind", metavar="SHARE", help="The share of viewers who first choose something else, such as 5%."
    ),
]
Churn = Annotated[
    str | None,
    typer.Option(
        "--churn",
        metavar="SHARE/min",
        help="The share of connections that are closed and opened again, such as 10%/min.",
    ),
]
Connections = Annotated[
    int, typer.Option(metavar="N", min=1, max=10_000, help="The largest number of connections at once.")
]
Seed = Annotated[
    int,
    typer.Option(
        metavar="N",
        min=0,
        max=2**31,
        help="A number that decides all random choices. Another seed simulates other users.",
    ),
]
Expect = Annotated[
    list[str] | None,
    typer.Option(
        "--expect",
        metavar="NAME<LIMIT",
        help="Exit 7 unless this holds, such as p99<50ms. "
        "Figures: p50 p90 p99 p999 max rate sent answered refused failed. Repeatable.",
    ),
]
Report = Annotated[
    Path | None, typer.Option("--report", metavar="FILE", help="Write a report with charts to this HTML file.")
]


def sending(
    session: Session,
    rate: Annotated[
        str | None,
        typer.Option("--rate", metavar="RATE", help="Send requests at this steady rate [500/s; in production 100/s]."),
    ] = None,
    burst: Annotated[
        str | None,
        typer.Option("--burst", metavar="TIME", help="Send all requests within this time, most of them at its start."),
    ] = None,
    churn: Churn = None,
    connections: Connections = 100,
    add: Annotated[
        bool, typer.Option("--add", help="Allow data that already exists; compare only what is added.")
    ] = False,
    expect: Expect = None,
    report: Report = None,
) -> Options:
    """Return the options that the simulations share. Raises `UsageError`."""
    from extcli.atomic_file import check_place
    from extcli.output import times
    from extcli.simulate import plan as planning
    from extcli.simulate.crowds import Manner, Options
    from extcli.simulate.expectations import parse_all
    from extcli.simulate.plan import Pace

    if rate and burst:
        raise UsageError("--rate and --burst exclude each other")
    check_place(report, "--report")
    is_production = in_production(session) if session.dry_run else session.is_production()
    if burst:
        pace = Pace(burst=times.duration(burst) / 1000)
        if not pace.burst:
            raise UsageError("--burst: give a time above zero")
    else:
        default = _DEFAULT_PRODUCTION_RATE if is_production else _DEFAULT_RATE
        pace = Pace(planning.parse_rate(rate or default, "--rate"))
    manner = Manner(connections, planning.churn(churn) if churn else 0.0, is_production)
    return Options(pace, manner, add, parse_all(expect), report)


@command(app)
@with_options("options", sending)
def crowd(
    session: Session,
    viewers: Viewers,
    mix: Mix,
    poll: Annotated[str, typer.Option("--poll", metavar="POLL", help="The poll's id.")] = "default",
    votes: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            max=10_000_000,
            help="The total number of votes. Above --viewers, viewers vote again, and the last vote counts.",
        ),
    ] = None,
    change_mind: ChangeMind = "0%",
    late: Annotated[
        str,
        typer.Option(
            metavar="SHARE", help="The share of viewers who vote after the poll is closed; their votes must be refused."
        ),
    ] = "0%",
    seed: Seed = 0,
    *,
    options: Options,
    yes: Yes = False,
) -> None:
    """Let a crowd vote in a poll, and check its result exactly.

    Latencies count from the instant at which a request was planned. Exits 7 if the result differs
    from the plan, and 3 if requests without a response leave the result uncertain. With --late, the
    poll must have a definition. The simulation waits for the poll's end, or disables a poll without
    an end.

    \b
    Examples:
      extcli simulate crowd --viewers 300 --poll final --mix 0:60,1:30,2:10
      extcli simulate crowd --viewers 50 --poll p --mix 0:1,1:1 --expect 'p99<2s'
    """
    from extcli.simulate.subjects import Poll

    fields = {"viewers": viewers, "seed": seed, "requests": votes}
    _let_choose(session, "crowd", Poll(session, poll), mix, change_mind, options, late=late, yes=yes, fields=fields)


@command(app)
@with_options("options", sending)
def rank(
    session: Session,
    viewers: Viewers,
    mix: Mix,
    ranking: Annotated[str, typer.Option("--ranking", metavar="RANKING", help="The ranking's id.")] = "default",
    answers: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            max=10_000_000,
            help="The total number of answers. Above --viewers, viewers answer again, and the last answer counts.",
        ),
    ] = None,
    change_mind: ChangeMind = "0%",
    seed: Seed = 0,
    *,
    options: Options,
    yes: Yes = False,
) -> None:
    """Let a crowd answer a ranking, and check its scores exactly.

    Exits 7 if the result differs from the plan, and 3 if requests without a response leave the
    result uncertain. The service must show the ranking to the broadcaster.

    Example: extcli simulate rank --viewers 100 --ranking title --mix 'apple:70,pear:30'
    """
    from extcli.simulate.subjects import Ranking

    fields = {"viewers": viewers, "seed": seed, "requests": answers, "total": "users", "option": "--answers"}
    _let_choose(session, "rank", Ranking(session, ranking), mix, change_mind, options, yes=yes, fields=fields)


def _let_choose(
    session: Session,
    verb: str,
    subject: Poll | Ranking,
    mix: str,
    change_mind: str,
    options: Options,
    *,
    fields: dict[str, Any],
    yes: bool,
    late: str = "0%",
) -> None:
    """Let a crowd vote or answer, after a confirmation in production. `fields` are further fields of `Crowd`."""
    from extcli.simulate import crowds
    from extcli.simulate import plan as planning

    weights = planning.mix(mix)
    subject.check(list(weights))
    changing, too_late = planning.parse_share(change_mind, "--change-mind"), planning.parse_share(late, "--late")
    whole = planning.Crowd(mix=weights, pace=options.pace, change_mind=changing, late=too_late, **fields)
    plan = planning.crowd_plan(whole)
    loss = f"{subject.what} {subject.name} gets {len(plan):,} {subject.requests} of users who do not exist"
    guard(session, loss, yes=yes)
    crowds.simulate(session, verb, subject, plan, options)


@command(app)
@with_options("options", sending)
def accumulate(
    session: Session,
    viewers: Viewers,
    buffer: Annotated[str, typer.Option("--buffer", metavar="BUFFER", help="The buffer's id.")] = "default",
    entries: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, max=1_000_000, help="The total number of entries [one per viewer]."),
    ] = None,
    seed: Seed = 0,
    *,
    options: Options,
    yes: Yes = False,
) -> None:
    """Let a crowd fill a buffer, and check that no entry is lost.

    Exits 7 if entries are missing or doubled, and 3 if requests without a response leave the result
    uncertain.

    Example: extcli simulate accumulate --viewers 20 --buffer cheers --entries 100
    """
    from extcli.simulate import crowds
    from extcli.simulate.plan import entries_plan
    from extcli.simulate.subjects import Buffer

    plan = entries_plan(viewers, entries or viewers, options.pace, seed)
    guard(session, f"buffer {buffer} gets {len(plan):,} entries of users who do not exist", yes=yes)
    crowds.simulate(session, "accumulate", Buffer(session, buffer), plan, options)


@command(app)
def socket(
    session: Session,
    connections: Annotated[
        int,
        typer.Option("--connections", metavar="N", min=1, max=20_000, help="The number of connections that listen."),
    ],
    broadcasts: Annotated[
        int,
        typer.Option(
            metavar="N", min=1, max=100_000, help="The number of broadcasts, which each connection must receive."
        ),
    ] = 10,
    kind: Annotated[Kind, typer.Option(help="Connect as pages or as games.")] = Kind.PAGE,
    event: Annotated[str, typer.Option(metavar="EVENT", help="The name of the event.")] = "simulation",
    rate: Annotated[str, typer.Option(metavar="RATE", help="How many broadcasts to send per second.")] = "5/s",
    churn: Churn = None,
    seed: Seed = 0,
    expect: Expect = None,
    report: Report = None,
    yes: Yes = False,
) -> None:
    """Let pages or games listen, and check what each receives.

    Latencies count from the instant at which a broadcast was planned until it arrives. Exits 7
    if deliveries are missing, doubled or out of order. With --churn, connections are opened
    again between two broadcasts. Acts as broadcaster.

    \b
    Examples:
      extcli simulate socket --connections 50 --broadcasts 5
      extcli simulate socket --connections 20 --kind game --expect 'max<5s'
    """
    from extcli.realtime.login import own_channel
    from extcli.simulate import audience

    options = sending(session, rate=rate, churn=churn, connections=connections, expect=expect, report=report)
    listeners = audience.Audience(
        connections=connections,
        broadcasts=broadcasts,
        kind=kind,
        event=event,
        channel=own_channel(session),
        seed=seed,
    )
    guard(session, f"channel {listeners.channel} receives {broadcasts:,} broadcasts named {event}", yes=yes)
    audience.simulate(session, listeners, options)
