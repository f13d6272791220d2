"""Edits TOML files: one process at a time, in one step. What an edit does not concern stays, comments included."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from emulator.contract import user_files
from extcli import atomic_file
from extcli.errors import UsageError


class TomlEdit:
    """A file that is being edited. Change `document`, or append a table."""

    def __init__(self, path: Path, section: str, text: str) -> None:
        """`section` is the table whose tables are edited. Raises `UsageError`."""
        self.created: list[Path] = []
        """Files that belong to the edit. They are deleted if it fails."""
        self._path = path
        self._section = section
        self._before = text
        try:
            self.document: Any = tomlkit.parse(text)
        except TOMLKitError as error:
            raise UsageError(f"{path} is not TOML: {str(error).splitlines()[0]}") from None

    def append(self, name: str, values: Mapping[str, Any]) -> None:
        """Add a new table after the others of its section."""
        if self._section not in self.document:
            self.document.append(self._section, tomlkit.table(is_super_table=True))
        self.document[self._section][name] = values

    def save(self, heading: str) -> None:
        """Replace the file; a new one begins with the heading. Raises `UsageError`."""
        text = ("" if self._before else heading) + tomlkit.dumps(self.document)
        if text == self._before:
            return
        if not _has_values(text, self.document.unwrap()):  # tomlkit cannot edit every layout
            what = f"{self._path}: cannot edit {self._section} in this layout"
            raise UsageError(what, fix=f"write one table [{self._section}.NAME] per entry")
        atomic_file.replace_text(self._path, text)


@contextmanager
def edit_table(path: Path, section: str, read: Callable[[], str], heading: str = "") -> Iterator[TomlEdit]:
    """Yield an edit of a file, and save it when the block ends without an error. Raises `UsageError`.

    `read` returns the present text, while no other process can edit the file.
    """
    with atomic_file.edit_lock(path):
        edit = TomlEdit(path, section, read())
        try:
            yield edit
            edit.save(heading)
        except BaseException:
            for each in edit.created:
                each.unlink(missing_ok=True)
            raise


def _has_values(text: str, intended: Mapping[str, Any]) -> bool:
    try:
        return user_files.parse_toml(text) == intended
    except ValueError:
        return False
