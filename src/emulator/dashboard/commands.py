"""Command lines next to forms. Some words come from the fields, as the user types (`static/dashboard.js`)."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from emulator.contract.shell import join_words
from emulator.core.keys import Key

Form = Literal["", "optional", "each"]


class Part(NamedTuple):
    """The words of a command that come from one or two fields of a form."""

    option: str
    """The option before the value. With empty fields, both are left out, unless the first is required."""
    pieces: tuple[tuple[str, str, str], ...]
    """The text before, the name of the field, and the text after. A piece whose field is empty is left out."""
    shown: str
    """The placeholder without script, and for an empty field that is required or has no option."""
    kind: Form = ""
    """How the value becomes words.

    - `optional`: left out if the field is empty, though it has no option.
    - `each`: the value is a JSON array, or has a line for each value. There is one word for each, after its own option.
    """
    only: str = ""
    """Leave the part out unless the value begins with this, and leave this out of the value."""
    when: tuple[str, ...] = ()
    """Leave the part out unless this field has this value. Then `shown` stands for an empty field, and a part without
    pieces is its option alone."""

    @property
    def words(self) -> list[str]:
        """The words of the command for a browser without JavaScript."""
        if self.when:
            return []
        return [each for each in (self.option, self.shown) if each]

    def as_json(self) -> dict[str, Any]:
        """Return the members that are not empty."""
        return {name: value for name, value in self._asdict().items() if value}


class Command(NamedTuple):
    """A command line with parts that follow a form."""

    text: str
    """The line without script: with placeholders such as `VALUE`."""
    template: str
    """Its words and parts as JSON."""

    def __str__(self) -> str:
        return self.text


def field(
    name: str, option: str = "", *, before: str = "", after: str = "", shown: str = "", kind: Form = "", only: str = ""
) -> Part:
    """Return the part for the value of one field. By default it is shown as the last part of the name in capitals."""
    shown = shown or name.partition(":")[0].rpartition(".")[2].upper()
    return Part(option, ((before, name, after),), shown, kind, only)


CALLER = Part("--as", (("", "role", ""), (":", "user_id", "")), "ROLE:USER")
"""`--as` with the fields `role` and `user_id`."""
PLACE = (field("client_id", "--client-id"), field("channel_id", "--channel", shown="CHANNEL"))
"""The options for the fields `client_id` and `channel_id`."""


def record_command(*words: str | Part, key: Key, role: str = "") -> list[str | Part]:
    """Return the words of the command for a record; a command would take a name such as `--yes` for an option."""
    if key.name.startswith("-"):
        return [_NO_COMMAND]
    options = [*(("--as", role) if role else ()), "--client-id", key.owner]
    return [*words, *options, *(("--channel", key.channel) if key.channel else ())]


_OPTION_PATTERN = re.compile("--[a-z-]+|-f")
_NO_COMMAND = "# no command, because an argument begins with -"


def command_of(words: list[Any]) -> str | Command:
    """Return a command line of words and parts; a text if it has no parts.

    A comment takes the place of a command that would read the value of a record as an option.
    """
    given = [str(word) for word in words]
    if _NO_COMMAND in given:
        return _NO_COMMAND
    for before, word in pairwise(given):
        if word.startswith("-") and not _OPTION_PATTERN.fullmatch(word) and not before.startswith("-"):
            return _NO_COMMAND
    if not any(isinstance(word, Part) for word in words):
        return join_words(given)
    plain, template = list[str](), list[Any]()
    for word in words:
        if isinstance(word, Part):
            plain += word.words
            template.append(word.as_json())
        else:
            plain.append(str(word))
            template.append(str(word))
    return Command(join_words(plain), json.dumps(template, ensure_ascii=False, separators=(",", ":")))
