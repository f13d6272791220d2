"""Rules for imports, folders and clocks. `docs/layout.md` gives the reasons."""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Callable, Iterable

import pytest

from emulator import errors
from support.architecture import (
    EMULATOR_IMPORTS,
    EXTCLI_IMPORTS,
    FEATURE_IMPORTS,
    RULES,
    SRC,
    UNLIMITED,
    Graph,
    circles,
    feature_of,
    graph,
    kind_of,
    nodes,
    trees,
)
from tools import layout_page

MAX_MODULES = 20
"""Modules per folder."""
MAX_LINES = 400
"""Lines per file. Only the composition root may be longer."""

TIME_MODULES = {"time", "datetime"}
TIME_FUNCTIONS = {"time", "time_ns", "monotonic", "monotonic_ns", "now", "utcnow", "today"}

FORBIDDEN = {
    "rules": "emulator.auth.tokens",
    "service": "emulator.http.dispatch",
    "http": "emulator.engines.sqlite",
    "actions": "emulator.http.dispatch",
}
"""An import that each kind of module of a feature must not have."""


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_all_imports_keep_the_rules(rule: Callable[[Graph], list[str]]):
    assert [] == rule(graph())


def test_every_folder_has_a_rule():
    folders = {path.parent.relative_to(SRC).as_posix() for path in SRC.glob("*/*/*.py")}
    named = {f"emulator/{name}" for name in {*EMULATOR_IMPORTS, *UNLIMITED}}
    named |= {f"extcli/{name}" for name in {*EXTCLI_IMPORTS, "commands", "completion"}}
    assert named == folders | {"extcli/commands"}


def modules_of_features() -> Iterable[str]:
    return (name for name in trees() if feature_of(name) and kind_of(name) in FEATURE_IMPORTS)


def test_a_forbidden_import_in_any_module_of_a_feature_is_found():
    for name in modules_of_features():
        assert finds(name, FORBIDDEN[kind_of(name)]), name


def test_an_import_of_another_feature_is_found():
    features = sorted({feature_of(name) for name in trees()} - {""})
    for one, other in zip(features, features[1:] + features[:1], strict=True):
        assert finds(one, f"{other}.service"), one


@pytest.mark.parametrize(
    ("name", "imported"),
    [
        *((f"emulator.{folder}", "emulator.process.run") for folder in EMULATOR_IMPORTS),
        *((f"extcli.{folder}", "extcli.commands.data.vote") for folder in EXTCLI_IMPORTS),
        ("emulator.process.workers", "emulator.app"),
        ("emulator.namespaces.registry", "emulator.opening"),
        ("emulator.http.front", "emulator.feature_list"),
        ("emulator.namespaces.routing", "emulator.dashboard.http"),
        ("emulator.errors", "extcli.errors"),
        ("extcli.commands.data.vote", "emulator.features.votes.rules"),
    ],
)
def test_a_forbidden_import_in_any_folder_is_found(name: str, imported: str):
    assert finds(name, imported)


@pytest.mark.parametrize(
    "planted",
    [
        {"emulator.one": {"emulator.other"}, "emulator.other": {"emulator.one"}},
        {"emulator.one.a": {"emulator.other.a"}, "emulator.other.b": {"emulator.one.b"}},
        {"emulator.features.one.a": {"emulator.wire.a"}, "emulator.wire.b": {"emulator.features.one.b"}},
    ],
    ids=["of files", "of folders", "with a feature"],
)
def test_a_circle_is_found(planted: dict[str, frozenset[str]]):
    assert circles(planted)


def finds(name: str, imported: str) -> bool:
    """Whether the rules find an import if it is added to a module."""
    return any(rule({name: frozenset({imported})}) for rule in RULES)


def test_no_folder_has_more_than_twenty_modules():
    folders = Counter(str(path.parent.relative_to(SRC)) for path in SRC.rglob("*.py") if path.stem != "__init__")
    assert {} == {folder: count for folder, count in folders.items() if count > MAX_MODULES}


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
    assert readers <= {"emulator.clock", "extcli.clock"}


def test_one_context_variable_carries_the_request():
    made = [
        name for name, node in nodes()[ast.Call] if isinstance(node.func, ast.Name) and node.func.id == "ContextVar"
    ]
    assert ["emulator.observability.request_context"] == made


def test_only_logs_the_journal_and_verdicts_read_the_current_request():
    readers = {
        name.rpartition(".")[0] for name, node in nodes()[ast.Call] if ast.unparse(node.func) == "current_request.get"
    }
    assert {"emulator.observability", "emulator.parity"} == readers


def test_the_page_of_the_layout_has_the_tables_made_from_the_code():
    assert layout_page.page() == layout_page.PAGE.read_text()


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
