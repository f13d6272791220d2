"""`extcli fault`: failures that the emulator produces on purpose."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from emulator.contract.faults import CONDITIONS, effect_text, remaining_limits
from extcli.cli import Watch, argument, command, flag, noun, option, show_live
from extcli.cli.options import parameters_of, replace_parameters
from extcli.faults import checked_members, load_faults
from extcli.output import times
from extcli.output.columns import Column, listing
from extcli.output.views import member_view
from extcli.session import Session
from extcli.simulate.plan import parse_share

app = noun("Faults: failures that the emulator makes on purpose, to test how a client copes.")


def _condition_text(fault: dict[str, Any]) -> str:
    """Return the conditions of a fault besides its match: `role=viewer channel=1001`."""
    return " ".join(f"{name}={fault[name]}" for name in CONDITIONS if fault[name])


def _second_text(milliseconds: int) -> str:
    return times.utc_text(milliseconds // 1000 * 1000)


FAULTS = listing(
    "faults",
    Column("id", heading=""),
    Column("match", in_table=False),
    Column("conditions", _condition_text, in_table=False),
    Column("", lambda each: f"{each['match']} {_condition_text(each)}".strip(), "match"),
    Column("effect", lambda fault: effect_text(fault, times.duration_text)),
    Column("hits", right=True),
    Column("left", lambda fault: remaining_limits(fault, _second_text)),
    else_shown="no faults",
)
ADDED_FAULT_VIEW = member_view("id", lambda fault: FAULTS.table({"faults": [fault]}))
REMOVED_COUNT = member_view("removed", lambda document: f"{document['removed']} removed")


@dataclass(repr=False, eq=False)
class FaultOptions:
    """The options of `fault add`, under the names of a fault in a file."""

    match: str | None = option("--match TEXT", "What fails: 'POST /v1/e/vote', 'SOCKET set state' or 'BROADCAST *'.")
    event: str | None = option("--event NAME", "Apply only to this event. Without --match, apply to its broadcasts.")
    role: str | None = option("--role ROLE", "Apply only to callers with this role.")
    user: str | None = option("--user ID", "Apply only to this user.")
    id: str | None = option("--id NAME", "The fault's id. An existing fault with this id is replaced [f1, f2, …].")
    status: int | None = option("--status CODE", "Respond with this status, such as 503.")
    retry_after: int | None = option("--retry-after SECONDS", "With --status: the seconds of the Retry-After header.")
    delay: str | None = option("--delay TIME[..TIME]", "Delay the response: 200ms, or a random time in 200ms..2s.")
    drop: bool = flag("--drop", "Close the connection without a response.")
    reset: bool = flag("--reset", "Reset the connection with a TCP RST.")
    truncate: int | None = option("--truncate BYTES", "Cut the response's body after this many bytes.")
    stall: bool = flag("--stall", "Never respond; the connection stays open.")
    close: int | None = option("--close CODE", "Close the socket with this close code, such as 1012.")
    lose: bool = flag("--lose", "Do not deliver the broadcast.")
    double: bool = flag("--double", "Deliver the broadcast twice.")
    reorder: bool = flag("--reorder", "Deliver the broadcast after the next one.")
    times: int | None = option("--times N", "Stop after the fault has acted N times.")
    share: str | None = option("--share SHARE", "Act only on this share of matches, chosen at random: 10% or 0.1.")
    seed: int | None = option("--seed N", "The random seed of --share and --delay. The same seed repeats a run [0].")
    for_: str | None = option("--for TIME", "Stop after this time by the emulator's clock, such as 10s.")


def add(session: Session, **options: Any) -> None:
    """Add a fault. Plain output is its id.

    A fault matches HTTP requests, socket messages or broadcasts, and has one effect on them.
    --channel and --client-id also limit it. `*` stands for any method, action or target, and at the
    end of a path for any rest. 'SOCKET connect' is the handshake of games and pages.

    \b
    Examples:
      extcli fault add --match 'POST /v1/e/vote' --status 503 --times 3
      extcli fault add --match '* /v1/e/*' --delay 200ms..2s --share 0.1
      extcli fault add --match 'SOCKET set state' --close 1012 --times 1
      extcli fault add --event round-over --lose --for 10s
    """
    flags = session.resolver.flags
    options |= {"for": options.pop("for_"), "channel": flags.channel, "client_id": flags.client_id}
    if options["share"] is not None:
        options["share"] = float(parse_share(options["share"], "--share"))
    members = checked_members(options, lambda name: f"--{name.replace('_', '-')}")
    session.output.show(session.control().post("faults", members), ADDED_FAULT_VIEW)


command(app)(replace_parameters(add, [*parameters_of(add)[:1], *parameters_of(FaultOptions)]))


@command(app, "list", prints=FAULTS)
def list_faults(session: Session, watch: Watch = False) -> None:
    """List the faults, oldest first. If several match a request, the oldest acts.

    Plain output is $columns.

    \b
    Examples:
      extcli fault list
      extcli fault list --watch
    """
    control = session.control()
    show_live(session, lambda: session.output.show(control.get("faults"), FAULTS), watch=watch)


@command(app)
def rm(session: Session, id: str = argument("ID", "The fault's id.")) -> None:
    """Remove a fault, and end the requests that it stalls.

    Example: extcli fault rm f1
    """
    session.output.show(session.control().post("faults/remove", {"id": id}), REMOVED_COUNT)


@command(app)
def clear(session: Session) -> None:
    """Remove all faults, as `extcli reset` also does. Plain output is the number of removed faults.

    Example: extcli fault clear
    """
    session.output.show(session.control().delete("faults"), REMOVED_COUNT)


@command(app)
def load(
    session: Session, file: str = argument("FILE", "A TOML file, or JSON if its name ends in .json; or -.")
) -> None:
    """Replace all faults with the faults of a file. If one is invalid, nothing changes.

    The file has a table [[faults]] for each fault, with the options of `fault add` as fields:
    match = "POST /v1/e/vote", status = 503, retry_after = 1, times = 3. For an effect without a
    value, write drop = true. Errors name the line, column and field.

    Example: extcli fault load faults.toml
    """
    session.output.show(load_faults(file, os.environ, session.control()), FAULTS)
