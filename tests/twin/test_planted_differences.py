"""The comparison finds small differences: each is planted in a copy of the sources, and a short run must report it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from twin.__main__ import main
from twin.environment import ROOT

pytestmark = [pytest.mark.long, pytest.mark.slow]


class Plant(NamedTuple):
    """A change of the sources, and what finds it."""

    changes: list[tuple[str, str]]
    """Texts, each in one file of the sources, and what replaces them."""
    run: str
    what: str
    """Stands in the report."""
    where: str = ""
    """Stands before it in the report, with a colon between."""


REST = "--only rest --setup"
PLANTS = {
    "a status": Plant(
        [("class BadRequest(ServiceError, status=400", "class BadRequest(ServiceError, status=422")],
        f"{REST} memory_sandbox --episode 0",
        "status: 400 -> 422",
    ),
    "a header": Plant(
        [('("X-Content-Type-Options", "nosniff")', '("X-Content-Type-Options", "sniff")')],
        f"{REST} memory_production --episode 0",
        "header x-content-type-options: 'nosniff' -> 'sniff'",
    ),
    "a missing field": Plant(
        [("    pin: str\n    token: str\n", "    pin: str\n"), ("return Pin(pin, pin)", "return Pin(pin)")],
        f"{REST} memory_sandbox --episode 0",
        'body.token: "',
        "POST /v1/e/link/pin",
    ),
    "an order": Plant(
        [("if top is None else self._pairs[:top])", "if top is None else self._pairs[:top][::-1])")],
        f"{REST} memory_production --calls 1500",
        "body.data order: ",
        "GET /v1/e/rank",
    ),
    "a lifetime": Plant(
        [("TOKEN_LIFETIME = 30 * MINUTE", "TOKEN_LIFETIME = 31 * MINUTE")],
        f"{REST} memory_sandbox --episode 0",
        "body.token: ",
        "POST /v1/e/authtoken",
    ),
    "a rounding": Plant(
        [("/ count, total / count, total, count,", "/ count, round(total / count, 3), total, count,")],
        f"{REST} memory_production --calls 3000",
        "body.stats.mean: ",
    ),
    "a vote that a kill loses": Plant(
        [
            (
                "        group.waiters.append(waiter)\n        await waiter\n        return result",
                "        return result",
            ),
            (
                "self._loop.call_soon(self._loop.call_soon, self._commit, group)",
                "self._loop.call_later(2, self._commit, group)",
            ),
        ],
        f"{REST} file_production --episode 0",
        "body.",
        "after kill GET /v1/e/vote",
    ),
    "a text of a frame": Plant(
        [('"the message is not valid JSON"', '"the message is malformed JSON"')],
        "--only conversations --setup memory_sandbox --conversations 600",
        "the message is malformed JSON",
    ),
    "an exit code": Plant(
        [("    UNREACHABLE = 3\n", "    UNREACHABLE = 6\n")],
        "--only commands --match 127.0.0.1:9",
        "exit code: 3 -> 6",
    ),
    "the mode of a file": Plant(
        [("_OWNER_ONLY = 0o600", "_OWNER_ONLY = 0o640")],
        "--only commands --match new.toml",
        "mode 0600 -> 0640",
    ),
}


def planted(changes: list[tuple[str, str]], folder: Path) -> Path:
    """Return a copy of the sources with these changes."""
    source = folder / "src"
    shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
    files = {path: path.read_text("utf-8") for path in source.rglob("*.py")}
    for old, new in changes:
        (path,) = [path for path, text in files.items() if old in text]
        files[path] = files[path].replace(old, new)
        path.write_text(files[path], "utf-8")
    return source


@pytest.mark.parametrize("name", PLANTS)
def test_a_planted_difference_is_found(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    plant = PLANTS[name]
    words = [word.replace("_", " ") for word in plant.run.split()]

    code = main([*words, "--source", str(planted(plant.changes, tmp_path))])

    printed = capsys.readouterr().out
    expected = f"{plant.where}: {plant.what}" if plant.where else plant.what
    assert (1, True) == (code, expected in printed), printed
