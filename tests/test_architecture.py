"""Rules for imports, folders and clocks. `docs/layout.md` gives the reasons."""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SRC = Path(__file__).parent.parent / "src"
MAX_MODULES = 20
"""Modules per folder."""

BASICS = {
    "errors",
    "clock",
    "callers",
    "bounded_cache",
    "changes",
    "faults",
    "journal",
    "started",
    "stored",
    "wire",
    "engines.base",
    "engines.catalog",
    "engines.pools",
}
BASICS |= {"engines.records", "engines.record_checks"}
"""Modules of `emulator` that every part of a feature may import."""
SERVICE_IMPORTS = BASICS | {"auth", "config", "engines.engine", "ids", "limits", "scheduling"}
SERVICE_IMPORTS |= {"observability.audit", "observability.recorder"}
SERVICE_IMPORTS |= {"parity", "engines.records", "realtime.publisher", "realtime.hub", "realtime.page_access"}
SERVICE_IMPORTS |= {"realtime.pusher"}
SERVICES = {"service", "attempt_limit", "grants", "json_stores", "links", "live_pins", "metrics", "page_events"}
SERVICES |= {"subscribers", "undo", "updates", "uploads"}
"""Modules of features that import what services may. All but these, `http`, `actions` and `gate` are pure."""
HTTP_IMPORTS = BASICS | {"ids", "parity.service", "parity.tally", "web.call", "web.endpoint", "web.streaming_json"}
ACTIONS_IMPORTS = BASICS | {"parity.service", "realtime.action", "realtime.session"}

EMULATOR_IMPORTS: Mapping[str, Collection[str]] = {
    "wire": {"errors"},
    "engines": {"errors", "bounded_cache"},
    "observability": {"errors", "callers", "clock", "faults", "journal"},
    "scheduling": {"errors", "clock"},
    "config": {"errors", "clock", "engines", "observability"},
    "auth": {
        "errors",
        "clock",
        "callers",
        "ids",
        "bounded_cache",
        "config",
        "engines.base",
        "engines.records",
        "parity.rules",
        "parity.service",
        "stored",
    },
    "parity": {"errors", "clock", "callers", "bounded_cache", "engines.base", "limits", "observability"},
    "limits": {"errors", "clock", "callers", "bounded_cache", "engines.base", "engines.records", "stored", "wire"},
    "realtime": {
        "errors",
        "clock",
        "changes",
        "faults",
        "journal",
        "callers",
        "engines.base",
        "wire",
        "config",
        "limits",
        "observability",
        "parity",
        "scheduling",
    },
    "dashboard": {
        "errors",
        "clock",
        "changes",
        "journal",
        "callers",
        "wire",
        "config",
        "engines",
        "features",
        "limits",
        "namespaces",
        "observability",
        "parity",
        "realtime",
        "web",
    },
    "web": {
        "errors",
        "clock",
        "changes",
        "faults",
        "journal",
        "callers",
        "wire",
        "config",
        "limits",
        "observability",
        "parity",
        "realtime",
    },
}
"""What each folder of the service may import besides itself. `server` may import all; `features` has its own tests."""

EXTCLI_BASICS = {"errors", "bounded_json", "reading"}
"""What every folder of the command line may import. `reading` and `errors` import no other folder."""
EXTCLI_IMPORTS: Mapping[str, Collection[str]] = {
    "reading": set(),
    "output": {"errors", "clock"},
    "config": {"errors", "clock", "output", "atomic_file", "toml_edit"},
    "extensions": {"errors", "output", "atomic_file", "toml_edit"},
    "snapshots": {"errors", "output", "api", "atomic_file"},
    "api": {"errors", "clock", "output", "config"},
    "cli": {"errors", "output", "config", "session"},
    "codes": {"errors", "clock", "output", "config", "api", "session", "cli"},
    "tables": {"errors"},
    "faults": {"errors", "output", "tables"},
    "seeds": {"errors", "output", "config", "codes", "faults", "tables", "atomic_file"},
    "simulate": {"errors", "clock", "output", "config", "api", "session", "atomic_file"},
    "bulk": {"errors", "clock", "output", "config", "api", "session"},
    "realtime": {"errors", "clock", "output", "config", "api", "session"},
    "running": {"api.local_http", "journal.har", "errors", "clock", "output", "config", "extensions", "parity"},
    "journal": {"errors", "clock", "output", "api", "session"},
    "testing": {"journal.views", "errors", "clock", "output", "config", "api", "session", "faults", "seeds"},
    "doctor": {"errors", "clock", "output", "config", "api", "session"},
    "conform": {"errors", "clock", "output", "config", "api", "session", "doctor", "atomic_file"},
}
"""What each folder of the command line may import besides itself. `commands` may import all of them."""

TIME_MODULES = {"time", "datetime"}
TIME_FUNCTIONS = {"time", "time_ns", "monotonic", "monotonic_ns", "now", "utcnow", "today"}


@cache
def modules() -> Mapping[str, ast.Module]:
    """Return the syntax trees of all modules in `src` by dotted name."""
    paths = sorted(SRC.rglob("*.py"))
    return {_name(path): ast.parse(path.read_text()) for path in paths}


def _name(path: Path) -> str:
    return ".".join(path.relative_to(SRC).with_suffix("").parts).removesuffix(".__init__")


@cache
def imports(name: str) -> frozenset[str]:
    """Return the modules of this project that a module imports anywhere, for type checking too."""
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


def is_in(name: str, parents: Iterable[str]) -> bool:
    """Whether a module is one of these modules, or in one of these folders."""
    return any(name == parent or name.startswith(f"{parent}.") for parent in parents)


def violations(names: Iterable[str], allowed: Iterable[str]) -> list[str]:
    """Return the imports of these modules that are neither allowed nor from their own folder."""
    return [
        f"{name} imports {imported}"
        for name in names
        for imported in imports(name)
        if not is_in(imported, (name.rpartition(".")[0], *allowed))
    ]


def feature_modules(*files: str) -> Iterator[str]:
    """Yield the modules of features with these file names; without names, the pure rules."""
    for name in modules():
        parts = name.split(".")
        if parts[:2] != ["emulator", "features"] or len(parts) < 4:
            continue
        if parts[3] in files or (not files and parts[3] not in SERVICES | {"http", "actions", "gate"}):
            yield name


def in_emulator(allowed: Iterable[str]) -> set[str]:
    return {f"emulator.{each}" for each in allowed}


def test_rules_import_only_the_basics():
    assert not violations(feature_modules(), in_emulator(BASICS))


def test_services_import_no_transport():
    assert not violations(feature_modules(*SERVICES), in_emulator(SERVICE_IMPORTS))


def test_endpoints_import_their_service_and_the_web():
    assert not violations(feature_modules("http"), in_emulator(HTTP_IMPORTS))


def test_actions_import_their_service_and_the_socket():
    assert not violations(feature_modules("actions"), in_emulator(ACTIONS_IMPORTS))


def test_features_do_not_import_each_other():
    assert not [
        f"{name} imports {imported}"
        for name in modules()
        if name.startswith("emulator.features.")
        for imported in imports(name)
        if imported.startswith("emulator.features.") and imported.split(".")[2] != name.split(".")[2]
    ]


@pytest.mark.parametrize("folder", EMULATOR_IMPORTS)
def test_each_folder_of_the_service_has_only_allowed_imports(folder: str):
    root = f"emulator.{folder}"
    names = [name for name in modules() if is_in(name, [root])]
    assert not violations(names, {root} | in_emulator(EMULATOR_IMPORTS[folder]))


@pytest.mark.parametrize("folder", EXTCLI_IMPORTS)
def test_each_folder_of_the_command_line_has_only_allowed_imports(folder: str):
    root = f"extcli.{folder}"
    names = [name for name in modules() if is_in(name, [root])]
    assert not violations(names, {root} | {f"extcli.{each}" for each in EXTCLI_BASICS | set(EXTCLI_IMPORTS[folder])})


def test_only_the_server_imports_the_composition_root():
    roots = {"emulator.app", "emulator.opening"}
    assert {"emulator.opening", "emulator.server.run"} == {name for name in modules() if roots & imports(name)}
    assert roots == {name for name in modules() if "emulator.feature_list" in imports(name)}


def test_only_the_list_of_features_imports_the_dashboard():
    importers = {name for name in modules() if any(is_in(each, ["emulator.dashboard"]) for each in imports(name))}
    assert {"emulator.feature_list"} == {name for name in importers if not is_in(name, ["emulator.dashboard"])}


def test_only_the_commands_serve_and_data_import_the_service():
    importers = {
        name
        for name in modules()
        if name.startswith("extcli") and any(each.startswith("emulator") for each in imports(name))
    }
    assert {"extcli.commands.emulator.data", "extcli.commands.emulator.serve"} == importers


def test_modules_have_no_import_cycle():
    assert [] == cycle({name: imports(name) for name in modules()})


def test_folders_have_no_import_cycle():
    """A file at the root of a package counts as a folder."""
    graph: dict[str, set[str]] = {}
    for name in modules():
        graph.setdefault(folder_of(name), set()).update(folder_of(each) for each in imports(name))
    assert [] == cycle({folder: found - {folder} for folder, found in graph.items()})


def folder_of(name: str) -> str:
    """Return `extcli.bulk` for `extcli.bulk.report`; each feature counts as a folder."""
    parts = name.split(".")
    return ".".join(parts[: 3 if parts[1:2] == ["features"] else 2])


def cycle(graph: Mapping[str, Collection[str]]) -> list[str]:
    """Return a cycle of the graph, or an empty list."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_folder_has_more_than_twenty_modules():
    folders = Counter(str(path.parent.relative_to(SRC)) for path in SRC.rglob("*.py") if path.stem != "__init__")
    assert {} == {folder: count for folder, count in folders.items() if count > MAX_MODULES}


def test_no_file_shadows_a_module_of_the_standard_library():
    """Except `http.py`, the REST half of a feature, and files in `commands/`, which are named after nouns."""
    names = {name.rpartition(".")[2] for name in modules() if not name.startswith("extcli.commands.")}
    assert {"http"} == names & sys.stdlib_module_names


def test_only_the_clock_modules_read_the_time():
    readers = {
        name
        for name, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr in TIME_FUNCTIONS
        and isinstance(node.value, ast.Name)
        and node.value.id in TIME_MODULES
    }
    assert readers <= {"emulator.clock", "extcli.clock"}
