"""Names of functions: a new one says what the function does or returns.

`tests/data/old-names.txt` lists older names that break a rule. It only becomes shorter.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from support.architecture import trees

OLD_NAMES = Path(__file__).parent / "data" / "old-names.txt"
PARTICIPLE = re.compile(r"_?\w+[^e]ed|_?(sent|held|kept|found|shown|given|taken|written|gone|done)")
"""Matches one word. `stored` may mean "store it", "is it stored?" or "what is stored"."""
NO_PARTICIPLES = {"need", "seed", "feed", "embed", "speed"}
PREPOSITION = re.compile(r"\w+_(for|from|with|by|to|at|in|on|as|into|about|after|before|under|over)")
"""`key_of(poll)` is no such name here: many functions that compute a value from another are called so."""


def test_a_new_name_is_no_bare_participle_and_does_not_end_with_a_preposition():
    assert sorted(set(unclear_names()) - old_names()) == []


def test_the_list_of_old_names_has_no_name_that_is_gone():
    assert sorted(old_names() - set(unclear_names())) == []


def old_names() -> set[str]:
    return set(OLD_NAMES.read_text().split())


def unclear_names() -> Iterator[str]:
    """Yield the name of each function of `src`, but of no property, that breaks a rule."""
    for tree in trees().values():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not is_property(node):
                word = node.name
                is_participle = "_" not in word.strip("_") and PARTICIPLE.fullmatch(word)
                if (is_participle and word.strip("_") not in NO_PARTICIPLES) or PREPOSITION.fullmatch(word):
                    yield word


def is_property(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any("property" in ast.unparse(each) for each in function.decorator_list)
