"""Writes tests/rules/refusal_texts.txt: all texts of every declared refusal, with sample values.

Run it with `make docs`. Other tests compare codes, statuses and fields.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from inspect import Parameter, signature
from sys import modules

from emulator.errors import REFUSALS, Declared
from tools.layout_page import SRC

PATH = SRC.parent / "tests" / "rules" / "refusal_texts.txt"


def declared() -> Mapping[str, Declared]:
    """Return all declared refusals by code."""
    for path in SRC.glob("emulator/**/*.py"):
        if "@refusal(" in path.read_text():
            import_module(".".join(path.relative_to(SRC).with_suffix("").parts))
    return REFUSALS


def written() -> str:
    """Return the content of the file."""
    return "\n".join(line for code, each in sorted(declared().items()) for line in (*_lines(code, each), ""))


def _lines(code: str, declared: Declared) -> Iterator[str]:
    """Yield the texts of a refusal, and if it has optional parameters, those that differ if all are given."""
    parameters = signature(declared.facts, eval_str=True).parameters.values()
    refuse = getattr(modules[declared.facts.__module__], declared.facts.__name__)
    required = [each for each in parameters if each.default is Parameter.empty]
    shown: set[str] = set()
    for given in (required, list(parameters)):
        values = {each.name: _sample(each, 7 + at) for at, each in enumerate(given)}
        error = refuse(**values)
        refused = error.refused
        assert refused is not None
        assert all((error.detail, refused.held, refused.needed, refused.next_step))
        lines = (
            f"{code}: {error.status} {error.reason}",
            f"  why     {refused.title} ({refused.rule})",
            f"  detail  {error.detail}",
            f"  held    {refused.held}",
            f"  needed  {refused.needed}",
            f"  next    {refused.next_step}",
            *([f"  retry   after {error.retry_after} s"] if error.retry_after else []),
        )
        yield from (line for line in lines if line not in shown)
        shown.update(lines)


def _sample(parameter: Parameter, number: int) -> object:
    """Return a value: the name of the parameter for a text."""
    if "Sequence" in str(parameter.annotation) or "Iterable" in str(parameter.annotation):
        return ["<one>", "<two>"]
    return {int: number, bool: True}.get(parameter.annotation, f"<{parameter.name}>")


if __name__ == "__main__":
    PATH.write_text(written())
