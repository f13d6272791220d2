"""`extcli new`: makes a small extension that works at once, from the templates in `project`."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from html import escape
from pathlib import Path
from urllib.parse import urlsplit

from emulator.contract.shell import quote_posix as quote
from extcli.cli import argument, option, shared
from extcli.commands.connect import SIGNING_WRITERS, WRITERS, ClientKind, Writer, fill_template, template_settings
from extcli.config.resolver import Resolver
from extcli.errors import UsageError, file_errors
from extcli.output import views
from extcli.running.registry import NO_WINDOWS_DEVICE
from extcli.session import Session

_TEMPLATES = Path(__file__).with_name("project")
_FOLDER_NAME = re.compile(NO_WINDOWS_DEVICE + r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}(?<!\.)")
_IN_CI = "python3 -m venv .venv && .venv/bin/pip install pytest ./tools/extcli"


class Backend(StrEnum):
    """The language of the backend and of its tests."""

    NODE = "node"
    PYTHON = "python"


@dataclass(frozen=True, slots=True)
class _Language:
    """The differences between the languages of backends."""

    words: Mapping[str, str]
    """Texts of the README, by the words in capitals that they replace."""
    printed: Mapping[str, Writer]
    """Files that `extcli connect` prints."""
    steps: Mapping[str, str]
    """Texts of the CI job, by those in the job that `extcli connect github` prints."""


_LANGUAGES = {
    Backend.NODE: _Language(
        {"BACKEND": "backend.mjs", "SIGNER": "sign.mjs", "RUN": "node backend.mjs", "TEST": "npm test", "NEEDS": ""},
        {
            "sign.mjs": SIGNING_WRITERS[ClientKind.NODE],
            "sign.d.mts": SIGNING_WRITERS[ClientKind.NODE_TYPES],
            "tests/extcli.mjs": WRITERS[ClientKind.NODE_TEST],
            "tests/extcli.d.mts": WRITERS[ClientKind.NODE_TYPES],
        },
        {},
    ),
    Backend.PYTHON: _Language(
        {
            "BACKEND": "backend.py",
            "SIGNER": "sign.py",
            "RUN": "python backend.py",
            "TEST": "python -m pytest",
            "NEEDS": "The tests need pytest in the environment of extcli: `pip install pytest`.\n\n",
        },
        {"sign.py": SIGNING_WRITERS[ClientKind.PYTHON]},
        {"npm install": _IN_CI, "npm test": ".venv/bin/python -m pytest"},
    ),
}


@shared
def new(
    session: Session,
    name: str = argument("NAME", "The name of the folder to create in the current folder."),
    backend: Backend = option("--backend", "The language of the backend and its tests.", Backend.NODE),
) -> None:
    """Create a small extension, with pages, a backend and tests.

    The extension has a panel, a live page and a config page, which load the published SDK, a
    backend that signs its tokens, tests, and a CI job. Its README explains how to run and test it.
    The files contain the values of --url, --client-id and --channel. Sends nothing.

    \b
    Examples:
      extcli new boss-poll
      extcli new boss-poll --backend python --client-id my-extension
    """
    if not _FOLDER_NAME.fullmatch(name):
        raise UsageError(
            f"NAME: {name[:80]!r} is not a valid folder name",
            fix="use up to 64 letters, digits, `.`, `-`, `_`; no `.` or `-` first, no `.` last, no device such as con",
        )
    folder, files = Path(name), _project_files(name, backend, session.resolver)
    with file_errors(f"create the folder {name}"):
        folder.mkdir()
    try:
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)  # only what was just written
        raise UsageError(f"cannot write the files of {name}", why=error.strerror or "") from None
    words = _LANGUAGES[backend].words
    session.output.show_value({"folder": name, "test": f"cd {name} && extcli exec -- {words['TEST']}"}, views.RECORD)


def _project_files(name: str, backend: Backend, resolver: Resolver) -> dict[str, str]:
    """Return the texts of all files, by their paths in the project."""
    language, place = _LANGUAGES[backend], template_settings(resolver)
    in_pages = {word: escape(value) for word, value in place.items()}
    in_readme = {word: quote(value) for word, value in place.items()} | {**language.words, "NAME": name}
    in_readme["PORT"] = str(urlsplit(place["SERVICE"]).port or 8282)
    files = {
        path.relative_to(start).as_posix().removesuffix(".template"): path.read_text(encoding="utf-8")
        for start in (_TEMPLATES / "common", _TEMPLATES / backend)
        for path in sorted(start.rglob("*"))
        if path.is_file()
    }
    for path, text in files.items():
        in_page = path.endswith(".html")
        files[path] = _replace_words(text, in_pages) if in_page else fill_template(text, resolver)
    files["README.md"] = _replace_words(files["README.md"], in_readme)
    files[".gitignore"] = files.pop("gitignore")
    for path, write in language.printed.items():
        files[path] = write(resolver)
    _comment, _, job = WRITERS[ClientKind.GITHUB](resolver).partition("\n")
    files[".github/workflows/test.yml"] = _replace_words(job, language.steps)
    return files


def _replace_words(text: str, words: Mapping[str, str]) -> str:
    """Return the text with each of these words replaced, in one pass."""
    pattern = "|".join(rf"(?<!\w){re.escape(word)}(?!\w)" for word in words)
    return re.sub(pattern, lambda found: words[found[0]], text) if words else text
