"""Faults for a service under `extcli conform`: each changes one thing, and names the rules that must fail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

Patch = pytest.MonkeyPatch


@dataclass(frozen=True)
class PlantedFault:
    """One change of the service."""

    name: str
    plant: Callable[[Patch], None] = field(repr=False)
    """Changes the code, before a service starts."""
    finds: frozenset[str]
    """The rules that fail. All others pass."""
    production: bool
    """Whether it shows in production only."""


FAULTS: Final[list[PlantedFault]] = []


def planted(*finds: str, production: bool = False) -> Callable[[Callable[[Patch], None]], Callable[[Patch], None]]:
    """Add a fault that these rules find."""

    def add(plant: Callable[[Patch], None]) -> Callable[[Patch], None]:
        FAULTS.append(PlantedFault(plant.__name__.strip("_"), plant, frozenset(finds), production))
        return plant

    return add


def allow(patch: Patch, endpoint: Any, roles: Any) -> None:
    """Change the roles that may call an endpoint."""
    patch.setitem(vars(endpoint), "roles", roles)


def wrap(patch: Patch, owner: Any, name: str, around: Callable[..., Any]) -> None:
    """Replace a function with `around(original, *args)`."""
    original = getattr(owner, name)
    patch.setattr(owner, name, lambda *args, **options: around(original, *args, **options))
