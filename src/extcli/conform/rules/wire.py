"""Paths, bodies, responses and CORS."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from extcli.api.http import is_loopback
from extcli.conform.calls import Reply
from extcli.conform.deployment import Deployment
from extcli.conform.rule import expect, expect_that, rule, shown

KIB = 1024
PAGE = {"origin": "https://extension.example"}
ALIASES = {
    "config": "all_config",
    "config/channel": "channel_config",
    "config/extension": "extension_config",
    "codes/eligible": "codes/eligibility",
    "user-info": "user_info",
}
"""Paths of published clients that read, and the specified ones."""


# W1


@rule("W1", "viewer")
def slashes(at: Deployment) -> None:
    """Repeated slashes count as one, and a slash at the end is ignored."""
    for path in ("//v1/e/user_info", "/v1//e///user_info", "/v1/e/user_info/", "/v1/e/user_info//"):
        reply = at.viewer.get(path)
        expect(f"the status of GET {path}", 200, reply.status)
        expect(f"the role in GET {path}", "viewer", reply.json.get("role"))


@rule("W1", "viewer")
def aliases(at: Deployment) -> None:
    """The paths of published clients answer as the specified ones."""
    for alias, name in ALIASES.items():
        replies = [at.viewer.get(path) for path in (alias, name)]
        expect(f"the status of GET {alias}", replies[1].status, replies[0].status)
        members = [{**each.json, "server_time": 0} if isinstance(each.json, dict) else each.json for each in replies]
        expect(f"the body of GET {alias}", members[1], members[0])


@rule("W1", "broadcaster", writes=True)
def writes_under_an_alias(at: Deployment) -> None:
    """Data written under an alias is read under the specified name."""
    at.broadcaster.post("config/channel", {"theme": "dark"}).check()
    expect("channel_config", {"theme": "dark"}, at.broadcaster.get("channel_config").data)


@rule("W1", "viewer")
def misspelled_paths(at: Deployment) -> None:
    """A path with different case, or with a file ending, gets 404."""
    for path in ("Vote", "vote.json", "vote/default", "all_configs", "nothing"):
        expect(f"the status of GET {path}", 404, at.viewer.get(path).status)


# W2


@rule("W2", "viewer", writes=True)
def content_types(at: Deployment) -> None:
    """A body is JSON whatever its content type."""
    poll = at.fresh("poll")
    for kind in ("application/x-www-form-urlencoded; charset=UTF-8", "text/plain", "image/png", "nonsense"):
        reply = at.viewer.call("POST", "vote", content=b'{"value":3}', headers={"content-type": kind}, id=poll)
        expect(f"the status of a vote sent as {kind}", 200, reply.status)


@rule("W2", "viewer", writes=True)
def body_in_a_string(at: Deployment) -> None:
    """A body inside a JSON string is decoded a second time."""
    at.viewer.post("viewer_state", '{"team":"red"}').check()
    expect("the state", {"team": "red"}, at.viewer.get("viewer_state").data)
    reply = at.viewer.post("vote", '{"value":3}', id=at.fresh("poll"))
    expect("the vote", 3, reply.data.get("vote"))


@rule("W2", "viewer", "admin", writes=True)
def text_as_data(at: Deployment) -> None:
    """A JSON string that holds no object or array is kept as text."""
    buffer = at.fresh("buffer")
    at.viewer.post("accumulate", "just text", id=buffer).check()
    expect("the entries", ["just text"], [each["data"] for each in at.admin.get("accumulate", id=buffer).data["data"]])


@rule("W2", "viewer", writes=True)
def lenient_json(at: Deployment) -> None:
    """NaN, Infinity and lone surrogates are refused with 400, and change nothing."""
    for value in ("NaN", "Infinity", "-Infinity", "1e400", r'"\ud800"', "01", "'a'", "[1,]", "undefined"):
        reply = at.viewer.call("POST", "viewer_state", content=f'{{"a":{value}}}'.encode())
        expect(f"the status for {value}", 400, reply.status)
    expect("the state afterwards", {}, at.viewer.get("viewer_state").data)


@rule("W2", "viewer", writes=True)
def malformed_body(at: Deployment) -> None:
    """A malformed body is refused with 400."""
    poll = at.fresh("poll")
    for body in (b"", b"{", b"\xff", b"value=1", b'{"value":1} {}'):
        expect(f"the status for {shown(body)}", 400, at.viewer.call("POST", "vote", content=body, id=poll).status)
    expect("the number of votes", 0, at.viewer.get("vote", id=poll).data["stats"]["count"])


@rule("W2", "viewer", writes=True)
def repeated_keys(at: Deployment) -> None:
    """The last of repeated keys counts."""
    reply = at.viewer.call("POST", "vote", content=b'{"value":1,"value":2}', id=at.fresh("poll"))
    expect("the vote", 2, reply.data.get("vote"))


# W3


@rule("W3", "admin")
def empty_list(at: Deployment) -> None:
    """An empty list is `[]`, in a body of type application/json."""
    for path, empty in (
        ("vote_logs", {"result": []}),
        ("rank", {"data": []}),
        ("accumulate", {"data": [], "latest": 0}),
    ):
        reply = at.admin.get(path, id=at.fresh())
        expect(f"the status of {path}", 200, reply.status)
        expect(f"the body of {path}", empty, reply.json)
        expect(f"the content type of {path}", "application/json", reply.headers.get("content-type"))


@rule("W3", "broadcaster", writes=True)
def empty_answer(at: Deployment) -> None:
    """An empty response is `{}`, in a body of type application/json."""
    caller, id = at.broadcaster, at.fresh("poll")
    for reply in (
        caller.post("accumulate", {}, id=id),
        caller.post("channel_state", {}),
        caller.patch("channel_state", []),
        caller.post("vote_config", {"config": {}}, id=id),
        caller.delete("vote", id=id),
        caller.delete("rank", id=id),
    ):
        expect(f"the status of {reply.request}", 200, reply.status)
        expect(f"the body of {reply.request}", {}, reply.json)
        expect(f"the content type of {reply.request}", "application/json", reply.headers.get("content-type"))


# W5


@rule("W5", "viewer")
def open_to_every_origin(at: Deployment) -> None:
    """Any origin may read every response, errors included."""
    for caller, path in (
        (at.viewer, "vote"),
        (at.viewer, "vote_logs"),
        (at.viewer, "nothing"),
        (at.viewer, "vote?id=."),
        (at.anonymous, "vote"),
        (at.anonymous, "/v1/nothing"),
    ):
        reply = caller.call("GET", path, headers=PAGE)
        what = f"access-control-allow-origin of GET {path} ({reply.status})"
        expect(what, "*", reply.headers.get("access-control-allow-origin"))


@rule("W5")
def preflight(at: Deployment) -> None:
    """A preflight is answered with 200 and `{}`, and allows the methods and headers of the API."""
    for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
        asked = {"access-control-request-method": method, "access-control-request-headers": "authorization"}
        reply = at.anonymous.call("OPTIONS", "vote", headers=PAGE | asked)
        expect(f"status and body for {method}", (200, {}), (reply.status, reply.json))
        expect("access-control-allow-origin", "*", reply.headers.get("access-control-allow-origin"))
        _lists(reply, "access-control-allow-methods", method)
        _lists(reply, "access-control-allow-headers", "Authorization", "Content-Type")


@rule("W5", "viewer")
def exposed_headers(at: Deployment) -> None:
    """Pages may read X-Request-Id and Retry-After."""
    reply = at.viewer.call("GET", "user_info", headers=PAGE)
    _lists(reply, "access-control-expose-headers", "X-Request-Id", "Retry-After")
    expect_that("x-request-id", bool(reply.headers.get("x-request-id")), "an id", reply.headers.get("x-request-id"))


@rule("W5", emulator=True)
def closed_control_api(at: Deployment) -> None:
    """The control API refuses pages of another origin, and no page may read it."""
    for headers in (PAGE, {"sec-fetch-site": "cross-site"}, {"host": "evil.example"}):
        reply = _clock(at, headers)
        expect(f"the status with {shown(headers)}", 403, reply.status)
        expect("access-control-allow-origin", None, reply.headers.get("access-control-allow-origin"))


@rule("W5", emulator=True)
def clients_on_another_machine(at: Deployment) -> None:
    """A loopback `Host` opens the control API to clients on the service's machine only."""
    elsewhere: list[dict[str, str]] = [
        {"x-forwarded-for": "198.51.100.7"},
        {"x-real-ip": "198.51.100.7"},
        {"forwarded": "for=198.51.100.7"},
    ]
    if not is_loopback(urlsplit(at.target.http.url).hostname or ""):
        elsewhere.append({})
    for headers in elsewhere:
        reply = _clock(at, {"host": "localhost", **headers})
        expect(f"the status with the host localhost and {shown(headers)}", 403, reply.status)


def _clock(at: Deployment, headers: Mapping[str, str]) -> Reply:
    """Read the clock without the control token."""
    return at.anonymous.call("GET", "/_emulator/clock", headers={"x-emulator-token": "", **headers})


def _lists(reply: Reply, header: str, *names: str) -> None:
    text = reply.headers.get(header, "")
    found = {each.strip().casefold() for each in text.split(",")}
    expect_that(header, {each.casefold() for each in names} <= found, ", ".join(names), text)


# W7


@rule("W7", "viewer", writes=True)
def unknown_names(at: Deployment) -> None:
    """Unknown parameters, headers and fields are ignored."""
    poll = at.fresh("poll")
    reply = at.viewer.call(
        "POST",
        f"vote?undefined=undefined&x[]=1&&=&id={poll}&color",
        {"value": 3, "color": "red", "stats": None},
        headers={"x-unknown": "1", "cookie": "broken=;;", "range": "bytes=0-1"},
    )
    expect("status and vote", (200, 3), (reply.status, reply.json.get("vote")))
    expect("the number of votes", 1, at.viewer.get("vote", id=poll).data["stats"]["count"])


@rule("W7", "viewer", writes=True)
def repeated_parameters(at: Deployment) -> None:
    """The first of a repeated parameter counts."""
    first, second = at.fresh("poll"), at.fresh("poll")
    at.viewer.post("vote", {"value": 3}, id=first).check()
    found = [at.viewer.get(f"vote?id={a}&id={b}").data["stats"]["count"] for a, b in ((first, second), (second, first))]
    expect("the votes of the poll that is named first", [1, 0], found)


# W8


@rule("W8", "viewer", writes=True)
def size_of_a_body(at: Deployment) -> None:
    """A body has at most 64 KiB; a longer one gets 413."""
    poll = at.fresh("poll")
    for size, status in ((64 * KIB, 200), (64 * KIB + 1, 413)):
        reply = at.viewer.call("POST", "vote", content=b'{"value":1}'.ljust(size), id=poll)
        expect(f"the status of a vote of {size} bytes", status, reply.status)


@rule("W8", "admin")
def length_of_an_id(at: Deployment) -> None:
    """An id has at most 64 characters; a longer one is refused with 400."""
    for path in ("vote", "rank", "accumulate", "vote_logs"):
        for length, status in ((64, 200), (65, 400)):
            found = at.admin.get(path, id=at.fresh().ljust(length, "i")).status
            expect(f"the status of {path} with {length} characters", status, found)


@rule("W8", "admin")
def printable_ids(at: Deployment) -> None:
    """The ids of rankings, buffers and JSON stores are any printable text."""
    for path in ("rank", "accumulate"):
        for id, status in (("ä ?/", 200), ("🎲", 200), ("a\nb", 400), ("\x00", 400)):
            expect(f"the status of {path} with the id {shown(id)}", status, at.admin.get(path, id=id).status)


@rule("W8", "viewer", writes=True)
def empty_id(at: Deployment) -> None:
    """A missing or empty `id` is `default`."""
    at.viewer.post("vote?id=", {"value": 3}).check()
    for path in ("vote", "vote?id=", "vote?id", "vote?id=default", "vote?other=1", "vote?&&"):
        expect(f"the number of votes in GET {path}", 1, at.viewer.get(path).data["stats"]["count"])


TITLES = {
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    413: "Content Too Large",
    429: "Too Many Requests",
}


def check_error(reply: Reply, status: int) -> None:
    """Raise `Differs` unless the response is an error of this status in the one form (ruling W4)."""
    name = reply.request
    expect(f"the status of {name}", status, reply.status)
    expect(f"the content type of {name}", "application/json", reply.headers.get("content-type"))
    body: Any = reply.json
    expect_that(
        f"the body of {name}", isinstance(body, dict) and {"errors", "reason"} <= body.keys(), "errors and reason", body
    )
    first = body["errors"][0] if isinstance(body["errors"], list) and body["errors"] else {}
    expect(f"status and title in errors of {name}", (status, TITLES[status]), (first.get("status"), first.get("title")))
    for member, text in (("errors[0].detail", first.get("detail")), ("reason", body["reason"])):
        expect_that(f"{member} of {name}", isinstance(text, str) and bool(text), "a text", text)
    expect(f"info of {name}, the same as errors[0].detail", first.get("detail"), body.get("info"))


@rule("spec: Authentication")
def no_credential(at: Deployment) -> None:
    """A call without a credential is refused with 401."""
    for path in ("vote", "user_info", "all_state", "channel_config"):
        expect(f"the status of GET {path} without a credential", 401, at.anonymous.get(path).status)


@rule("spec: Errors")
def error_information(at: Deployment) -> None:
    """A failed call returns a body with error information."""
    reply = at.anonymous.get("user_info")
    expect("the status without a credential", 401, reply.status)
    expect_that("the body", bool(reply.json), "error information", reply.json)


@rule("W4", "viewer", "admin")
def body_of_an_error(at: Deployment) -> None:
    """A refused read has `errors`, `reason` and `info`, with the same facts."""
    check_error(at.anonymous.get("vote"), 401)
    check_error(at.viewer.get("vote_logs", id=at.fresh("poll")), 403)
    check_error(at.viewer.get("nothing"), 404)
    check_error(at.viewer.get("vote?id=a.b"), 400)
    check_error(at.admin.get("accumulate", start="soon"), 400)


@rule("W4", "viewer", "admin", writes=True)
def body_of_a_refused_write(at: Deployment) -> None:
    """A refused write has `errors`, `reason` and `info`, with the same facts."""
    poll = at.fresh("poll")
    check_error(at.viewer.post("vote", {"value": "1"}, id=poll), 400)
    check_error(at.viewer.call("POST", "vote", content=b"{", id=poll), 400)
    check_error(at.viewer.delete("vote", id=poll), 403)
    check_error(at.viewer.put("vote", {}, id=poll), 405)
    check_error(at.admin.post("all_state", {}), 405)
    check_error(at.viewer.call("POST", "vote", content=b" " * 65_537, id=poll), 413)


@rule("W4")
def unknown_paths(at: Deployment) -> None:
    """A path outside the API gets 404, also without a credential."""
    for path in ("/v1", "/v1/e", "/v2/e/vote", "/v1/vote"):
        check_error(at.anonymous.get(path), 404)


@rule("W4", "viewer", secret=True, writes=True)
def order_of_checks(at: Deployment) -> None:
    """A refused call checks the credential first, then the role, then the size of the body, then its content."""
    expired = at.caller("viewer", exp=at.now() // 1000 - 3_600)
    for caller, path, size, status in (
        (expired, "extension_state", 70_000, 401),
        (at.viewer, "extension_state", 70_000, 403),
        (at.viewer, "viewer_state", 70_000, 413),
        (at.viewer, "viewer_state", 60_000, 400),
    ):
        reply = caller.call("POST", path, content=b"x" * size)
        expect(f"the status of {path} with {size} bytes", status, reply.status)


@rule("W4", "viewer", writes=True)
def named_field(at: Deployment) -> None:
    """An error about a field names it."""
    reply = at.viewer.post("vote", {"value": "3"}, id=at.fresh("poll"))
    expect("reason", "Invalid body", reply.json.get("reason"))
    info = str(reply.json.get("info"))
    expect_that("info", "value" in info, "a text that names `value`", info)
