"""The list of mutants with their verdicts, and where each stands in the code of today."""

from __future__ import annotations

import ast
import json
import random
import subprocess
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Final

from mutants.operators import Identity, Site, sites
from mutants.parts import DRAWN, PARTS, ROOT, SOURCES

LIST: Final = Path(__file__).with_name("mutants.jsonl")
_SEED: Final = 824
KILLED: Final = ("killed", "timeout")
VERDICTS: Final = (*KILLED, "survived", "equivalent", "not covered", "not judged", "gone", "retired")


@dataclass(frozen=True)
class Mutant:
    """One line of the list."""

    number: int
    part: str
    file: str
    """Below `src`, when the list was drawn; the code is looked for elsewhere if it is not there."""
    function: str
    operator: str
    code: str
    nth: int
    verdict: str = "not judged"
    by: str = ""
    """The test that killed it."""
    note: str = ""
    """Why it is equivalent or retired."""

    @property
    def identity(self) -> Identity:
        return Identity(self.function, self.operator, self.code, self.nth)

    def __str__(self) -> str:
        return f"{self.number:3} {self.file} {self.function}: {self.operator} in `{self.code}`"


@dataclass(frozen=True)
class Located:
    """A mutant in the code of today."""

    path: Path
    tree: ast.Module
    site: Site


def read_list() -> list[Mutant]:
    return [Mutant(**json.loads(line)) for line in LIST.read_text().splitlines()]


def write_list(mutants: Iterable[Mutant]) -> None:
    """Write the list without empty fields."""
    lines = [{name: value for name, value in asdict(each).items() if value != ""} for each in mutants]
    LIST.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))


def update(changed: Iterable[Mutant]) -> None:
    """Replace these mutants in the list."""
    new = {each.number: each for each in changed}
    write_list([new.get(each.number, each) for each in read_list()])


# Drawing


def draw(commit: str) -> list[Mutant]:
    """Draw mutants from the sources of a commit: at most one for each statement, and of all operators in turn."""
    generator = random.Random(_SEED)
    names = _git("ls-tree", "-r", "--name-only", commit, "src").splitlines()
    drawn: list[Mutant] = []
    for part, patterns in PARTS.items():
        possible: dict[str, list[tuple[str, Identity]]] = {}
        for name in sorted(names):
            file = name.removeprefix("src/")
            if any(fnmatch(file, pattern.replace("/**/", "/*")) for pattern in patterns):
                for site in sites(ast.parse(_git("show", f"{commit}:{name}"))):
                    possible.setdefault(_kind(site.identity.operator), []).append((file, site.identity))
        for choices in possible.values():
            generator.shuffle(choices)
        drawn += _of_part(part, possible, len(drawn))
    return drawn


def _of_part(part: str, possible: dict[str, list[tuple[str, Identity]]], count: int) -> list[Mutant]:
    found: list[Mutant] = []
    statements: set[tuple[str, str, str]] = set()
    while len(found) < DRAWN[part]:
        for choices in possible.values():
            if choices and len(found) < DRAWN[part]:
                file, identity = choices.pop()
                statement = (file, identity.function, identity.code)
                if statement not in statements:
                    statements.add(statement)
                    found.append(Mutant(count + len(found) + 1, part, file, *identity))
    return found


def _kind(operator: str) -> str:
    """Return the kind of an operator: each number and each empty value would otherwise be one of its own."""
    first = operator.partition(" ")[0]
    return "constant" if first.isdigit() else "return" if first == "return" else operator


def _git(*args: str) -> str:
    return subprocess.run(["git", *args], cwd=ROOT, capture_output=True, text=True, check=True).stdout


# Finding


def locate(mutant: Mutant) -> Located | None:
    """Find a mutant in its file, in the files of its part, or in the one file that has such a function."""
    own = SOURCES / mutant.file
    if own.exists() and (found := _in_file(own, mutant.identity)):
        return found
    everywhere = [
        found
        for package in ("emulator", "extcli")
        for path in sorted((SOURCES / package).rglob("*.py"))
        if path != own and mutant.function.rpartition(".")[2] in _text(path)
        if (found := _in_file(path, mutant.identity))
    ]
    named = [each for each in everywhere if each.path.parts[-2:] == own.parts[-2:]]
    return next((each[0] for each in (named, everywhere) if len(each) == 1), None)


def _in_file(path: Path, identity: Identity) -> Located | None:
    tree, places = _places(path)
    return Located(path, tree, places[identity]) if identity in places else None


@cache
def _places(path: Path) -> tuple[ast.Module, dict[Identity, Site]]:
    tree = ast.parse(_text(path))
    return tree, {site.identity: site for site in sites(tree)}


@cache
def _text(path: Path) -> str:
    return path.read_text()


def judged(mutant: Mutant, verdict: str, by: str = "") -> Mutant:
    """Return a mutant with a new verdict. One that was found equivalent stays so, unless a test kills it."""
    if mutant.verdict == "equivalent" and verdict in ("survived", "not covered"):
        return mutant
    return replace(mutant, verdict=verdict, by=by)
