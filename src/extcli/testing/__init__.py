"""The objects of the pytest plugin: namespaces of a running service, for tests of an extension (docs/guide/pytest.md).

Each operation is written once, for blocking and for asynchronous tests (`operation`).
Import names for annotations from here.
"""

from typing import TypeAlias

from extcli.errors import Refused
from extcli.testing import server
from extcli.testing.actor import Awaited, Blocking
from extcli.testing.server import Factory, Server

Namespace: TypeAlias = server.Namespace[Blocking]
"""The fixture `extcli`."""
AsyncNamespace: TypeAlias = server.Namespace[Awaited]
"""The fixture `extcli_async`."""

__all__ = ["AsyncNamespace", "Factory", "Namespace", "Refused", "Server"]
