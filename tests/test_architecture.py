"""Rules for imports, folders and clocks. `docs/layout.md` gives the reasons."""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Callable

import pytest

from emulator.core import errors
from support.architecture import (
    EXTCLI_IMPORTS,
    FLOORS,
    RULES,
    SRC,
    Graph,
    graph,
    is_in,
    nodes,
    trees,
)

MAX_MODULES = 20
"""Modules per folder."""
MAX_LINES = 400
"""Lines per file. Only the composition root may be longer."""

TIME_MODULES = {"time", "datetime"}
TIME_FUNCTIONS = {"time", "time_ns", "monotonic", "monotonic_ns", "now", "utcnow", "today"}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_all_imports_keep_the_rules(rule: Callable[[Graph], list[str]]):
    assert [] == rule(graph())


def test_every_folder_has_a_rule():
    rooms = {
        each.relative_to(SRC).with_suffix("").as_posix()
        for each in SRC.glob("emulator/[a-z]*")
        if each.suffix in ("", ".py")
    }
    assert {f"emulator/{room}" for floor in FLOORS for room in floor} == rooms
    folders = {path.parent.relative_to(SRC).as_posix() for path in SRC.glob("extcli/*/*.py")}
    assert {f"extcli/{name}" for name in {*EXTCLI_IMPORTS, "commands"}} == folders | {"extcli/commands"}


def test_no_folder_has_more_than_twenty_modules():
    folders = Counter(str(path.parent.relative_to(SRC)) for path in SRC.rglob("*.py") if path.stem != "__init__")
    large = {folder for folder, count in folders.items() if count > MAX_MODULES}
    assert {"extcli/commands"} >= large  # a file per noun


def test_no_file_has_more_than_400_lines():
    paths = [path for folder in ("src", "tests") for path in (SRC.parent / folder).rglob("*.py")]
    lengths = {path: len(path.read_text().splitlines()) for path in paths if "node_modules" not in path.parts}
    long = {str(path.relative_to(SRC.parent)) for path, length in lengths.items() if length > MAX_LINES}
    assert {"src/emulator/app.py"} >= long


def test_no_file_shadows_a_module_of_the_standard_library():
    """Except `http.py`, the REST half of a feature, and files in `commands/`, which are named after nouns."""
    names = {name.rpartition(".")[2] for name in trees() if not name.startswith("extcli.commands.")}
    assert {"http"} == names & sys.stdlib_module_names


def test_only_the_clock_modules_read_the_time():
    readers = {
        name
        for name, node in nodes()[ast.Attribute]
        if node.attr in TIME_FUNCTIONS and isinstance(node.value, ast.Name) and node.value.id in TIME_MODULES
    }
    assert readers <= {"emulator.core.clock", "extcli.clock"}


def test_one_context_variable_carries_the_request():
    made = [
        name for name, node in nodes()[ast.Call] if isinstance(node.func, ast.Name) and node.func.id == "ContextVar"
    ]
    assert ["emulator.core.observability.request_context"] == made


def test_only_logs_the_journal_and_verdicts_read_the_current_request():
    readers = {
        ".".join(name.split(".")[:3])
        for name, node in nodes()[ast.Call]
        if ast.unparse(node.func) in ("current", "current_request.get")
    }
    assert {"emulator.core.observability", "emulator.core.parity"} == readers


def test_no_feature_knows_who_judges_a_request_after_its_answer():
    """They notice facts (`core/observability/facts.py`), from which hints and verdicts follow."""
    listeners = [f"emulator.core.{each}" for each in ("faults", "hints", "journal", "observability.metrics")]
    found = [(name, each) for name, imported in graph().items() for each in imported & set(listeners)]
    assert [] == [pair for pair in found if is_in(pair[0], ["emulator.auth", "emulator.features"])]


def test_every_refusal_is_declared():
    """No `ServiceError` has a text of its own. One with a reason alone is for the metrics only."""
    kinds = {name for name, each in vars(errors).items() if hasattr(each, "status")}
    for _, node in nodes()[ast.ClassDef]:
        if kinds & {getattr(each, "id", "") for each in node.bases}:
            kinds.add(node.name)
    kinds -= {"FaultError", "NoResponse"}  # they hold a declared refusal
    calls = ((name, call) for name, call in nodes()[ast.Call] if name.startswith("emulator."))
    undeclared = [f"{name}:{call.lineno}" for name, call in calls if _called(call) in kinds and len(call.args) > 1]

    assert [] == undeclared


def _called(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
