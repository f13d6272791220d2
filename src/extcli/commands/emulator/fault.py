"""`extcli fault`: failures that the emulator produces on purpose."""

from __future__ import annotations

import os
from typing import Annotated, Any

from extcli.cli import Watch, argument, command, flag, noun, option, repeat
from extcli.output import times
from extcli.output.columns import Column, listing, shown
from extcli.output.sanitize import visible
from extcli.output.views import member_view
from extcli.session import Session

app = noun("Faults: failures of the emulator on purpose, to test how a client copes.")

Reset = Annotated[bool, flag("--reset", "Reset the connection with a TCP RST.")]
Close = Annotated[int | None, option("--close CODE", "Close the socket with this close code, such as 1012.")]


_CONDITIONS = ("role", "channel", "user", "client_id", "event")


def conditions_of(fault: dict[str, Any]) -> str:
    """Return the conditions of a fault besides its match: `role=viewer channel=1001`."""
    return " ".join(f"{name}={fault[name]}" for name in _CONDITIONS if fault.get(name))


def effect_of(fault: dict[str, Any]) -> str:
    """Return what a fault does: `status 503, retry after 1 s`."""
    effect = str(fault["effect"])
    if effect == "status":
        after = fault.get("retry_after")
        return f"status {fault['status']}" + (f", retry after {after} s" if after is not None else "")
    if effect == "delay":
        longest = fault.get("delay_max")
        return f"delay {times.span(fault['delay'])}" + (f" to {times.span(longest)}" if longest else "")
    if effect == "truncate":
        return f"truncate after {fault['bytes']} bytes"
    return f"close {fault['code']}" if effect == "close" else effect


def remaining_limits(fault: dict[str, Any]) -> str:
    """Return how much longer a fault acts: `2 of 3`, `10% at random`, `until 20:15:00Z`; empty if nothing limits it."""
    parts = []
    if fault.get("left") is not None:
        parts.append(f"{fault['left']} of {fault['times']}")
    if fault.get("share") is not None:
        parts.append(f"{fault['share'] * 100:.4g}% at random")
    if fault.get("ends_at") is not None:
        parts.append(f"until {times.shown(fault['ends_at'] // 1000 * 1000)}")
    return ", ".join(parts)


FAULTS = listing(
    "faults",
    Column("id", heading="", folds=True),
    Column("match", in_table=False),
    Column("conditions", conditions_of, in_table=False),
    Column("", lambda each: f"{each['match']} {conditions_of(each)}".strip(), "match", folds=True),
    Column("effect", effect_of, folds=True),
    Column("hits", text=shown, right=True),
    Column("left", remaining_limits, folds=True),
    else_shown="no faults",
)
FAULT = member_view(
    "id",
    lambda fault: (
        visible(f"fault {fault['id']}: {fault['match']} {conditions_of(fault)}".rstrip()) + f", {effect_of(fault)}"
    ),
)
"""A fault that was added."""

REMOVED = member_view("removed", lambda document: f"{document['removed']} removed")
"""How many faults were removed."""


@command(app)
def add(
    session: Session,
    match: str | None = option(
        "--match TEXT",
        "What the fault applies to: 'POST /v1/e/vote', '* /v1/e/*', 'SOCKET set state', 'BROADCAST *', …",
    ),
    event: str | None = option("--event NAME", "Apply only to this event. Without --match, apply to its broadcasts."),
    role: str | None = option("--role ROLE", "Apply only to callers with this role."),
    user: str | None = option("--user ID", "Apply only to this user."),
    id: str | None = option("--id NAME", "The fault's id. An existing fault with this id is replaced [f1, f2, …]."),
    status: int | None = option("--status CODE", "Respond with this status, such as 503."),
    retry_after: int | None = option(
        "--retry-after SECONDS", "With --status: send Retry-After with this many seconds."
    ),
    delay: str | None = option(
        "--delay TIME[..TIME]", "Delay the response: 200ms, or a random delay within 200ms..2s."
    ),
    drop: bool = flag("--drop", "Close the connection without a response."),
    reset: Reset = False,
    truncate: int | None = option("--truncate BYTES", "Cut the response's body after this many bytes."),
    stall: bool = flag("--stall", "Never respond; the connection stays open."),
    close: Close = None,
    lose: bool = flag("--lose", "Do not deliver the broadcast."),
    double: bool = flag("--double", "Deliver the broadcast twice."),
    reorder: bool = flag("--reorder", "Deliver the broadcast after the next one."),
    times: int | None = option("--times N", "Stop after the fault has acted N times."),
    share: str | None = option("--share SHARE", "Act only on this share of matches, chosen at random: 10% or 0.1."),
    seed: int | None = option(
        "--seed N", "The random seed of --share and --delay: another number makes other choices [0]."
    ),
    lasts: str | None = option("--for TIME", "Stop after this long, by the emulator's clock: 10s."),
) -> None:
    """Add a fault. Plain output is its id.

    A fault matches HTTP requests, socket messages or broadcasts, and has one effect on them.
    --channel and --client-id also limit it. `*` stands for any method, action or target, and for
    any end of a path. 'SOCKET connect' is the handshake of games and pages.

    \b
    Examples:
      extcli fault add --match 'POST /v1/e/vote' --status 503 --times 3
      extcli fault add --match '* /v1/e/*' --delay 200ms..2s --share 0.1
      extcli fault add --match 'SOCKET set state' --close 1012 --times 1
      extcli fault add --event round-over --lose --for 10s
    """
    from extcli.faults import checked_members
    from extcli.simulate.plan import parse_share

    flags = session.resolver.flags
    values: dict[str, Any] = {
        "id": id, "match": match, "event": event, "role": role, "user": user, "channel": flags.channel,
        "client_id": flags.client_id, "status": status, "retry_after": retry_after, "delay": delay,
        "drop": drop, "reset": reset, "truncate": truncate, "stall": stall, "close": close,
        "lose": lose, "double": double, "reorder": reorder, "times": times,
        "share": None if share is None else float(parse_share(share, "--share")),
        "seed": seed, "for": lasts,
    }  # fmt: skip
    session.output.show(session.control().add_fault(checked_members(values, _named)), FAULT)


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
    repeat(session, lambda: session.output.show(control.list_faults(), FAULTS), watch=watch)


@command(app)
def rm(session: Session, id: str = argument("ID", "The fault's id.")) -> None:
    """Remove a fault. Requests that the fault stalls are ended.

    Example: extcli fault rm f1
    """
    session.output.show(session.control().remove_fault(id), REMOVED)


@command(app)
def clear(session: Session) -> None:
    """Remove all faults, as `extcli reset` also does. Plain output is the number of removed faults.

    Example: extcli fault clear
    """
    session.output.show(session.control().clear_faults(), REMOVED)


@command(app)
def load(
    session: Session, file: str = argument("FILE", "The faults: TOML, or JSON if its name ends in .json; or -.")
) -> None:
    """Replace all faults with the faults of a file. If one is invalid, nothing changes.

    The file has a table [[faults]] for each, with the options of `fault add` as fields:
    match = "POST /v1/e/vote", status = 503, retry_after = 1, times = 3. An effect without a
    value is true. Each error has its line, column and field.

    Example: extcli fault load faults.toml
    """
    from extcli.faults import load_faults

    session.output.show(load_faults(file, os.environ, session.control()), FAULTS)


def _named(name: str) -> str:
    return f"--{name.replace('_', '-')}"
