"""Files of other projects that the service serves: each is listed with its version and licence, and unchanged."""

from __future__ import annotations

import hashlib
import tomllib
from pathlib import Path

import pytest

import emulator

LISTS = sorted(Path(emulator.__file__).parent.rglob("VENDORED.toml"))
OWN = {
    "VENDORED.toml",
    "dashboard.css",
    "dashboard.js",
    "icon.svg",
    "keys.js",
    "rig.js",
    "shell.js",
    "trace.js",
    "viewer.js",
}


@pytest.mark.parametrize("listing", LISTS, ids=lambda path: path.parent.name)
def test_files_of_other_projects_are_as_listed(listing: Path):
    listed = tomllib.loads(listing.read_text())["file"]

    assert {each["name"]: each["sha256"] for each in listed} == {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in listing.parent.iterdir()
        if path.is_file() and path.name not in OWN
    }
    assert all(each["project"] and each["version"] and each["licence"] and each["tarball"] for each in listed)


def test_both_folders_of_such_files_are_listed():
    assert ["static", "viewer"] == sorted(path.parent.name for path in LISTS)
