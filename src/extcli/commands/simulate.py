"""`extcli simulate`: crowds with exact results."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from extcli.cli import command, flag, noun, option
from extcli.cli.confirm import Yes, ask_in_production, in_production
from extcli.cli.options import with_options
from extcli.errors import UsageError, refuse_both
from extcli.session import Session

if TYPE_CHECKING:
    from extcli.simulate.plan import Plan
    from extcli.simulate.result import Options
    from extcli.simulate.subjects import Poll, Ranking, Subject

app = noun("Simulate crowds: plan requests and their result, send them on time, and compare.")


class Kind(StrEnum):
    """The clients that receive broadcasts."""

    PAGE = "page"
    GAME = "game"


Viewers = Annotated[int, option("--viewers N", "The number of viewers, each a different user.", min=1, max=1_000_000)]
Mix = Annotated[str, option("--mix CHOICE:WEIGHT,…", "The final choices and their weights, such as 0:60,1:30,2:10.")]
ChangeMind = Annotated[str, option("--change-mind SHARE", "Share of viewers whose first choice differs, such as 5%.")]
Burst = Annotated[str | None, option("--burst TIME", "Send all requests within this time, most of them at the start.")]
Add = Annotated[bool, flag("--add", "Allow existing data; compare only what the simulation adds.")]
Churn = Annotated[
    str | None, option("--churn SHARE/min", "The share of connections to close and open again, such as 10%/min.")
]
Seed = Annotated[
    int, option("--seed N", "The seed of all random choices. Another seed simulates other users.", min=0, max=2**31)
]
Expect = Annotated[
    list[str] | None,
    option(
        "--expect NAME<LIMIT",
        "Exit 7 unless this holds, such as p99<50ms. "
        "Figures: p50 p90 p99 p999 max rate sent answered refused failed. Repeatable.",
    ),
]
Report = Annotated[Path | None, option("--report FILE", "Write a report with charts to this HTML file.")]


def load_options(
    session: Session,
    rate: str | None = option("--rate RATE", "Send requests at this steady rate [500/s; in production 100/s]."),
    burst: Burst = None,
    churn: Churn = None,
    connections: int = option("--connections N", "The largest number of connections at once.", 100, min=1, max=10_000),
    add: Add = False,
    expect: Expect = None,
    report: Report = None,
) -> Options:
    """Return the options that the simulations share. Raises `UsageError`."""
    from extcli.atomic_file import check_writable
    from extcli.output import times
    from extcli.simulate import plan as planning
    from extcli.simulate.result import Options, parse_expectation

    refuse_both(rate, burst, "--rate and --burst")
    check_writable(report, "--report")
    is_production = in_production(session) if session.dry_run else bool(session.why_production())
    if burst:
        pace = planning.Pace(burst=times.parse_duration(burst) / 1000)
        if not pace.burst:
            raise UsageError("--burst: give a time above zero")
    else:
        default = "100/s" if is_production else "500/s"
        pace = planning.Pace(planning.parse_rate(rate or default, "--rate"))
    churned = planning.parse_churn(churn) if churn else 0.0
    expectations = list(map(parse_expectation, expect or ()))
    return Options(pace, connections, churned, is_production, add, expectations, report)


@command(app)
@with_options("options", load_options)
def crowd(
    session: Session,
    viewers: Viewers,
    mix: Mix,
    poll: str = option("--poll POLL", "The poll's id.", "default"),
    votes: int | None = option(
        "--votes N", "The number of votes. Of several votes of a viewer, the last counts.", min=1, max=10_000_000
    ),
    change_mind: ChangeMind = "0%",
    late: str = option("--late SHARE", "The share of viewers who vote too late, and must be refused.", "0%"),
    seed: Seed = 0,
    *,
    options: Options,
    yes: Yes = False,
) -> None:
    """Let a crowd vote in a poll, and check its result exactly.

    Latencies count from the planned time of a request. Exits 7 if the result differs
    from the plan, and 3 if requests without a response leave the result uncertain. With --late, the
    poll must have a definition. The simulation waits for the poll's end, or disables a poll without
    an end.

    \b
    Examples:
      extcli simulate crowd --viewers 300 --poll final --mix 0:60,1:30,2:10
      extcli simulate crowd --viewers 50 --poll p --mix 0:1,1:1 --expect 'p99<2s'
    """
    from extcli.simulate.subjects import Poll

    subject = Poll(session, poll)
    _run_crowd(subject, mix, change_mind, options, viewers=viewers, requests=votes, seed=seed, yes=yes, late=late)


@command(app)
@with_options("options", load_options)
def rank(
    session: Session,
    viewers: Viewers,
    mix: Mix,
    ranking: str = option("--ranking RANKING", "The ranking's id.", "default"),
    answers: int | None = option(
        "--answers N", "The number of answers. Of several answers of a viewer, the last counts.", min=1, max=10_000_000
    ),
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

    subject = Ranking(session, ranking)
    _run_crowd(subject, mix, change_mind, options, viewers=viewers, requests=answers, seed=seed, yes=yes)


def _run_crowd(
    subject: Poll | Ranking, mix: str, change_mind: str, options: Options, *, yes: bool, late: str = "0%", **more: Any
) -> None:
    """Let a crowd vote or answer. `more` are further arguments of `plan_crowd`."""
    from extcli.simulate import plan as planning

    weights = planning.parse_mix(mix)
    subject.check_choices(list(weights))
    more["change_mind"] = planning.parse_share(change_mind, "--change-mind")
    more["late"] = planning.parse_share(late, "--late")
    plan = planning.plan_crowd(mix=weights, pace=options.pace, what=subject.requests, **more)
    _run_plan(subject, plan, options, yes=yes)


def _run_plan(subject: Subject, plan: Plan, options: Options, *, yes: bool) -> None:
    """Run a plan, after a confirmation in production."""
    from extcli.simulate import crowds

    loss = f"{subject.what} {subject.name} gets {len(plan):,} {subject.requests} from simulated users"
    ask_in_production(subject.session, loss, yes=yes)
    crowds.simulate(subject, plan, options)


@command(app)
@with_options("options", load_options)
def accumulate(
    session: Session,
    viewers: Viewers,
    buffer: str = option("--buffer BUFFER", "The buffer's id.", "default"),
    entries: int | None = option("--entries N", "The total number of entries [one per viewer].", min=1, max=1_000_000),
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
    from extcli.simulate.plan import plan_entries
    from extcli.simulate.subjects import Buffer

    plan = plan_entries(viewers, entries or viewers, options.pace, seed)
    _run_plan(Buffer(session, buffer), plan, options, yes=yes)


@command(app)
def socket(
    session: Session,
    connections: int = option("--connections N", "The number of connections that listen.", ..., min=1, max=20_000),
    broadcasts: int = option("--broadcasts N", "The number of broadcasts to send.", 10, min=1, max=100_000),
    kind: Kind = option("--kind", "Connect as pages or as games.", Kind.PAGE),
    event: str = option("--event EVENT", "The name of the event.", "simulation"),
    rate: str = option("--rate RATE", "How many broadcasts to send per second.", "5/s"),
    churn: Churn = None,
    seed: Seed = 0,
    expect: Expect = None,
    report: Report = None,
    yes: Yes = False,
) -> None:
    """Let pages or games listen, and check what each receives.

    Latencies count from the planned time of a broadcast until it arrives. Exits 7
    if deliveries are missing, doubled or out of order. With --churn, connections are closed
    and opened again between two broadcasts. Acts as broadcaster.

    \b
    Examples:
      extcli simulate socket --connections 50 --broadcasts 5
      extcli simulate socket --connections 20 --kind game --expect 'max<5s'
    """
    from extcli.realtime.login import own_channel
    from extcli.simulate import listeners

    options = load_options(session, rate=rate, churn=churn, connections=connections, expect=expect, report=report)
    audience = listeners.Audience(broadcasts, kind, event, own_channel(session), seed)
    ask_in_production(session, f"channel {audience.channel} receives {broadcasts:,} broadcasts named {event}", yes=yes)
    listeners.simulate(session, audience, options)
