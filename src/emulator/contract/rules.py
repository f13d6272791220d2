"""The texts of the rules that `extcli explain` knows: rulings, sections of documents, and rules of production."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

RULINGS_FILE = Path(__file__).with_name("rulings.toml")
"""The rulings, which `make docs` writes from docs/gaps.md."""
_TOPICS_FILE = RULINGS_FILE.with_name("topics.toml")
"""All other rules."""


@cache
def rulings() -> Mapping[str, dict[str, str]]:
    """Return the rulings by id, in their order, each with `id`, `text`, `documented` and perhaps `why`."""
    return _read(RULINGS_FILE)


@cache
def rules() -> Mapping[str, dict[str, str]]:
    """Return all rules by id. The others may also have a `next_step`."""
    return {**rulings(), **_read(_TOPICS_FILE)}


@cache
def ids_by_name() -> Mapping[str, str]:
    """Return the ids of all rules by plain name, with and without `spec:`, `gaps:` or `docs:`: of two, the first."""
    found: dict[str, str] = {}
    for id in rules():
        plain = normalized_name(id)
        for name in filter(None, (plain, plain.partition(": ")[2])):
            found.setdefault(name, id)
    return found


def normalized_name(name: str) -> str:
    """Return a name as `ids_by_name` has it: in lower case, with one space between words and after a colon."""
    return " ".join(name.casefold().replace(":", ": ").split())


def _read(file: Path) -> dict[str, dict[str, str]]:
    tables = tomllib.loads(file.read_text("utf-8"))
    for id, fields in tables.items():
        fields.setdefault("documented", _documented_in(id))
    return {id: {"id": id, **fields} for id, fields in tables.items()}


def _documented_in(id: str) -> str:
    """Return the document that has more about a rule, unless its table names another."""
    kind, _, title = id.rpartition(": ")
    if kind:
        return f"the specification, section {title}" if kind == "spec" else f"docs/gaps.md, section {title}"
    return f"docs/gaps.md, ruling {id}" if id[0].isupper() else "docs/guide/parity.md#rules"
