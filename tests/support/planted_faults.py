"""Faults for a service under `extcli conform`: each changes one thing, and names the rules that must fail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any, Final

import pytest

from support.executed_code import Executed


class Patch:
    """Changes the service, and knows which code a change can concern."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._patch = patch
        self._replaced: list[tuple[str, object]] = []
        """Names and what they stood for."""

    def setattr(self, owner: object, name: str, value: object) -> None:
        """Replace a function, or a value that functions read by this name."""
        self._replaced.append((name, getattr(owner, name)))
        self._patch.setattr(owner, name, value)

    def setitem(self, owner: Any, key: str, value: object, *, read_by: Callable[..., object]) -> None:
        """Replace an item of a mapping that only this function reads."""
        self._replaced.append((key, read_by))
        self._patch.setitem(owner, key, value)

    def concerns(self, executed: Executed) -> bool:
        """Whether the changes may show in this code: it has a changed function, or names a changed value."""
        return any(
            former.__code__ in executed.functions if isinstance(former, FunctionType) else name in executed.words
            for name, former in self._replaced
        )


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
    patch.setitem(vars(endpoint), "roles", roles, read_by=endpoint.handler)


def wrap(patch: Patch, owner: Any, name: str, around: Callable[..., Any]) -> None:
    """Replace a function with `around(original, *args)`."""
    original = getattr(owner, name)
    patch.setattr(owner, name, lambda *args, **options: around(original, *args, **options))
