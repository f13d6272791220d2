"""Who may import whom, how the files are grouped, and who may read the time. `docs/layout.md` gives the reasons."""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SRC = Path(__file__).parent.parent / "src"
MOST_MODULES = 20
"""Modules in one folder, except in `commands/`, which has one per noun."""

BASICS = {"errors", "clock", "callers", "wire", "engines.base", "engines.pools"}
"""What any part of a feature may import, below `emulator`."""
RULES_MAY = BASICS
SERVICE_MAY = BASICS | {"auth", "config", "engines.engine", "ids", "limits", "scheduling", "observability.recorder"}
SERVICE_MAY |= {"realtime.publisher", "realtime.hub", "realtime.pusher"}
HTTP_MAY = BASICS | {"ids", "web.call", "web.endpoint", "web.streaming_json"}
ACTIONS_MAY = BASICS | {"realtime.action", "realtime.session", "realtime.gateway"}

EMULATOR_MAY: Mapping[str, Collection[str]] = {
    "wire": {"errors"},
    "engines": {"errors"},
    "observability": {"errors", "callers", "clock"},
    "scheduling": {"errors", "clock"},
    "config": {"errors", "clock", "engines", "observability"},
    "auth": {"errors", "clock", "callers", "ids", "config", "engines.base"},
    "limits": {"errors", "clock", "callers", "engines.base", "wire"},
    "realtime": {"errors", "clock", "callers", "engines.base", "wire", "config", "limits", "observability"},
    "web": {"errors", "clock", "callers", "wire", "config", "limits", "observability", "realtime"},
}
"""What each folder of the service may import, beside itself. `server` may import all; `features` has its own tests."""

EXTCLI_MAY: Mapping[str, Collection[str]] = {
    "output": {"errors", "clock"},
    "config": {"errors", "clock", "output", "atomic_file"},
    "extensions": {"errors", "output", "atomic_file"},
    "api": {"errors", "clock", "output", "config"},
    "cli": {"errors", "output", "config", "session"},
    "codes": {"errors", "clock", "output", "config", "api", "session", "cli"},
    "bulk": {"errors", "clock", "output", "config", "api", "session"},
    "realtime": {"errors", "clock", "output", "config", "api", "session"},
}
"""What each folder of the command line may import, beside itself. `commands` may import all of them."""

CLOCKS = {"time", "datetime"}
READINGS = {"time", "time_ns", "monotonic", "monotonic_ns", "now", "utcnow", "today"}


@cache
def modules() -> Mapping[str, ast.Module]:
    """Every module of `src` by its dotted name."""
    paths = sorted(SRC.rglob("*.py"))
    return {_name(path): ast.parse(path.read_text()) for path in paths}


def _name(path: Path) -> str:
    return ".".join(path.relative_to(SRC).with_suffix("").parts).removesuffix(".__init__")


@cache
def imports(name: str) -> frozenset[str]:
    """The modules of this project that a module imports, anywhere in it, type checking included."""
    found: set[str] = set()
    for node in ast.walk(modules()[name]):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {_imported(node.module or "", alias.name) for alias in node.names}
    return frozenset(each for each in found if each.startswith(("emulator.", "extcli.")) and each != name)


def _imported(package: str, name: str) -> str:
    inside = f"{package}.{name}"
    return inside if inside in modules() else package


def may(imported: str, allowed: Iterable[str]) -> bool:
    """Whether one of the allowed modules or folders holds this one."""
    return any(imported == each or imported.startswith(f"{each}.") for each in allowed)


def offenders(names: Iterable[str], allowed: Iterable[str]) -> list[str]:
    """The imports of these modules that are neither allowed nor of their own folder."""
    return [
        f"{name} imports {imported}"
        for name in names
        for imported in imports(name)
        if not may(imported, (name.rpartition(".")[0], *allowed))
    ]


def of_features(*files: str) -> Iterator[str]:
    """The modules of features with one of these file names; without names, those with any other."""
    named = ("http", "actions", "service", "updates", "attempt_limit", "gate", "metrics", "outages")
    for name in modules():
        parts = name.split(".")
        if parts[:2] != ["emulator", "features"] or len(parts) < 4:
            continue
        if parts[3] in files or (not files and parts[3] not in named):
            yield name


def below_emulator(allowed: Iterable[str]) -> set[str]:
    return {f"emulator.{each}" for each in allowed}


def test_rules_are_pure():
    assert not offenders(of_features(), below_emulator(RULES_MAY))


def test_a_service_knows_shapes_of_data_and_no_transport():
    names = of_features("service", "updates", "attempt_limit", "metrics", "outages")
    assert not offenders(names, below_emulator(SERVICE_MAY))


def test_an_endpoint_knows_its_service_and_the_web():
    assert not offenders(of_features("http"), below_emulator(HTTP_MAY))


def test_an_action_knows_its_service_and_the_socket():
    assert not offenders(of_features("actions"), below_emulator(ACTIONS_MAY))


def test_a_feature_knows_no_other_feature():
    assert not [
        f"{name} imports {imported}"
        for name in modules()
        if name.startswith("emulator.features.")
        for imported in imports(name)
        if imported.startswith("emulator.features.") and imported.split(".")[2] != name.split(".")[2]
    ]


@pytest.mark.parametrize("folder", EMULATOR_MAY)
def test_a_folder_of_the_service_imports_only_what_it_may(folder: str):
    root = f"emulator.{folder}"
    names = [name for name in modules() if may(name, [root])]
    assert not offenders(names, {root} | below_emulator(EMULATOR_MAY[folder]))


@pytest.mark.parametrize("folder", EXTCLI_MAY)
def test_a_folder_of_the_command_line_imports_only_what_it_may(folder: str):
    root = f"extcli.{folder}"
    names = [name for name in modules() if may(name, [root])]
    assert not offenders(names, {root} | {f"extcli.{each}" for each in EXTCLI_MAY[folder]})


def test_only_the_server_imports_the_wiring():
    assert {"emulator.server.run"} == {name for name in modules() if "emulator.app" in imports(name)}


def test_only_the_serve_command_imports_the_service():
    importers = {
        name
        for name in modules()
        if name.startswith("extcli") and any(each.startswith("emulator") for each in imports(name))
    }
    assert {"extcli.commands.serve"} == importers


def test_no_files_import_each_other_in_a_circle():
    assert [] == circle({name: imports(name) for name in modules()})


def test_no_folders_import_each_other_in_a_circle():
    """A file at the root of a package counts as a folder of its own."""
    graph: dict[str, set[str]] = {}
    for name in modules():
        graph.setdefault(folder_of(name), set()).update(folder_of(each) for each in imports(name))
    assert [] == circle({folder: found - {folder} for folder, found in graph.items()})


def folder_of(name: str) -> str:
    """`extcli.bulk` for `extcli.bulk.report`; each feature is a folder of its own."""
    parts = name.split(".")
    return ".".join(parts[: 3 if parts[1:2] == ["features"] else 2])


def circle(graph: Mapping[str, Collection[str]]) -> list[str]:
    """One circle of the graph, or an empty list."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_folder_has_more_than_twenty_modules():
    folders: dict[str, int] = {}
    for name in modules():
        if not name.startswith("extcli.commands"):
            folder = name.rpartition(".")[0]
            folders[folder] = folders.get(folder, 0) + 1
    assert {} == {folder: count for folder, count in folders.items() if count > MOST_MODULES}


def test_no_file_is_named_like_a_module_of_the_standard_library():
    """`http.py` is how each folder names its REST half; in `commands/` a file is named after its noun."""
    names = {name.rpartition(".")[2] for name in modules() if not name.startswith("extcli.commands.")}
    assert {"http"} == names & sys.stdlib_module_names


def test_only_the_clocks_read_the_time():
    readers = {
        name
        for name, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr in READINGS
        and isinstance(node.value, ast.Name)
        and node.value.id in CLOCKS
    }
    assert readers <= {"emulator.clock", "extcli.clock"}
