"""What state and config stores have in common: their paths, and who may usually read and write them (ruling S1)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import typer

from extcli.session import BACKEND, BROADCASTER, VIEWER


@dataclass(frozen=True, slots=True)
class Scope:
    """One store: the name in its path, and whom a command acts as unless told."""

    path: str
    reader: str
    writer: str


STATE = {
    "extension": Scope("extension_state", VIEWER, BACKEND),
    "channel": Scope("channel_state", VIEWER, BROADCASTER),
    "viewer": Scope("viewer_state", VIEWER, VIEWER),
    "extension-viewer": Scope("extension_viewer_state", VIEWER, VIEWER),
    "hidden": Scope("extension_hidden_state", BACKEND, BACKEND),
}
CONFIG = {
    "extension": Scope("extension_config", VIEWER, BACKEND),
    "channel": Scope("channel_config", VIEWER, BROADCASTER),
}


def scope_argument(scopes: Iterable[str]) -> Any:
    """The argument that names one of these scopes."""
    names = list(scopes)

    def checked(name: str) -> str:
        if name not in names:
            raise typer.BadParameter(f"{name!r} is not one of {', '.join(names)}")
        return name

    return typer.Argument(
        metavar="SCOPE", help=f"One of {', '.join(names)}.", callback=checked, autocompletion=lambda: names
    )
