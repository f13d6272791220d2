"""Paths, bodies, responses and CORS."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from extcli.config.urls import is_loopback
from extcli.conform.calls import ANY, Reply
from extcli.conform.deployment import Deployment
from extcli.conform.rule import expect, expect_members, expect_that, reads, shown, writes
from extcli.conform.rules.votes import Poll, has_votes
from extcli.errors import status_line

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


def check_json_response(reply: Reply, body: object) -> None:
    """Raise `Differs` unless the response has this body, of type application/json."""
    reply.returns(body)
    reply.has_header("content-type", "application/json")


# W1


@reads("W1")
def slashes(at: Deployment) -> None:
    """Repeated slashes count as one, and a slash at the end is ignored."""
    for path in ("//v1/e/user_info", "/v1//e///user_info", "/v1/e/user_info/", "/v1/e/user_info//"):
        at.viewer.get(path).has(role="viewer")


@reads("W1")
def aliases(at: Deployment) -> None:
    """The paths of published clients answer as the specified ones."""
    for alias, name in ALIASES.items():
        specified = at.viewer.get(name, status=ANY)
        found = at.viewer.get(alias, status=specified.status)
        # The clock moves on between the two calls.
        wanted, seen = ({**each.json, "server_time": 0} for each in (specified, found))
        expect(f"the body of GET {alias}", wanted, seen)


@writes("W1")
def writes_under_an_alias(at: Deployment) -> None:
    """Data written under an alias is read under the specified name."""
    at.broadcaster.post("config/channel", {"theme": "dark"})
    at.broadcaster.get("channel_config").returns({"theme": "dark"})


@reads("W1")
def misspelled_paths(at: Deployment) -> None:
    """A path with different case, or with a file ending, gets 404."""
    for path in ("Vote", "vote.json", "vote/default", "all_configs", "nothing"):
        at.viewer.get(path, status=404)


# W2


@writes("W2")
def content_types(at: Deployment) -> None:
    """A body is JSON whatever its content type."""
    poll = at.fresh("poll")
    for kind in ("application/x-www-form-urlencoded; charset=UTF-8", "text/plain", "image/png", "nonsense"):
        at.viewer.post("vote", {"value": 3}, headers={"content-type": kind}, id=poll, case=f"sent as {kind}")


@writes("W2")
def body_in_a_string(at: Deployment) -> None:
    """A body inside a JSON string is decoded a second time; a string without an object or array is kept as text."""
    at.viewer.post("viewer_state", '{"team":"red"}')
    at.viewer.get("viewer_state").returns({"team": "red"})
    at.viewer.post("vote", '{"value":3}', id=at.fresh("poll")).has(vote=3)
    buffer = at.fresh("buffer")
    at.viewer.post("accumulate", "just text", id=buffer)
    expect("the entries", ["just text"], [each["data"] for each in at.admin.get("accumulate", id=buffer).json["data"]])


@writes("W2")
def malformed_body(at: Deployment) -> None:
    """A malformed body, also with NaN, Infinity or a lone surrogate, is refused with 400 and changes nothing."""
    values = (b"NaN", b"Infinity", b"-Infinity", b"1e400", rb'"\ud800"', b"01", b"'a'", b"[1,]", b"undefined")
    at.viewer.refuses("viewer_state", *(b'{"a":%s}' % value for value in values))
    at.viewer.get("viewer_state").returns({})
    poll = Poll(at)
    at.viewer.refuses("vote", b"", b"{", b"\xff", b"value=1", b'{"value":1} {}', id=poll.id)
    poll.counts(0)


@writes("W2")
def repeated_keys(at: Deployment) -> None:
    """The last of repeated keys counts."""
    at.viewer.post("vote", b'{"value":1,"value":2}', id=at.fresh("poll")).has(vote=2)


# W3


@reads("W3")
def empty_list(at: Deployment) -> None:
    """An empty list is `[]`, in a body of type application/json."""
    for path, empty in (
        ("vote_logs", {"result": []}),
        ("rank", {"data": []}),
        ("accumulate", {"data": [], "latest": 0}),
    ):
        check_json_response(at.admin.get(path, id=at.fresh()), empty)


@writes("W3")
def empty_answer(at: Deployment) -> None:
    """An empty response is `{}`, in a body of type application/json."""
    caller, id = at.broadcaster, at.fresh("poll")
    check_json_response(caller.post("accumulate", {}, id=id), {})
    check_json_response(caller.post("channel_state", {}), {})
    check_json_response(caller.patch("channel_state", []), {})
    check_json_response(caller.post("vote_config", {"config": {}}, id=id), {})
    check_json_response(caller.delete("vote", id=id), {})
    check_json_response(caller.delete("rank", id=id), {})


# W5


@reads("W5")
def open_to_every_origin(at: Deployment) -> None:
    """Any origin may read every response, errors included, and its X-Request-Id and Retry-After."""
    paths = [(at.viewer, path) for path in ("vote", "vote_logs", "nothing", "vote?id=.")]
    for caller, path in [*paths, (at.anonymous, "vote"), (at.anonymous, "/v1/nothing")]:
        reply = caller.get(path, status=ANY, headers=PAGE)
        reply.has_header("access-control-allow-origin", "*")
        _check_header_lists(reply, "access-control-expose-headers", "X-Request-Id", "Retry-After")
        request_id = reply.headers.get("x-request-id")
        expect_that("x-request-id", bool(request_id), "an id", request_id)


@reads("W5", "anonymous")
def preflight(at: Deployment) -> None:
    """A preflight is answered with 200 and `{}`, and allows the methods and headers of the API."""
    for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
        asked = {"access-control-request-method": method, "access-control-request-headers": "authorization"}
        reply = at.anonymous.call("OPTIONS", "vote", case=f"for {method}", headers=PAGE | asked)
        reply.returns({})
        reply.has_header("access-control-allow-origin", "*")
        _check_header_lists(reply, "access-control-allow-methods", method)
        _check_header_lists(reply, "access-control-allow-headers", "Authorization", "Content-Type")


@reads("W5", "emulator", "anonymous")
def closed_control_api(at: Deployment) -> None:
    """The control API refuses pages of another origin, and no page may read it."""
    for headers in (PAGE, {"sec-fetch-site": "cross-site"}, {"host": "evil.example"}):
        _refused_clock(at, headers).has_header("access-control-allow-origin", None)


@reads("W5", "emulator", "anonymous")
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
        _refused_clock(at, {"host": "localhost", **headers})


def _refused_clock(at: Deployment, headers: Mapping[str, str]) -> Reply:
    """Read the clock without the control token, and return the refusal with 403."""
    sent = {"x-emulator-token": "", **headers}
    return at.anonymous.get("/_emulator/clock", headers=sent, status=403, case=f"with {shown(headers)}")


def _check_header_lists(reply: Reply, header: str, *names: str) -> None:
    text = reply.headers.get(header, "")
    found = {each.strip().casefold() for each in text.split(",")}
    expect_that(header, {each.casefold() for each in names} <= found, ", ".join(names), text)


# W7


@writes("W7")
def unknown_names(at: Deployment) -> None:
    """Unknown parameters, headers and fields are ignored; the first of a repeated parameter counts."""
    poll = Poll(at)
    path = f"vote?undefined=undefined&x[]=1&&=&id={poll.id}&color"
    headers = {"x-unknown": "1", "cookie": "broken=;;", "range": "bytes=0-1"}
    at.viewer.post(path, {"value": 3, "color": "red", "stats": None}, headers=headers).has(vote=3)
    poll.counts(1)
    other = at.fresh("poll")
    has_votes(at.viewer.get(f"vote?id={poll.id}&id={other}"), 1)
    has_votes(at.viewer.get(f"vote?id={other}&id={poll.id}"), 0)


# W8


@writes("W8")
def size_of_a_body(at: Deployment) -> None:
    """A body has at most 64 KiB; a longer one gets 413."""
    poll = at.fresh("poll")
    for size, status in ((64 * KIB, 200), (64 * KIB + 1, 413)):
        at.viewer.post("vote", b'{"value":1}'.ljust(size), id=poll, status=status, case=f"of {size} bytes")


@reads("W8")
def forms_of_ids(at: Deployment) -> None:
    """An id has at most 64 characters, in rankings and buffers any printable ones; others are refused with 400."""
    for path in ("vote", "rank", "accumulate", "vote_logs"):
        at.admin.get(path, id=at.fresh().ljust(64, "i"))
        at.admin.get(path, id=at.fresh().ljust(65, "i"), status=400)
    for path in ("rank", "accumulate"):
        for id, status in (("ä ?/", 200), ("🎲", 200), ("a\nb", 400), ("\x00", 400)):
            at.admin.get(path, id=id, status=status)


@writes("W8")
def empty_id(at: Deployment) -> None:
    """A missing or empty `id` is `default`."""
    at.viewer.post("vote?id=", {"value": 3})
    for path in ("vote?id=", "vote?id", "vote?id=default", "vote?other=1", "vote?&&"):
        has_votes(at.viewer.get(path), 1)


def check_error(reply: Reply) -> None:
    """Raise `Differs` unless the response is an error in the one form (ruling W4)."""
    reply.has_header("content-type", "application/json")
    first = reply.json["errors"][0]
    title = status_line(reply.status).partition(" ")[2]
    expect_members({"status": reply.status, "title": title}, first, f"in errors of {reply.request}")
    for member, text in (("errors[0].detail", first["detail"]), ("reason", reply.json["reason"])):
        expect_that(f"{member} of {reply.request}", isinstance(text, str) and bool(text), "a string", text)
    reply.has(info=first["detail"])


@reads("spec: Authentication", "anonymous")
def no_credential(at: Deployment) -> None:
    """A call without a credential is refused with 401 and error information."""
    for path in ("vote", "user_info", "all_state", "channel_config"):
        reply = at.anonymous.get(path, status=401)
        expect_that(f"the body of {reply.request}", bool(reply.json), "error information", reply.json)


@reads("W4")
def body_of_an_error(at: Deployment) -> None:
    """A refused read has `errors`, `reason` and `info`, with the same facts."""
    check_error(at.anonymous.get("vote", status=401))
    check_error(at.viewer.get("vote_logs", id=at.fresh("poll"), status=403))
    check_error(at.viewer.get("nothing", status=404))
    check_error(at.viewer.get("vote?id=a.b", status=400))
    check_error(at.admin.get("accumulate", start="soon", status=400))


@writes("W4")
def body_of_a_refused_write(at: Deployment) -> None:
    """A refused write has `errors`, `reason` and `info`, with the same facts, which name an invalid field."""
    poll = at.fresh("poll")
    reply = at.viewer.post("vote", {"value": "1"}, id=poll, status=400)
    check_error(reply)
    expect("reason", "Invalid body", reply.json["reason"])
    expect_that("info", "value" in reply.json["info"], "a text that names `value`", reply.json["info"])
    check_error(at.viewer.post("vote", b"{", id=poll, status=400))
    check_error(at.viewer.delete("vote", id=poll, status=403))
    check_error(at.viewer.put("vote", {}, id=poll, status=405))
    check_error(at.admin.post("all_state", {}, status=405))
    check_error(at.viewer.post("vote", b" " * 65_537, id=poll, status=413))


@reads("W4", "anonymous")
def unknown_paths(at: Deployment) -> None:
    """A path outside the API gets 404, also without a credential."""
    for path in ("/v1", "/v1/e", "/v2/e/vote", "/v1/vote"):
        check_error(at.anonymous.get(path, status=404))


@writes("W4", "secret")
def order_of_checks(at: Deployment) -> None:
    """A refused call checks the credential first, then the role, then the size of the body, then its content."""
    expired = at.caller("viewer", exp=at.target.now() // 1000 - 3_600)
    large = b"x" * 70_000
    expired.post("extension_state", large, status=401)
    at.viewer.post("extension_state", large, status=403)
    at.viewer.post("viewer_state", large, status=413)
    at.viewer.post("viewer_state", large[:60_000], status=400)
