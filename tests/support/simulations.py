"""Runs crowds, and reads their poll."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

MIX = ("--mix", "0:60,1:30,2:10")


def crowd_of(extcli: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that runs a crowd of 50 on poll `lunch`, with further arguments."""

    def run(*args: str, viewers: int = 50, **settings: Any) -> Any:
        own = ("--viewers", str(viewers), "--poll", "lunch", *MIX, "--rate", "2000/s")
        return extcli("simulate", "crowd", *own, *args, **settings)

    return run


def votes(extcli: Callable[..., Any]) -> dict[str, Any]:
    """Return the statistics of poll `lunch`."""
    return dict(extcli("vote", "get", "lunch", "-o", "json").json["stats"])
