"""The list of mutants is complete, and its machinery finds, plants and judges them."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from textwrap import dedent

import pytest

from mutants.mutant_list import KILLED, VERDICTS, read_list
from mutants.operators import mutated, sites
from mutants.parts import DRAWN, ROOT

CODE = '''
def first(items, *, limit=10):
    """Return the first items, 10 at most."""
    _log.info("called with %d", len(items) + 1)
    if len(items) > limit and items:
        raise ValueError(f"{len(items) + 1} items")
    items.sort()
    return items[:limit]
'''


def changes(code: str) -> dict[str, str]:
    """Return each mutant of a module: the line that differs, by operator."""
    tree = ast.parse(code)
    original = ast.unparse(tree).splitlines()
    found = {}
    for site in sites(tree):
        lines = ast.unparse(mutated(tree, site)).splitlines()
        found[site.identity.operator] = next(
            new.strip() for old, new in zip(original, lines, strict=True) if old != new
        )
    return found


def test_operators_change_what_a_function_does():
    assert {
        "negate condition": "if not (len(items) > limit and items):",
        "and to or": "if len(items) > limit or items:",
        "> to >=": "if len(items) >= limit and items:",
        "> to <=": "if len(items) <= limit and items:",
        "remove raise": "pass",
        "remove call": "pass",
        "return None": "return None",
    } == changes(CODE)


def test_a_mutant_has_the_same_name_after_other_lines_have_changed():
    longer = "import os\n\n" + CODE.replace("items.sort()", "# sorted\n    items.sort(\n    )")

    assert [each.identity for each in sites(ast.parse(CODE))] == [each.identity for each in sites(ast.parse(longer))]


def test_the_list_has_a_verdict_for_each_of_its_mutants():
    mutants = read_list()

    assert DRAWN == Counter(each.part for each in mutants)
    assert list(range(1, len(mutants) + 1)) == [each.number for each in mutants]
    assert set(VERDICTS) >= {each.verdict for each in mutants}
    assert [] == [each for each in mutants if bool(each.by) != (each.verdict in KILLED)]
    assert [] == [each for each in mutants if each.verdict in ("equivalent", "retired") and not each.note]


@pytest.mark.slow
def test_a_mistake_is_killed_and_equivalent_code_survives():
    """In a process of its own, which forks before it has threads."""
    script = """
        import ast
        from dataclasses import replace

        from mutants.mutant_list import locate, read_list
        from mutants.trials import Trial, run

        killed = next(
            (each, place)
            for each in read_list()
            if each.verdict == "killed" and each.by.startswith("tests/rules")
            if (place := locate(each)) and isinstance(place.site.node, ast.expr)
        )
        mutant, place = killed
        same = replace(
            place,
            site=replace(place.site, change=lambda node: ast.IfExp(ast.Name("__name__", ast.Load()), node, node)),
        )
        trials = [Trial(1, place, [mutant.by]), Trial(2, same, [mutant.by])]
        run(trials, 1)
        print(*(each.verdict for each in trials), *(each.ran for each in trials))
    """
    command = [sys.executable, "-c", dedent(script)]
    environment = {"PYTHONPATH": "tests", "PATH": ""}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=120)

    assert "killed survived 1 1" == done.stdout.strip().splitlines()[-1], done.stderr
