"""The texts of rulings and other rules, which the service's package ships as data."""

from __future__ import annotations

import tomllib
from importlib.resources import files

_PREFIXES = ("spec: ", "gaps: ", "docs: ")


def rulings() -> list[dict[str, str]]:
    """Return the rulings of docs/gaps.md in their order, each with `id`, `text`, `documented` and perhaps `why`."""
    return _texts("rulings.toml")


def rule_text(name: str) -> dict[str, str] | None:
    """Return the ruling, section or rule of production with this id; a section also without `spec: `."""
    for file in ("rulings.toml", "topics.toml"):
        for each in _texts(file):
            if _plain_name(name) in (_plain_name(each["id"]), _short_id(_plain_name(each["id"]))):
                return each
    return None


def _texts(file: str) -> list[dict[str, str]]:
    folder = files("emulator") / "control" / "explanations"
    return [dict(each) for each in tomllib.loads((folder / file).read_text("utf-8"))["rule"]]


def _plain_name(name: str) -> str:
    return " ".join(name.casefold().replace(":", ": ").split())


def _short_id(id: str) -> str:
    """Return the id of a section without its prefix."""
    return next((id.removeprefix(prefix) for prefix in _PREFIXES if id.startswith(prefix)), id)
