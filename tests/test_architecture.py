"""Who may import whom, and who may read the time. `docs/layout.md` gives the reasons."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

SRC = Path(__file__).parent.parent / "src"
FEATURES = {
    "votes",
    "ranking",
    "accumulation",
    "stores",
    "identity",
    "pins",
    "broadcast",
    "pages",
    "codes",
    "transactions",
    "datastream",
    "trivia",
    "control",
}
BASICS = {
    "emulator.errors",
    "emulator.wire",
    "emulator.clock",
    "emulator.callers",
    "emulator.engines.base",
    "emulator.engines.pools",
}
TELLING = {
    "emulator.realtime.updates",
    "emulator.realtime.hub",
    "emulator.realtime.pages",
    "emulator.alarms",
    "emulator.pace",
    "emulator.room",
    "emulator.observing.watching",
}
SERVICE_MAY = (
    BASICS
    | TELLING
    | {
        "emulator.environment",
        "emulator.extensions",
        "emulator.settings",
        "emulator.tokens",
        "emulator.service_key",
        "emulator.ids",
    }
)
HTTP_MAY = BASICS | {"emulator.web.call", "emulator.web.endpoint", "emulator.web.streaming", "emulator.ids"}
ACTIONS_MAY = BASICS | {"emulator.realtime.action", "emulator.realtime.session", "emulator.realtime.sockets"}
CLOCKS = {"time", "datetime"}
READINGS = {"time", "time_ns", "monotonic", "monotonic_ns", "now", "utcnow", "today"}


@cache
def modules() -> tuple[tuple[str, ast.Module], ...]:
    paths = sorted(SRC.rglob("*.py"))
    names = [".".join(path.relative_to(SRC).with_suffix("").parts).removesuffix(".__init__") for path in paths]
    return tuple((name, ast.parse(path.read_text())) for name, path in zip(names, paths, strict=True))


def imports(tree: ast.Module) -> Iterator[str]:
    """The modules of this project that a module imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] in ("emulator", "extcli"))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in ("emulator", "extcli"):
            yield from {_module(node.module or "", alias.name) for alias in node.names}


def _module(package: str, name: str) -> str:
    inside = SRC.joinpath(*package.split("."), name)
    return f"{package}.{name}" if inside.with_suffix(".py").exists() or inside.is_dir() else package


def offenders(allowed: dict[str, set[str]]) -> list[str]:
    """`allowed` maps a module to what it may import beside its own package."""
    trees = dict(modules())
    return [
        f"{name} imports {imported}"
        for name, may in allowed.items()
        for imported in imports(trees[name])
        if imported not in may and not imported.startswith(name.rpartition(".")[0] + ".")
    ]


def feature_modules() -> Iterator[str]:
    return (name for name, _ in modules() if name.count(".") == 2 and name.split(".")[1] in FEATURES)


def test_rules_are_pure_they_import_neither_services_nor_the_web():
    impure = (".service", ".http", ".actions", ".updates", ".guesses", ".gate")
    pure = [name for name in feature_modules() if not name.endswith(impure)]
    assert {name: [] for name in pure} == {
        name: [
            imported
            for imported in imports(dict(modules())[name])
            if imported not in BASICS
            and (imported.endswith((".service", ".http")) or ".web" in imported or ".realtime" in imported)
        ]
        for name in pure
    }


def test_a_feature_knows_no_other_feature():
    strangers = [
        f"{name} imports {imported}"
        for name, tree in modules()
        if name.split(".")[1:2] and name.split(".")[1] in FEATURES
        for imported in imports(tree)
        if imported.split(".")[1] in FEATURES - {name.split(".")[1]}
    ]
    assert not strangers


def test_a_service_knows_the_shapes_of_data_and_no_engine_no_web():
    assert not offenders({name: SERVICE_MAY for name in feature_modules() if name.endswith((".service", ".updates"))})


def test_an_endpoint_knows_its_service_and_the_web():
    assert not offenders({name: HTTP_MAY for name in feature_modules() if name.endswith(".http")})


def test_an_action_knows_its_service_and_the_socket():
    assert not offenders({name: ACTIONS_MAY for name in feature_modules() if name.endswith(".actions")})


def test_an_engine_knows_no_feature_no_web_and_no_time():
    allowed = {"emulator.engines", "emulator.engines.base", "emulator.errors"}
    assert not [
        f"{name} imports {imported}"
        for name, tree in modules()
        if name.startswith("emulator.engines")
        for imported in imports(tree)
        if imported not in allowed and not imported.startswith("emulator.engines.")
    ]


def test_the_web_and_the_socket_know_no_feature():
    assert not [
        f"{name} imports {imported}"
        for name, tree in modules()
        if name.startswith(("emulator.web", "emulator.realtime"))
        for imported in imports(tree)
        if imported.split(".")[1] in FEATURES
    ]


def test_only_the_server_and_the_workers_import_the_wiring():
    importers = {name for name, tree in modules() if "emulator.app" in imports(tree)}
    assert {"emulator.server"} == importers


def test_the_command_line_reaches_the_service_over_the_wire_and_only_serve_imports_it():
    importers = {
        name
        for name, tree in modules()
        if name.startswith("extcli") and any(each.startswith("emulator") for each in imports(tree))
    }
    assert {"extcli.commands.serve"} == importers


def test_only_the_clocks_read_the_time():
    readers = {
        name
        for name, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr in READINGS
        and isinstance(node.value, ast.Name)
        and node.value.id in CLOCKS
    }
    assert readers <= {"emulator.clock", "extcli.clock"}
