"""Refusals of paths, HTTP, bodies, ids and query parameters."""

from __future__ import annotations

from typing import Final

from emulator.features.explanations.cases import PARAMETER, cases

INPUT: Final = (
    *cases(
        "Malformed json body",
        rows=(
            (r"connection closed before", "W4", "The body is incomplete",
             "Send as many bytes as Content-Length says.", "a body that ends early", "the whole body"),
            (r"nested too deeply", "W2", "The body is nested too deeply", "Send JSON with fewer levels.",
             "more levels than can be read", "fewer levels of objects and arrays"),
            (r"is not valid JSON(?:: (?P<problem>.+))?", "W2", "The body is not valid JSON",
             "Send valid JSON, whatever the content type; check it with `python -m json.tool`.",
             "{problem}", "JSON in UTF-8, without NaN and Infinity"),
        ),
    ),
    *cases(
        "Body too large",
        rows=(
            (r"has (?P<size>\d+) bytes; the limit is (?P<limit>\d+)", "W8", "The body is too large",
             "Send a smaller body, or raise --max-body of `extcli serve`.", "{size} bytes", "at most {limit} bytes"),
            (r"exceeds the limit of (?P<limit>\d+)", "W8", "The body is too large",
             "Send a smaller body, or raise --max-body of `extcli serve`.",
             "over {limit} bytes", "at most {limit} bytes"),
        ),
    ),
    *cases(
        "Invalid body",
        rows=(
            (r"nested too deeply", "W2", "The body is nested too deeply", "Send JSON with fewer levels.",
             "more levels than can be read", "fewer levels of objects and arrays"),
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
            (r"^value: ", "P2", "The value is not a vote", "Send a JSON integer from -99 to 99.", "{held}",
             "a JSON integer from -99 to 99"),
            (r"", "{rule}", "The body has the wrong shape",
             "Correct the body; the API viewer at /schema/docs describes it.", "{held}", "{needed}"),
        ),
    ),
    *cases(
        "Not Found",
        rows=(
            (r"does not exist in this environment", "spec: Authentication", "Production has no such endpoint",
             "Call it in the sandbox only.", "{detail}", "a path that production has, too"),
            (r"^there is no (?P<path>/[^\s;]*)", "W1", "There is no such path",
             "Correct the path; `extcli api --help` and /schema/openapi.json name the endpoints.",
             "path {path}", "a path of the service, under /v1/e/"),
            (r"outstanding transaction", "gaps: Purchases", "No purchase matches",
             "List the outstanding purchases: `extcli bits list`.", "no outstanding purchase",
             "a purchase that is neither validated nor refunded"),
            (r"^there is no action (?P<action>.+); the actions are (?P<known>.+)", "X9", "There is no such action",
             "Send another action; `extcli socket send --help` shows examples.", "action {action}", "one of {known}"),
            (r"^(?P<action>\S+) does not support (?P<target>.+); supported: (?P<known>.+)", "X9",
             "The action has no such target", "Send another target.", "target {target}", "one of {known}"),
            (r"^(?P<target>\S+) is not part of this service", "X9", "The service does not have this target",
             "Use another target: no public source says what {target} does.",
             "target {target}", "a target of this service"),
            (r"^there is no socket at (?P<path>\S+);", "X1", "There is no socket at this path",
             "Connect to /ws; `extcli connect` prints the address.", "path {path}", "/ws or /<version>/<client id>"),
            (r"path of a namespace", "docs: Namespaces", "The path names no namespace",
             "Put a name into the path: /_ns/NAME/v1/e/…", "no name", "/_ns/<name>/…"),
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
        "Method Not Allowed",
        rows=(
            (r"^(?P<path>\S+) does not support (?P<method>\S+)", "spec: Endpoints", "The path has no such method",
             "Use a method that /schema/openapi.json lists for this path.", "{method} {path}", "a method of this path"),
            (r"", "spec: Endpoints", "The path has no such method",
             "Use a method that /schema/openapi.json lists for this path.", "{detail}", "a method of this path"),
        ),
    ),
    *cases(
        "Bad Request",
        rows=(
            (r"client left", "docs: Waits", "The client left before the answer",
             "Give the client a longer timeout than ?timeout=.", "a closed connection", "a connection that stays open"),
            (r"client id has over (?P<limit>\d+) characters", "X1", "The client id in the path is too long",
             "Connect to /ws, or with the client id of your extension.",
             "over {limit} characters", "at most {limit} characters"),
            (r"", "W4", "The request is not valid HTTP",
             "Compare it with `extcli api … -v`, which shows a valid request.", "{detail}", "a valid HTTP request"),
        ),
    ),
    *cases(
        "Duplicate header",
        rows=(
            (r"^(?P<header>[\w-]+):", "gaps: Limits", "A header occurs twice", "Send the header once.",
             "two {header} headers", "one {header} header"),
        ),
    ),
    *cases(
        "Headers too large",
        rows=(
            (r"(?P<count>\d+) headers, limit (?P<limit>\d+)", "gaps: Limits", "The request has too many headers",
             "Send fewer headers.", "{count} headers", "at most {limit} headers"),
            (r"", "gaps: Limits", "The headers are too large", "Send fewer or shorter headers and cookies.",
             "{detail}", "at most 64 KiB of request line and headers"),
        ),
    ),
    *cases(
        "Request timeout",
        rows=(
            (r"within (?P<limit>\S+) seconds", "gaps: Limits", "The request did not arrive in time",
             "Send the body faster, or raise --request-timeout of `extcli serve`.",
             "an incomplete request after {limit} s", "the whole request within {limit} s, plus 1 s per KiB"),
        ),
    ),
    *cases(
        "Malformed query",
        rows=((r"", "W7", "The query has too many parameters", "Send fewer parameters."),),
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
            (r"^start", "R2", "start is not a time", "Send Unix milliseconds, or leave start out."),
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
