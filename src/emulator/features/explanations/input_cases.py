"""Refusals of paths, HTTP, bodies, ids and query parameters."""

from __future__ import annotations

from typing import Final

from emulator.features.explanations.cases import cases

INPUT: Final = (
    *cases(
        "Not Found",
        rows=(
            (r"^there is no action (?P<action>.+); the actions are (?P<known>.+)", "X9", "There is no such action",
             "Send another action; `extcli socket send --help` shows examples.", "action {action}", "one of {known}"),
            (r"^(?P<action>\S+) does not support (?P<target>.+); supported: (?P<known>.+)", "X9",
             "The action has no such target", "Send another target.", "target {target}", "one of {known}"),
            (r"^(?P<target>\S+) is not part of this service", "X9", "The service does not have this target",
             "Use another target: no public source says what {target} does.",
             "target {target}", "a target of this service"),
            (r"^there is no socket at (?P<path>\S+);", "X1", "There is no socket at this path",
             "Connect to /ws; `extcli connect` prints the address.", "path {path}", "/ws or /<version>/<client id>"),
            (r"", "W4", "What the request names does not exist", "Correct the path or id.", "{detail}",
             "something that exists"),
        ),
    ),
    *cases(
        "Bad Request",
        rows=(
            (r"client id has over (?P<limit>\d+) characters", "X1", "The client id in the path is too long",
             "Connect to /ws, or with the client id of your extension.",
             "over {limit} characters", "at most {limit} characters"),
        ),
    ),
)  # fmt: skip
