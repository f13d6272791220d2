"""Explanations, and the texts of all rules, from the data files in this folder."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

from msgspec import Struct

LONGEST: Final = 200
"""Characters that an explanation shows of a text."""
FILES: Final = ("rulings.toml", "topics.toml")
"""The rulings, which `make docs` writes from docs/gaps.md, and all other rules."""


class Rule(Struct, frozen=True):
    """A ruling, a section of the specification or of the documentation, or a rule of production."""

    id: str
    text: str
    why: str = ""
    next_step: str = ""
    """How to mend what production would do differently; empty for other rules."""
    documented: str = ""
    """The document that has more."""


class Explanation(Struct, frozen=True):
    """Why a request was refused."""

    rule: str
    """The rule that decided: a ruling such as `A1`, or a section such as `spec: Authentication`."""
    title: str
    held: str
    """What the caller had or sent."""
    needed: str
    next_step: str
    text: str = ""
    """What the rule says."""


def shortened(text: str) -> str:
    """Return a text, cut if it is too long to be shown."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


@cache
def rules() -> Mapping[str, Rule]:
    """Return all rules by id. Reads the files at the first call."""
    paths = [Path(__file__).with_name(name) for name in FILES]
    found = [each for path in paths for each in tomllib.loads(path.read_text("utf-8"))["rule"]]
    return {each["id"]: Rule(**each) for each in found}


@cache
def _by_plain_name() -> Mapping[str, Rule]:
    """Return all rules by plain id, with and without `spec:`, `gaps:` or `docs:`. The first rule of a name counts."""
    found: dict[str, Rule] = {}
    for id, rule in rules().items():
        plain = _plain_rule_name(id)
        for name in filter(None, (plain, plain.partition(": ")[2])):
            found.setdefault(name, rule)
    return found


def find(name: str) -> Rule | None:
    """Return the rule with this id, in any case, with or without `spec:`, `gaps:` or `docs:`; `None` if unknown."""
    return _by_plain_name().get(_plain_rule_name(name))


def nearest(name: str) -> list[str]:
    """Return the ids of the rules that are most like a name, at most three; none if none is like it."""
    from difflib import get_close_matches

    names = _by_plain_name()
    found = get_close_matches(_plain_rule_name(name), names, n=3, cutoff=0.6)
    return list(dict.fromkeys(names[each].id for each in found))


def _plain_rule_name(name: str) -> str:
    return " ".join(name.casefold().replace(":", ": ").split())
