"""Each option of `extcli serve` is set by its variable as by its flag, and `extcli exec` has each of them."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest

from extcli.app import load_noun

SERVE = {each.name: each for each in load_noun("serve").params if each.opts[0] != "--help"}
EXEC = {each.name: each for each in load_noun("exec").params}
NOT_OF_EXEC = {"lifeline"}
"""`exec` sets it."""
OWN_OF_EXEC = {"port", "data", "name"}
"""Runs would share them, so `exec` does not read their variables."""


def sample(parameter: Any) -> list[str]:
    """Return valid values of an option, none of them its default: several if it can be repeated."""
    kind, least = parameter.type_descriptor.annotation, parameter.type_descriptor.parameter_info.min
    if parameter.is_flag:
        return []
    if kind is int:
        return [str((least or 0) + 7)]
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return [next(str(each) for each in kind if each != parameter.default)]
    assert kind in (str, Path, list[str]), f"no sample of {kind}"
    return ["first", "second"] if parameter.multiple else ["value"]


def parsed(noun: str, name: str, *args: str) -> Any:
    """Return the value of an option of `serve` or `exec`, called with these arguments."""
    command = ["--", "true"] if noun == "exec" else []
    with load_noun(noun).make_context(noun, [*args, *command]) as context:
        return context.params[name]


def given(parameter: Any) -> list[str]:
    """Return the arguments that set an option."""
    flag = parameter.opts[0]
    return [word for value in sample(parameter) for word in (flag, value)] or [flag]


@pytest.mark.parametrize("name", SERVE)
def test_each_option_of_serve_is_reachable_by_its_variable(name: str, monkeypatch: pytest.MonkeyPatch):
    parameter = SERVE[name]
    by_flag = parsed("serve", name, *given(parameter))
    monkeypatch.setenv(
        f"EXTCLI_SERVE_{parameter.opts[0][2:].replace('-', '_').upper()}", " ".join(sample(parameter)) or "1"
    )

    assert by_flag == parsed("serve", name)
    assert by_flag != parameter.default
    assert parameter.help


@pytest.mark.parametrize("name", sorted(SERVE.keys() - NOT_OF_EXEC))
def test_exec_has_each_option_of_serve(name: str, monkeypatch: pytest.MonkeyPatch):
    parameter = SERVE[name]
    by_flag = parsed("serve", name, *given(parameter))
    without = parsed("exec", name)
    monkeypatch.setenv(parameter.envvar, " ".join(sample(parameter)) or "1")

    assert by_flag == parsed("exec", name, *given(parameter))
    assert (without if name in OWN_OF_EXEC else by_flag) == parsed("exec", name)


def test_exec_hides_the_variables_that_it_sets():
    assert NOT_OF_EXEC.isdisjoint(EXEC)
    assert {0, "sqlite://", None} == {EXEC[name].default for name in OWN_OF_EXEC}
