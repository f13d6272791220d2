"""Errors: their status, their body, and which of several comes first."""

from __future__ import annotations

from typing import Any

from extcli.conform.calls import Reply
from extcli.conform.deployment import Deployment
from extcli.conform.rule import expect, expect_that, rule

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
    """Raise `Differs` unless the answer is an error of this status in the one form (ruling W4)."""
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


@rule("spec: Authentication", "A call without a credential is refused with 401.")
def no_credential(at: Deployment) -> None:
    for path in ("vote", "user_info", "all_state", "channel_config"):
        expect(f"the status of GET {path} without a credential", 401, at.anonymous.get(path).status)


@rule("spec: Errors", "A failed call returns a body with error information.")
def error_information(at: Deployment) -> None:
    reply = at.anonymous.get("user_info")
    expect("the status without a credential", 401, reply.status)
    expect_that("the body", bool(reply.json), "error information", reply.json)


@rule("W4", "A refused read has `errors`, `reason` and `info`, with the same facts.", "viewer", "admin")
def body_of_an_error(at: Deployment) -> None:
    check_error(at.anonymous.get("vote"), 401)
    check_error(at.viewer.get("vote_logs", id=at.fresh("poll")), 403)
    check_error(at.viewer.get("nothing"), 404)
    check_error(at.viewer.get("vote?id=a.b"), 400)
    check_error(at.admin.get("accumulate", start="soon"), 400)


@rule("W4", "A refused write has `errors`, `reason` and `info`, with the same facts.", "viewer", "admin", writes=True)
def body_of_a_refused_write(at: Deployment) -> None:
    poll = at.fresh("poll")
    check_error(at.viewer.post("vote", {"value": "1"}, id=poll), 400)
    check_error(at.viewer.call("POST", "vote", content=b"{", id=poll), 400)
    check_error(at.viewer.delete("vote", id=poll), 403)
    check_error(at.viewer.put("vote", {}, id=poll), 405)
    check_error(at.admin.post("all_state", {}), 405)
    check_error(at.viewer.call("POST", "vote", content=b" " * 65_537, id=poll), 413)


@rule("W4", "A path outside the API is 404, also without a credential.")
def unknown_paths(at: Deployment) -> None:
    for path in ("/v1", "/v1/e", "/v2/e/vote", "/v1/vote"):
        check_error(at.anonymous.get(path), 404)


@rule(
    "W4",
    "A refused call checks the credential first, then the role, then the size of the body, then its content.",
    "viewer",
    secret=True,
    writes=True,
)
def order_of_checks(at: Deployment) -> None:
    expired = at.caller("viewer", exp=at.now() // 1000 - 3_600)
    for caller, path, size, status in (
        (expired, "extension_state", 70_000, 401),
        (at.viewer, "extension_state", 70_000, 403),
        (at.viewer, "viewer_state", 70_000, 413),
        (at.viewer, "viewer_state", 60_000, 400),
    ):
        reply = caller.call("POST", path, content=b"x" * size)
        expect(f"the status of {path} with {size} bytes", status, reply.status)


@rule("W4", "An error about a field names it.", "viewer", writes=True)
def named_field(at: Deployment) -> None:
    reply = at.viewer.post("vote", {"value": "3"}, id=at.fresh("poll"))
    expect("reason", "Invalid body", reply.json.get("reason"))
    info = str(reply.json.get("info"))
    expect_that("info", "value" in info, "a text that names `value`", info)
