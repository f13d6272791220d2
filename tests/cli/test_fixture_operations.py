"""pytest's fixture and the module for Node have the same operations, with the same results."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from cli.fixture_operations import MASKS, ROWS, RUNNER, SEED, TYPED_TARGETS, VALUES, Row
from extcli.errors import ErrorResponse
from extcli.testing.actor import Actor, Blocking, Events, Game
from extcli.testing.controls import Clock, Faults, Wait
from extcli.testing.server import Namespace, Server
from support.program import PROGRAM, SECRET_BASE64
from support.service import LiveServer
from support.typescript import check_types

CLASSES = {
    "extcli": Namespace,
    "viewer": Actor,
    "clock": Clock,
    "faults": Faults,
    "wait": Wait,
    "game": Game,
    "events": Events,
}
OF_NODE = {"extcli": {"advance", "name", "client_id", "channel"}, "viewer": {"call"}}
"""What only the module has as a member of its own: shorter names, and what Python sets for each object."""
CALLERS = {"broadcaster": "viewer", "backend": "viewer"}


def operations_of(cls: type) -> set[str]:
    """Return the public members of a class, without the asynchronous twin, which Node does not need."""
    return {name for name in vars(cls) if not name.startswith("_")} - {"as_async"}


def in_python(live: LiveServer, folder: Path) -> list[object]:
    """Run the rows against a namespace of the fixture, and return the results."""
    extcli: Namespace[Blocking] = Namespace(Server(live.url), "of-python")
    made: dict[str, Any] = {}

    def target(name: str) -> Any:
        if name in ("game", "events"):
            if name not in made:
                made[name] = extcli.game() if name == "game" else extcli.listen("round")
            return made[name]
        return {"extcli": extcli, "viewer": extcli.viewer("U1")}.get(name) or getattr(extcli, name)

    return [_result(target(row.operation.partition(".")[0]), row, folder) for row in ROWS]


def _result(target: Any, row: Row, folder: Path) -> object:
    args = [str(folder / each) if each == "seed.toml" else each for each in row.args]
    try:
        found = getattr(target, row.operation.partition(".")[2])(*args, **(row.options or {}))
    except ErrorResponse as error:
        return {"refused": error.status}
    if isinstance(found, tuple):
        return found._asdict()  # type: ignore[attr-defined]
    return [each._asdict() if isinstance(each, tuple) else each for each in found] if isinstance(found, list) else found


def in_node(extcli: Any, live: LiveServer, folder: Path, **variables: str) -> dict[str, Any]:
    """Run the rows with the module, and return the results, and the members of its objects."""
    (folder / "extcli.mjs").write_text(extcli("connect", "node-test").stdout)
    (folder / "run.mjs").write_text(RUNNER)
    (folder / "rows.json").write_text(json.dumps(ROWS))
    kept = {name: value for name, value in os.environ.items() if not name.startswith("EXTCLI_")}
    kept["PATH"] = f"{PROGRAM.parent}{os.pathsep}{kept['PATH']}"
    run = subprocess.run(
        ["node", "run.mjs"],
        cwd=folder,
        env={**kept, "EXTCLI_URL": live.url, **variables},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert 0 == run.returncode, run.stderr
    return dict(json.loads(run.stdout))


def camel(name: str) -> str:
    return re.sub(r"_(.)", lambda found: found[1].upper(), name)


def test_the_table_has_every_operation_of_the_fixture():
    named = {(CALLERS.get(row.operation.partition(".")[0], row.operation.partition(".")[0]),
              row.operation.partition(".")[2]) for row in ROWS}  # fmt: skip
    named |= {("extcli", name) for name in VALUES}

    assert {(target, name) for target, cls in CLASSES.items() for name in operations_of(cls)} == named


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("node"), reason="needs Node.js")
@pytest.mark.parametrize("has_secret", [True, False])
def test_both_languages_have_the_same_operations_and_results(extcli, live: LiveServer, tmp_path: Path, has_secret):
    (tmp_path / "seed.toml").write_text(SEED)
    (tmp_path / "secret").write_text(SECRET_BASE64)

    python = in_python(live, tmp_path)
    node = in_node(extcli, live, tmp_path, **({"EXTCLI_SECRET_FILE": str(tmp_path / "secret")} if has_secret else {}))

    for row, own, other in zip(ROWS, json.loads(json.dumps(python)), node["results"], strict=True):
        mask = MASKS.get(row.operation, lambda found: found)
        is_refused = [isinstance(each, dict) and "refused" in each for each in (own, other)]
        assert (own if is_refused[0] else mask(own)) == (other if is_refused[1] else mask(other)), row
    for target, cls in CLASSES.items():
        wanted = {camel(name) for name in operations_of(cls) | OF_NODE.get(target, set())}
        assert wanted == set(node["members"][target]), target


def typed_call(row: Row, number: int, result: Any) -> str:
    """Return lines that compile if the types accept the call of a row, and describe what it returned."""
    target, name = row.operation.split(".")
    options = {camel(each): value for each, value in (row.options or {}).items()}
    words = [*row.args, options] if options else row.args
    arguments = ", ".join("undefined" if each is None else json.dumps(each) for each in words)
    call = f"const call{number} = () => targets.{target}.{camel(name)}({arguments});\n"
    if isinstance(result, dict) and "refused" in result:
        return call
    found = "undefined" if result is None else json.dumps(result)
    kind = ": never[]" if result == [] else ""
    return (
        f"{call}const found{number}{kind} = {found};\n"
        f"const row{number}: Known<Awaited<ReturnType<typeof call{number}>>> = found{number};\n"
    )


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("node"), reason="needs Node.js")
def test_the_types_of_the_module_describe_its_members_and_results(extcli, live: LiveServer, tmp_path: Path):
    (tmp_path / "seed.toml").write_text(SEED)
    node = in_node(extcli, live, tmp_path)
    (tmp_path / "extcli.d.mts").write_text(extcli("connect", "node-types").stdout)
    calls = [typed_call(row, number, node["results"][number]) for number, row in enumerate(ROWS)]
    members = [
        f"const of_{target}: Record<keyof typeof targets.{target}, true> = {{ {': true, '.join(names)}: true }};\n"
        for target, names in node["members"].items()
    ]
    (tmp_path / "all.mts").write_text("".join([TYPED_TARGETS, *calls, *members]))

    assert "" == check_types(tmp_path, "all.mts")
