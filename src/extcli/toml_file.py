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
        self._added = tomlkit.document()
        try:
            self.document: Any = tomlkit.parse(text)
        except TOMLKitError as error:
            raise UsageError(f"{path} is not TOML: {str(error).splitlines()[0]}") from None

    def append(self, name: str, values: Mapping[str, Any]) -> None:
        """Write a new table at the end of the file."""
        self._added[self._section] = tomlkit.table(is_super_table=True).append(name, values)

    def edited_content(self) -> dict[str, Any]:
        """Return what the file is to contain."""
        content: dict[str, Any] = self.document.unwrap()
        if not self._added:
            return content
        return content | {self._section: content.get(self._section, {}) | self._added.unwrap()[self._section]}

    def save(self, heading: str) -> None:
        """Replace the file; a new one begins with the heading. Raises `UsageError`."""
        text = tomlkit.dumps(self.document)
        if self._added:
            text = text or heading
            gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
            text += f"{gap}{tomlkit.dumps(self._added)}"
        if text == self._before:
            return
        if not _has_values(text, self.edited_content()):  # tomlkit cannot edit every layout
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
