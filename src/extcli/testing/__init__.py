"""The objects of the pytest plugin: namespaces of a running service, for tests of an extension (docs/guide/pytest.md).

Each operation is written once, for blocking and for asynchronous tests (`operation`).
Import names for annotations from here. They load on first use, so that pytest starts fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from extcli.errors import Refused as Refused
    from extcli.testing.server import AsyncNamespace as AsyncNamespace
    from extcli.testing.server import Factory as Factory
    from extcli.testing.server import Namespace as Namespace
    from extcli.testing.server import Server as Server

_PLACES = {"Refused": "extcli.errors"}
_PLACES |= dict.fromkeys(("Namespace", "AsyncNamespace", "Factory", "Server"), "extcli.testing.server")


def __getattr__(name: str) -> Any:
    if name in _PLACES:
        return getattr(import_module(_PLACES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
