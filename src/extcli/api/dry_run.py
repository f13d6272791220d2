"""`--dry-run`: prints the request that would change something, instead of sending it.

Requests that only read are still sent, because commands need their results. The first write ends the command.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from emulator.contract.shell import join_words
from emulator.contract.shell import quote_posix as quote
from extcli import bounded_json
from extcli.api.call import Body, Call
from extcli.api.http import headers, url_of
from extcli.api.masking import masked, shown_url
from extcli.errors import RequestWithheld, UsageError
from extcli.output.format import Format

if TYPE_CHECKING:
    from extcli.api.tokens import Credentials
    from extcli.config.resolver import Resolver
    from extcli.output.printer import Output

CURL = "curl"
FORMS = ("request", CURL)
_READS = ("GET", "HEAD", "OPTIONS")


class DryRun:
    """Prints requests in the chosen form."""

    def __init__(self, resolver: Resolver, output: Output, form: str) -> None:
        if form not in FORMS:
            raise UsageError(f"--dry-run={form} is unknown", fix="use --dry-run, or --dry-run=curl")
        self._resolver = resolver
        self._output = output
        self._curl = form == CURL

    def withhold(self, url: str, call: Call, credentials: Credentials | None) -> None:
        """Print a call to `url` that may change something, and raise `RequestWithheld`. Ignores one that only reads."""
        if call.method not in _READS or call.body is not None:  # a GET with a body is a broadcast
            self.show(url, call, credentials)
            raise RequestWithheld

    def show(self, url: str, call: Call, credentials: Credentials | None, *, user: str | None = None) -> None:
        """Print a call with the identity of the credentials.

        With `user`, the identity is that user in the same role.
        """
        url = url_of(f"{url}{call.path}", call.query)
        if self._curl:
            self._output.line(self._curl_of(call, url, credentials, user))
            return
        authorization = None
        if credentials:
            mask = " ***" if credentials.given or credentials.identity else ""
            authorization = f"{self._resolver.client_id()}{mask}"
        self._print(call.method, shown_url(url), headers(call.body, authorization), _shown_body(call.body))

    def withhold_frame(self, frame: str) -> NoReturn:
        """Print a frame of the WebSocket. Raises `RequestWithheld`."""
        if self._curl:
            raise _not_for_curl("curl cannot send a request over the WebSocket")
        self._print("SEND", self._resolver.ws_url(), {}, masked(json.loads(frame)))
        raise RequestWithheld

    def _print(self, method: str, url: str, fields: Mapping[str, str], body: Any) -> None:
        if self._output.format in (Format.JSON, Format.JSONL):
            request = {"method": method, "url": url, "headers": fields, "body": body}
            self._output.line(json.dumps(request, ensure_ascii=False))
            return
        lines = [f"{method} {url}", *(f"{name}: {value}" for name, value in fields.items())]
        if body is not None:
            lines += ["", body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)]
        for line in [*lines, ""]:
            self._output.line(line)

    def _curl_of(self, call: Call, url: str, credentials: Credentials | None, user: str | None) -> str:
        if shown_url(url) != url:
            raise _not_for_curl("its query holds a secret")
        words = ["curl", "--silent", "--show-error", "--fail-with-body", "--request", call.method]
        if credentials:
            words += ["--header", self._authorization(credentials, user)]
        if call.body is not None:
            words += ["--header", quote("content-type: application/json"), "--data-raw", quote(_curl_body(call.body))]
        return " ".join([*words, "--globoff", quote(url)])

    def _authorization(self, credentials: Credentials, user: str | None) -> str:
        """Return the Authorization header as a quoted shell word.

        A command in it makes the token when the line runs.
        """
        resolver = self._resolver
        client_id = resolver.client_id()
        if credentials.given:
            found = resolver.find_token()
            token = f"$(cat {quote(str(found.value))})" if found and isinstance(found.value, Path) else "$EXTCLI_TOKEN"
            escaped = client_id if quote(client_id) == client_id else f'"{quote(client_id)}"'
            return f'"authorization: {escaped} {token}"'
        if credentials.identity is None:
            return quote(f"authorization: {client_id}")
        identity = f"{credentials.identity.role}:{user}" if user else str(credentials.identity)
        given = resolver.flags._replace(acts_as=identity).words()
        line = join_words(["extcli", "token", credentials.command, "--header", "--output", "plain", *given], quote)
        return f'"$({line})"'


def _shown_body(body: Body | None) -> Any:
    """Return the body to print: JSON with secrets masked, or its size."""
    if not isinstance(body, bytes):
        return body and "(streamed from files)"
    with suppress(ValueError):
        return masked(bounded_json.decoded(body))
    return f"({len(body):,} bytes that are not JSON)"


def _curl_body(body: Body) -> str:
    """Return a body as an argument of curl. Raises `UsageError` if it holds a secret, or cannot be an argument."""
    if not isinstance(body, bytes):
        raise _not_for_curl("its body is streamed from files")
    try:
        text = body.decode()
        document = bounded_json.decoded(text)
    except ValueError:
        raise _not_for_curl("its body is not JSON") from None
    if masked(document) != document:
        raise _not_for_curl("its body holds a PIN, a token, a code or a receipt")
    return text


def _not_for_curl(why: str) -> UsageError:
    return UsageError("this request cannot be printed as a curl command", why=why, fix="use --dry-run")
