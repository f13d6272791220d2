"""All rules, and how to choose some of them."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from importlib import import_module
from pkgutil import iter_modules

from extcli.conform import rules
from extcli.conform.rule import Rule
from extcli.errors import UsageError


def all_rules() -> list[Rule]:
    """Return the rules of all files in `rules/`, by source."""
    files = [import_module(f"{rules.__name__}.{each.name}") for each in iter_modules(rules.__path__)]
    found = [each for file in files for each in vars(file).values() if isinstance(each, Rule)]
    return sorted(found, key=lambda each: _place(each.source))


def _place(source: str) -> tuple[int, str, int]:
    """Return the place of a source: the specification first, then docs/gaps.md in its order."""
    if ":" in source:
        return 0 if source.startswith("spec:") else 10, source, 0
    return 1 + "WAPRSTXBC".index(source[0]), "", int(source[1:])


def chosen(only: Sequence[str]) -> list[Rule]:
    """Return the rules that one of these texts names; without texts, all. Raises `UsageError` for an unknown one.

    A text is the name of a rule, its source (`W3`, `spec: Voting` or `voting`), or a pattern such as `W*`.
    """
    found = all_rules()
    if not only:
        return found
    for text in only:
        if not any(_is_named(each, text) for each in found):
            raise UsageError(
                f"no rule is named {text!r}",
                fix="`extcli conform` lists the rules",
            )
    return [each for each in found if any(_is_named(each, text) for text in only)]


def _is_named(rule: Rule, text: str) -> bool:
    """Return whether a text names the rule. Case matters to patterns: `P*` is P1 to P5, and not `purchases`."""
    wanted = " ".join(text.split())
    names = (rule.name, rule.name.partition(".")[0], rule.source)
    return any(each.casefold() == wanted.casefold() or fnmatchcase(each, wanted) for each in names)
