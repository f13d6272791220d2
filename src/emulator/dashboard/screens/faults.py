"""Faults: failures on purpose, with their hits; templates, a form for any, removal."""

from __future__ import annotations

from typing import Any

from emulator.control.faults import ALL_EFFECTS
from emulator.core.callers import Role
from emulator.core.errors import Conflict
from emulator.core.faults import Fault
from emulator.dashboard.commands import Part, field
from emulator.dashboard.screen import Query, Screen, Service
from emulator.dashboard.texts import instant

_CONDITIONS = ("role", "channel", "user", "client_id", "event")
_TEMPLATES = (
    (
        "refuse-votes",
        "Fail the next three votes with 503",
        {"match": "POST /v1/e/vote", "effect": "status", "status": "503", "retry_after": "1", "times": "3"},
        ("--status", "503", "--retry-after", "1", "--times", "3"),
    ),
    (
        "slow",
        "Answer all requests 500 ms late",
        {"match": "* /v1/e/*", "effect": "delay", "delay": "500"},
        ("--delay", "500ms"),
    ),
    (
        "lose",
        "Lose the next broadcast",
        {"match": "BROADCAST *", "effect": "lose", "times": "1"},
        ("--lose", "--times", "1"),
    ),
    (
        "double",
        "Deliver the next broadcast twice",
        {"match": "BROADCAST *", "effect": "double", "times": "1"},
        ("--double", "--times", "1"),
    ),
    (
        "restart",
        "For ten seconds, close sockets with 1012 at their next message",
        {"match": "SOCKET *", "effect": "close", "code": "1012", "lasts": "10000"},
        ("--close", "1012", "--for", "10s"),
    ),
)
"""Usual faults, which one click adds: an id, a label, members, and options of `extcli fault add` after `--match`."""
_OPTIONS = (
    field("match", "--match"),
    Part("", (("--", "effect", ""),), "--EFFECT"),
    Part("", (("", "status", ""),), "503", when=("effect", "status")),
    Part("", (("", "delay", "ms"), ("..", "delay_max", "ms")), "DELAY", when=("effect", "delay")),
    Part("", (("", "bytes", ""),), "0", when=("effect", "truncate")),
    Part("", (("", "code", ""),), "1012", when=("effect", "close")),
    *(field(name, f"--{name.replace('_', '-')}") for name in ("retry_after", *_CONDITIONS, "times", "share", "seed")),
    field("lasts", "--for", after="ms", shown="TIME"),
    field("id", "--id"),
)
"""The options of `extcli fault add` that the form for any fault stands for."""


async def read(service: Service, query: Query) -> dict[str, Any]:
    """Return the faults, oldest first, or why this service accepts none."""
    roles = [str(role) for role in Role]
    common = {"templates": _TEMPLATES, "effects": ALL_EFFECTS, "roles": roles, "options": _OPTIONS, "why_not": ""}
    try:
        faults = service.faults.read().faults
    except Conflict as error:
        return common | {"faults": [], "why_not": error.detail}
    now = service.clock.now()
    rows = []
    for each in faults:
        rows.append((each, effect_of(each), conditions_of(each), remaining_limits(each), is_over(each, now)))
    return common | {"faults": rows}


def effect_of(fault: Fault) -> str:
    """Return the effect of a fault with its parameters: `status 503, retry after 1 s`."""
    match fault.effect:
        case "status":
            after = "" if fault.retry_after is None else f", retry after {fault.retry_after} s"
            return f"status {fault.status or 503}{after}"
        case "delay":
            return f"delay {fault.delay} ms" + ("" if fault.delay_max is None else f" to {fault.delay_max} ms")
        case "truncate":
            return f"truncate after {fault.bytes or 0} bytes"
        case "close":
            return f"close {fault.code or 1012}"
    return fault.effect


def conditions_of(fault: Fault) -> list[tuple[str, str]]:
    """Return the conditions of a fault besides its match, by name."""
    return [(name.replace("_", " "), getattr(fault, name)) for name in _CONDITIONS if getattr(fault, name)]


def remaining_limits(fault: Fault) -> list[str]:
    """Return the limits of a fault in words: `2 of 3`, `10 % of them`, `until 2033-05-18 03:34:20.000 UTC`."""
    times = [] if fault.left is None else [f"{fault.left:,} of {fault.times:,}"]
    share = [] if fault.share is None else [f"{fault.share * 100:.4g} % of them"]
    return times + share + ([] if fault.ends_at is None else [f"until {instant(fault.ends_at)}"])


def is_over(fault: Fault, now: int) -> bool:
    """Whether a fault no longer acts."""
    return fault.left == 0 or (fault.ends_at is not None and fault.ends_at <= now)


SCREENS = (Screen("faults", "Faults", read, every=1.0),)
