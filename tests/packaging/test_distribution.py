"""What the wheel and the source distribution contain."""

from __future__ import annotations

import tarfile
import zipfile
from configparser import ConfigParser
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent.parent
LARGEST = 2_000_000
"""Bytes of the wheel, with room to grow; a third is the API viewer. Dependencies are not in it."""


def names_in(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def source_files() -> set[str]:
    """Every file below `src` that is not a leftover of Python: modules, scripts and data alike."""
    source = ROOT / "src"
    files = (each for each in source.rglob("*") if each.is_file() and "__pycache__" not in each.parts)
    return {str(each.relative_to(source)) for each in files}


def test_the_wheel_has_all_files_the_command_and_the_plugin_and_is_small(wheel: Path):
    # The wheel has every file of both packages and no other
    found = names_in(wheel)

    assert source_files() == {each for each in found if ".dist-info/" not in each}
    assert {"LICENSE", "METADATA", "WHEEL", "RECORD", "entry_points.txt"} == {
        Path(each).name for each in found if ".dist-info/" in each
    }

    # The wheel is small
    assert wheel.stat().st_size < LARGEST

    # The wheel has the command and the pytest plugin
    with zipfile.ZipFile(wheel) as archive:
        [name] = [each for each in archive.namelist() if each.endswith("/entry_points.txt")]
        points = ConfigParser()
        points.read_string(archive.read(name).decode())

    assert {"console_scripts": ["extcli"], "pytest11": ["extcli"]} == {
        group: list(points[group]) for group in points.sections()
    }


def is_development(name: str) -> bool:
    """Whether a file serves the development of the project only, and is not a template of `extcli new`."""
    if "/commands/project/" in name:
        return False
    parts = Path(name).parts
    return bool({"tests", "benchmarks", "docs", "examples", ".ci"} & set(parts)) or Path(name).name.startswith("test_")


def test_the_source_distribution_builds_without_the_tests(sdist: Path):
    with tarfile.open(sdist) as archive:
        names = [each.partition("/")[2] for each in archive.getnames()]

    assert {f"src/{each}" for each in source_files()} == {each for each in names if each.startswith("src/")}
    assert {"LICENSE", "README.md", "CHANGELOG.md", "pyproject.toml", "PKG-INFO"} <= set(names)
    assert [] == [each for each in names if is_development(each)]
