"""Commands and options that were removed. Each answers with one line that names what to use instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

REMOVED: Final = {
    "broadcast as-page": "use `extcli broadcast send`; what a page sends is `extcli api POST pusher_broadcast`",
    "codes check": "use `extcli codes upload --dry-run`",
    "pin check": "use `extcli pin status`; with the token of a game, `extcli user info` shows whether it is valid",
    "pin revoke": "use `extcli link end`, or without a stored link `extcli api DELETE pin`",
    "policies": "use `extcli explain --rulings`, or with an id `extcli explain`; `extcli conform` probes a service",
    "serve --no-upgrade": "leave it out; data of another format is never changed",
    "serve --workers": "start several `extcli serve` on one Redis; see docs/scaling.md",
    "vote define --show": "use `extcli vote config`",
    "wait ready": "use `extcli wait`",
}
"""What to use instead, by command, with the option if only that is gone. The options of `serve` are also of `exec`, and
have variables.
"""


def removal(path: str, name: str) -> str:
    """Return the error for an option or verb that the command at `path` had earlier; empty for any other.

    A path is `extcli`, `extcli codes` and the like.
    """
    command = path.removeprefix("extcli").strip()
    instead = REMOVED.get(f"{'serve' if command == 'exec' else command} {name}".strip())
    return f"{name} no longer exists: {instead}" if instead else ""


def removed_variable(prefix: str, environment: Mapping[str, str]) -> str:
    """Return the error for the first variable that sets a removed option of `serve`; empty if none is set."""
    for name, instead in REMOVED.items():
        variable = prefix + name.removeprefix("serve --").replace("-", "_").upper()
        if name.startswith("serve --") and environment.get(variable):
            return f"{variable} no longer exists: {instead}"
    return ""
