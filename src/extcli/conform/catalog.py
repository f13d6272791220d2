"""All rules, and how to choose some of them."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from extcli.conform.rule import Rule
from extcli.conform.rules import (
    accumulation,
    codes,
    definitions,
    grants,
    json_stores,
    patches,
    poll_channels,
    purchases,
    ranking,
    stores,
    trivia,
    vote_logs,
    votes,
    wire,
)
from extcli.errors import UsageError

_FILES = (
    wire,
    votes,
    poll_channels,
    vote_logs,
    definitions,
    ranking,
    accumulation,
    stores,
    patches,
    json_stores,
    codes,
    grants,
    trivia,
    purchases,
)


def all_rules() -> list[Rule]:
    """Return all rules: by file, in the order of their definition."""
    return [each for file in _FILES for each in vars(file).values() if isinstance(each, Rule)]


def chosen(only: Sequence[str]) -> list[Rule]:
    """Return the rules that one of these texts names; without texts, all. Raises `UsageError` for an unknown one.

    A text is the name of a rule, its source (`W3`, `spec: Voting` or `voting`), or a pattern such as `W*`.
    """
    rules = all_rules()
    if not only:
        return rules
    for text in only:
        if not any(_is_named(each, text) for each in rules):
            raise UsageError(
                f"no rule is named {text!r}",
                fix="`extcli conform` lists the rules",
            )
    return [each for each in rules if any(_is_named(each, text) for text in only)]


def _is_named(rule: Rule, text: str) -> bool:
    pattern = " ".join(text.casefold().split())
    name = rule.name.casefold()
    return any(fnmatchcase(each, pattern) for each in (name, name.partition(".")[0], rule.source.casefold()))
