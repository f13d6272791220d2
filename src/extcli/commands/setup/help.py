"""`extcli help`: topics that concern many commands, made from what the program declares."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from extcli.cli import argument, shared
from extcli.config.settings import VARIABLES
from extcli.errors import MEANINGS
from extcli.output.columns import Column, listing, shown, table
from extcli.output.printer import View
from extcli.session import Session


class Topic(StrEnum):
    """A topic."""

    EXIT_CODES = "exit-codes"
    ENV = "env"
    SEED = "seed"


def _columns(facts: list[dict[str, Any]]) -> list[Column]:
    return [Column(name, heading="", text=shown, folds=True) for name in facts[0]]


_FACTS = View(
    table=lambda facts: table(_columns(facts), facts),
    rows=lambda facts: listing("", *_columns(facts)).rows(facts),
    items=lambda facts: facts,
)


@shared
def help(
    session: Session,
    topic: list[str] | None = argument(
        "exit-codes|env|seed", "A topic, or a command such as vote cast. Default: list all commands.", None
    ),
) -> None:
    """Explain exit codes, variables, the content of a seed, or a command. Without a topic, list the commands.

    \b
    Examples:
      extcli help exit-codes
      extcli help vote cast
      extcli help env -o jsonl
    """
    match topic or []:
        case [Topic.EXIT_CODES]:
            session.output.show_value([{"code": int(code), "meaning": text} for code, text in MEANINGS.items()], _FACTS)
        case [Topic.ENV]:
            session.output.show_value(_variables(), _FACTS)
        case [Topic.SEED]:
            from extcli.seeds.schema import reference

            fields = [{"field": path, "accepts": accepts, "meaning": meaning} for path, accepts, meaning in reference()]
            session.output.show_value(fields, _FACTS)
            session.output.note("`extcli seed example` prints a seed with all of them")
        case words:
            from extcli.app import run

            run([*words, "--help"])


def _variables() -> list[dict[str, str]]:
    """Return the variables of the settings and of the options of `serve`."""

    from extcli.app import load_noun

    meanings = dict(VARIABLES)
    for option in load_noun("serve").params:
        if option.envvar and not option.hidden:
            meanings[str(option.envvar)] = f"serve {option.opts[0]}: {option.help or ''}"
    return [{"variable": name, "meaning": meaning} for name, meaning in meanings.items()]
