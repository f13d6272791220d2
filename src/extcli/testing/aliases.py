"""The types of the fixtures, for annotations."""

from __future__ import annotations

from typing import TypeAlias

from extcli.testing import namespace
from extcli.testing.calls import Awaited, Blocking

Namespace: TypeAlias = namespace.Namespace[Blocking]
"""The fixture `extcli`."""
AsyncNamespace: TypeAlias = namespace.Namespace[Awaited]
"""The fixture `extcli_async`."""
