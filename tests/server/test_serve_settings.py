"""Each option of `extcli serve` that sets a limit or a rule of the service reaches its setting, in the right unit.

Each option is set by its variable as by its flag, and `extcli exec` has each of them. What a setting does has tests of
its own.
"""

from __future__ import annotations

from dataclasses import fields
from enum import StrEnum
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

from emulator.core.environment import AnonymousLimits
from emulator.core.settings import KIB, MIB, Settings
from extcli.app import load_noun
from extcli.cli.serve_options import ServeOptions
from extcli.commands.serve import _settings

SETTINGS: dict[str, tuple[str, object]] = {
    "--max-body 7": ("limits.body", 7 * KIB),
    "--max-user-map 7": ("limits.user_map", 7 * MIB),
    "--max-codes 7": ("limits.codes", 7 * MIB),
    "--max-user-list 7": ("limits.user_list", 7 * MIB),
    "--max-uploads 7": ("limits.uploads", 7),
    "--max-frame 7": ("limits.frame", 7 * KIB),
    "--max-sockets 7": ("limits.sockets", 7),
    "--max-subscriptions 7": ("limits.topics", 7),
    "--max-ids 7": ("limits.ids", 7),
    "--caller-rate 7": ("caller_rate", 7),
    "--client-rate 7": ("limits.client_rate", 7),
    "--request-timeout 7": ("limits.request_timeout", 7),
    **{f"--{each.name.replace('_', '-')} 7": (f"anonymous.{each.name}", 7) for each in fields(AnonymousLimits)},
    "--leeway 7": ("leeway", 7_000),
    "--namespace-idle 2h": ("namespace_idle", 7_200),
    "--journal 70KiB": ("journal", 70 * KIB),
    "--page-events none": ("page_events", False),
    "--channel-stores extension": ("channel_stores_per_extension", True),
    "--root-path /muxy": ("root_path", "/muxy"),
    "--proxy 127.0.0.1 --proxy 10.0.0.0/8": ("proxies", ("127.0.0.1", "10.0.0.0/8")),
    "--control-host a --control-host b": ("control_hosts", ("a", "b")),
}
"""The name of a setting and its value, by the options that set it."""


def settings_of(options: str) -> Settings:
    with load_noun("serve").make_context("serve", options.split()) as context:
        return _settings(ServeOptions(**context.params))


@pytest.mark.parametrize("options", SETTINGS)
def test_an_option_reaches_its_setting(options: str):
    name, value = SETTINGS[options]

    assert value == attrgetter(name)(settings_of(options)) != attrgetter(name)(settings_of(""))


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
