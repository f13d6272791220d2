"""Refusals of paths, HTTP, bodies, ids and query parameters."""

from __future__ import annotations

from typing import Final

from emulator.features.explanations.cases import PARAMETER, cases

INPUT: Final = (
    *cases(
        "Invalid body",
        rows=(
            (r"client id (?:is missing|has at most)", "T2", "The client id is missing or malformed",
             "Send the client id of your extension: add `--client-id ID`.",
             "no client id, or a malformed one", "a client id of printable characters"),
            (r"^match: (?P<match>.+): faults never act", "docs: Faults", "The match names no endpoint for extensions",
             "Match an endpoint below `/v1/e/`: `extcli fault add --match 'POST /v1/e/vote' --status 503`.",
             "match {match}", "an endpoint for extensions, SOCKET or BROADCAST"),
            (r"^(?P<field>[\w.]+) is missing", "{rule}", "A member of the body is missing",
             "Add the member to the body.", "no {field}", "{field}"),
            (r"^jwt: the token of POST pin is missing", "T5", "The token of POST pin is missing",
             "Send the `token` of POST pin as jwt: `extcli pin check`.", "no jwt", "the token of POST pin in jwt"),
            (r"exactly one of pin, refresh and jwt", "X4", "authenticate needs one credential",
             "Send one of pin, refresh and jwt.", "none or several of them", "exactly one of pin, refresh and jwt"),
            (r"", "{rule}", "The body has the wrong shape",
             "Correct the body; the API viewer at /schema/docs describes it.", "{held}", "{needed}"),
        ),
    ),
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
            (r"has no entry of (?P<id>\S+?)(?:;|$)", "docs: Journal", "The journal has no such entry",
             "List what it has: `extcli logs`.", "id {id}", "an entry that the journal still keeps"),
            (r"^there is no rule (?P<id>.+?)(?:;|$)", "docs: Journal",
             "There is no such rule", "Name another rule, or a request id.", "rule {id}",
             "a ruling such as A1, or a section"),
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
            (r"", "W4", "The request is not valid HTTP",
             "Compare it with `extcli api … -v`, which shows a valid request.", "{detail}", "a valid HTTP request"),
        ),
    ),
    *cases(
        "Invalid id", "Invalid ranking id", "Invalid buffer id", "Invalid store id", "Invalid key",
        rows=((r"", "W8", "The id has the wrong form", "Choose a shorter id of printable characters."),),
    ),
    *cases(
        PARAMETER,
        rows=(
            (r"^cursor", "gaps: Polls and stores", "The cursor is not one of this listing",
             "Begin with cursor 0, then send `next` of the page before.", "{sent}", "0, or next of an earlier page"),
            (r"^since.*(?:mark|too old|begin anew)", "docs: Waits", "The mark cannot be used",
             "Take a new mark just before the wait: `extcli wait mark`.", "{sent}",
             "a mark of this run of the service"),
            (r"^since: sockets", "docs: Waits", "The condition sockets takes no mark", "Leave since out.",
             "since", "no since: sockets counts what is open now"),
            (r"^as: (?P<problem>.+)", "docs: Journal", "The entry cannot be written in this form",
             "Choose another form, or another entry: `extcli logs`.", "{problem}", "an entry that has this form"),
            (r"^data", "W6", "data is not JSON", "Send data as JSON, or POST it in the body."),
            (r"^limit", "gaps: Polls and stores", "limit is out of range", "Send a limit within the range."),
            (r"", "{rule}", "A query parameter is malformed", "Correct the parameter `{field}`."),
        ),
    ),
)  # fmt: skip
