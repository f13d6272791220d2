"""The rules for imports of `src`, as data and as functions of the graph of imports. `docs/layout.md` shows the data."""

from __future__ import annotations

import ast
import gc
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

SRC = Path(__file__).parent.parent.parent / "src"

Graph = Mapping[str, frozenset[str]]
"""The modules of this project that each module imports, by dotted name."""

SHARING = ("emulator.features",)
"""The folders whose services may import the services of each other's features."""
ROOMS = ("features", "control")
"""The folders of `emulator` whose folders are features."""
BASICS = {
    *(f"core.{name}" for name in ("bounded_cache", "callers", "changes", "clock", "errors", "faults", "journal")),
    *("core.keys", "core.wire", "storage.kinds", "storage.pools", "storage.records", "storage.shapes"),
}
"""Modules of `emulator` that every part of a feature may import."""
SERVICES = ("attempt_limit", "grants", "json_stores", "links", "results", "uploads")
_KINDS = {**dict.fromkeys(SERVICES, "service"), "http": "endpoints"}
"""What modules in the folders of features are, by name. All others but `service` and `endpoints` are rules."""


def _imports(table: str, basics: Collection[str] = ()) -> Mapping[str, Collection[str]]:
    """Read a table: a name, then what it may import besides `basics`. Indented lines continue the one above."""
    found: dict[str, set[str]] = {}
    name = ""
    for line in filter(None, table.splitlines()):
        if not line.startswith(" "):
            name, _, line = line.partition(" ")
        found.setdefault(name, set(basics)).update(line.split())
    return found


FEATURE_IMPORTS = _imports(
    """
rules
service    auth core http.endpoint http.streaming_json realtime.action realtime.admission realtime.closes
           realtime.faulty_messages realtime.hub realtime.publisher realtime.web_page_connection
           realtime.session storage.engine
endpoints  core http.endpoint http.streaming_json realtime.action realtime.session
""",
    BASICS,
)
"""What each kind of module of a feature may import besides its own folder. Many services declare endpoints too."""
WHOLE_IMPORTS = {"http.dispatch"}
"""What a feature in one file may import besides all of that: the service calls itself."""

FLOORS = (
    ("contract",),
    ("core",),
    ("storage",),
    ("auth", "http", "realtime"),
    ("features",),
    ("control",),
    ("dashboard", "namespaces"),
    ("feature_list",),
    ("app",),
    ("process",),
)
"""The rooms of the service, from the ground up. Each imports only from floors below its own."""

EXTCLI_BASICS = {"errors", "bounded_json", "reading"}
"""What every folder of the command line may import. `reading` and `errors` import no other folder."""
EXTCLI_IMPORTS = _imports("""
output      clock errors
config      atomic_file clock errors output toml_file
api         clock config errors output
cli         clock config errors output session
codes       api cli clock config errors output session
simulate    api atomic_file bulk clock config errors output session
bulk        api clock config errors output session
realtime    api clock config errors output session
running     api atomic_file clock config errors extensions journal.views output parity
journal     api clock errors output session
testing     api clock config errors faults journal.views output running seeds session
doctor      api clock config errors output session
conform     api atomic_file clock config doctor errors output session
""")
"""What each folder of the command line may import besides itself. `commands` may import all."""


def kept(make: Callable[[], T]) -> Callable[[], T]:
    """Make once what has a million objects. Searches for garbage among them take longer than all else."""

    @cache
    def made() -> T:
        gc.disable()
        try:
            return make()
        finally:
            gc.freeze()
            gc.enable()

    return made


@kept
def trees() -> Mapping[str, ast.Module]:
    """Return the syntax trees of all modules in `src` by dotted name."""
    return {_name(path): ast.parse(path.read_text()) for path in sorted(SRC.rglob("*.py"))}


@kept
def nodes() -> Mapping[type[ast.AST], list[tuple[str, Any]]]:
    """Return all nodes of all trees by type, each with the name of its module."""
    found: dict[type[ast.AST], list[tuple[str, Any]]] = {}
    for name, tree in trees().items():
        for node in ast.walk(tree):
            found.setdefault(type(node), []).append((name, node))
    return found


def _name(path: Path) -> str:
    return ".".join(path.relative_to(SRC).with_suffix("").parts).removesuffix(".__init__")


@cache
def graph() -> Graph:
    """Return what each module imports anywhere, for type checking too."""
    found: dict[str, set[str]] = {name: set() for name in trees()}
    for name, node in nodes()[ast.Import]:
        found[name] |= {alias.name for alias in node.names}
    for name, node in nodes()[ast.ImportFrom]:
        found[name] |= {_imported(node.module or "", alias.name) for alias in node.names}
    own = ("emulator.", "extcli.")
    return {
        name: frozenset(each for each in some if each.startswith(own) and each != name) for name, some in found.items()
    }


def _imported(package: str, name: str) -> str:
    inside = f"{package}.{name}"
    return inside if inside in trees() else package


def is_in(name: str, parents: Iterable[str]) -> bool:
    """Whether a module is one of these modules, or in one of these folders."""
    return any(name == parent or name.startswith(f"{parent}.") for parent in parents)


def feature_of(name: str) -> str:
    """Return the feature that a module belongs to, such as `emulator.features.votes`; else nothing."""
    parts = name.split(".")
    return ".".join(parts[:3]) if parts[0] == "emulator" and parts[1:2] and parts[1] in ROOMS and parts[2:] else ""


def kinds_of(name: str) -> Collection[str]:
    """Return the keys of `FEATURE_IMPORTS` for a module of a feature; none for a package."""
    if name == feature_of(name):
        return () if (SRC / name.replace(".", "/") / "__init__.py").exists() else FEATURE_IMPORTS
    file = name.split(".")[3]
    return (file,) if file in FEATURE_IMPORTS else (_KINDS.get(file, "rules"),)


def folder_of(name: str) -> str:
    """Return `extcli.bulk` for `extcli.bulk.report`; each feature, and each file at a root, counts as a folder."""
    return feature_of(name) or ".".join(name.split(".")[:2])


CONTRACT = "emulator.contract"
"""What both packages state. Every module may import it; it imports nothing of theirs."""


def folder_violations(graph: Graph) -> list[str]:
    """Return the imports between folders that are not allowed."""
    allowed = {
        f"emulator.{room}": {f"emulator.{each}" for below in FLOORS[:floor] for each in below}
        for floor, rooms in enumerate(FLOORS)
        for room in rooms
    }
    for name, names in EXTCLI_IMPORTS.items():
        allowed[f"extcli.{name}"] = {f"extcli.{each}" for each in EXTCLI_BASICS | set(names)}
    return [
        f"{name} imports {imported}"
        for name, found in graph.items()
        for imported in sorted(found)
        if (folder := ".".join(name.split(".")[:2])) in allowed
        and not is_in(imported, (folder, *allowed[folder], *([] if folder == CONTRACT else [CONTRACT])))
    ]


def feature_violations(graph: Graph) -> list[str]:
    """Return the imports of rules, services and endpoints that are not allowed, also of other features."""
    return [
        f"{name} imports {imported}"
        for name, found in graph.items()
        for imported in sorted(found)
        if (feature := feature_of(name)) and not _may_import(name, feature, imported)
    ]


def _may_import(name: str, feature: str, imported: str) -> bool:
    if is_in(imported, [feature, CONTRACT]):
        return True
    kinds = kinds_of(name)
    if feature_of(imported):
        is_control = is_in(feature, ["emulator.control"])  # what it imports is below it, or beside it
        is_shared = "service" in kinds and is_in(feature, SHARING) and is_in(imported, SHARING)
        return is_control or is_shared
    allowed = {each for kind in kinds for each in FEATURE_IMPORTS[kind]} | (WHOLE_IMPORTS if len(kinds) > 1 else set())
    return not kinds or is_in(imported, {f"emulator.{each}" for each in allowed})


def root_violations(graph: Graph) -> list[str]:
    """Return imports of what wires the service, and of the service by the command line, at other places."""
    importers = {
        "emulator.app": {"emulator.process"},
        "emulator.feature_list": {"emulator.app", "emulator.process"},
        "emulator.dashboard": {"emulator.dashboard", "emulator.feature_list"},
        "emulator": {"emulator", "extcli.commands.data", "extcli.commands.serve"},
        "extcli": {"extcli"},
    }
    return [
        f"{name} imports {imported}"
        for name, found in graph.items()
        for imported in sorted(found)
        for target, allowed in importers.items()
        if is_in(imported, [target]) and not is_in(name, allowed) and not is_in(imported, [CONTRACT])
    ]


def circles(graph: Graph) -> list[str]:
    """Return a circle of modules, otherwise of folders, in order; or an empty list."""
    folders: dict[str, set[str]] = {}
    for name, found in graph.items():
        folders.setdefault(folder_of(name), set()).update(folder_of(each) for each in found)
    return _circle(graph) or _circle({folder: found - {folder} for folder, found in folders.items()})


def _circle(graph: Mapping[str, Collection[str]]) -> list[str]:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


RULES = (folder_violations, feature_violations, root_violations, circles)
"""Each returns what breaks it; an empty list if nothing does."""
