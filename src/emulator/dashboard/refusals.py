"""Refusals of dashboard pages."""

from __future__ import annotations

from emulator.core.errors import BadRequest, Conflict, Facts, MethodNotAllowed, NotFound, refusal

_RULE = "docs: Control"


@refusal(NotFound, "Not Found", _RULE, "There is no such screen", "Open a screen that the navigation lists.")
def no_screen(*, name: str) -> Facts:
    return Facts(f"there is no screen {name}", f"screen {name}", "a screen of the navigation")


@refusal(NotFound, "Not Found", _RULE, "There is no such file", "Load the page again: `extcli open`.")
def no_file(*, name: str) -> Facts:
    return Facts(f"there is no file {name} here", f"file {name}", "a file of the dashboard")


@refusal(MethodNotAllowed, "Method Not Allowed", _RULE, "The screen accepts no forms",
         "Read it with GET, and change data over the REST API.")  # fmt: skip
def no_forms(*, screen: str) -> Facts:
    return Facts(f"the screen {screen} accepts no forms", "a form", "GET")


@refusal(BadRequest, "Malformed {field} parameter", _RULE, "A setting of the rig is invalid",
         "Change {field} under Pages and viewers: {problem}.")  # fmt: skip
def wrong_arrangement(field: str, problem: str) -> Facts:
    return Facts(f"{field}: {problem}", f"an invalid {field}", problem)


@refusal(Conflict, "Crowd stopped", _RULE, "A vote of the crowd was refused",
         "Read why in the journal: `extcli logs --status 4xx`.")  # fmt: skip
def crowd_stopped(*, poll: str, votes: int, status: int) -> Facts:
    detail = f"{votes} viewers have voted in the poll {poll}; the service answered the next vote with {status}"
    return Facts(detail, f"a vote that the service answered with {status}", "an open poll, and no matching fault")
