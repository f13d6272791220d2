"""`--dry-run`: prints the request that would change something, instead of sending it.

Requests that only read are still sent, because commands need their results. The first write ends the command.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import urlsplit

from emulator.contract.shell import joined
from emulator.contract.shell import posix as quote
from extcli.api.call import Call
from extcli.api.http import Streamed, headers, is_loopback, url_of
from extcli.api.masking import masked, shown_url
from extcli.config import secret_lookup
from extcli.errors import UsageError, Withheld
from extcli.output.format import Format

if TYPE_CHECKING:
    from extcli.api.token_sources import Credentials
    from extcli.config.resolver import Resolver
    from extcli.output.printer import Output

CURL = "curl"
FORMS = ("request", CURL)
_READS = ("GET", "HEAD", "OPTIONS")
_LONGEST_ARGUMENT = 100_000
"""In bytes. Linux allows 131,072 for one argument."""
_PROXIES = ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")


class DryRun:
    """Prints requests in the chosen form."""

    def __init__(self, resolver: Resolver, output: Output, form: str) -> None:
        if form not in FORMS:
            raise UsageError(f"{form!r} (--dry-run) is not a form", fix="use --dry-run, or --dry-run=curl")
        self._resolver = resolver
        self._output = output
        self._curl = form == CURL

    def withhold(self, url: str, call: Call, query: Mapping[str, Any], credentials: Credentials | None) -> None:
        """Print a call to `url` that may change something, and raise `Withheld`. Ignores one that only reads."""
        if call.method not in _READS or call.body is not None:  # a GET with a body is a broadcast
            self.show(url, call, query, credentials if call.signed else None)
            raise Withheld

    def show(
        self,
        url: str,
        call: Call,
        query: Mapping[str, Any],
        credentials: Credentials | None,
        *,
        user: str | None = None,
    ) -> None:
        """Print a call with the identity of the credentials.

        With `user`, the identity is that user in the same role.
        """
        url = url_of(f"{url}{call.path}", query)
        if self._curl:
            self._output.line(self._curl_of(call, url, credentials, user))
            return
        authorization = None
        if credentials:
            mask = " ***" if credentials.given or credentials.identity else ""
            authorization = f"{self._resolver.client_id()}{mask}"
        self._print(
            {
                "method": call.method,
                "url": shown_url(url),
                "headers": headers(call.body, authorization),
                "body": _shown_body(call.body),
            }
        )

    def withhold_frame(self, frame: str) -> NoReturn:
        """Print a frame of the WebSocket. Raises `Withheld`."""
        if self._curl:
            raise UsageError("curl cannot send this request", why="it goes over the WebSocket", fix="use --dry-run")
        url = self._resolver.ws_url()
        self._print({"method": "SEND", "url": url, "headers": {}, "body": masked(json.loads(frame))})
        raise Withheld

    def _print(self, request: dict[str, Any]) -> None:
        output = self._output
        if output.format in (Format.JSON, Format.JSONL):
            output.line(json.dumps(request, ensure_ascii=False))
            return
        lines = [f"{request['method']} {request['url']}"]
        lines += [f"{name}: {value}" for name, value in request["headers"].items()]
        if request["body"] is not None:
            body = request["body"]
            lines += ["", body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)]
        for line in [*lines, ""]:
            output.line(line)

    def _curl_of(self, call: Call, url: str, credentials: Credentials | None, user: str | None) -> str:
        if shown_url(url) != url:
            raise UsageError(
                "this request cannot be a line for curl", why="its query holds a secret", fix="use --dry-run"
            )
        words = ["curl", "--silent", "--show-error", "--fail-with-body", "--request", call.method]
        if is_loopback(urlsplit(url).hostname or "") and any(map(os.environ.get, _PROXIES)):
            words += ["--noproxy", "'*'"]
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
            found = secret_lookup.find_token(resolver)
            token = f"$(cat {quote(str(found.value))})" if found and isinstance(found.value, Path) else "$EXTCLI_TOKEN"
            return f'"authorization: {_in_double_quotes(client_id)} {token}"'
        if credentials.identity is None:
            return quote(f"authorization: {client_id}")
        identity = f"{credentials.identity.role}:{user}" if user else str(credentials.identity)
        given = resolver.flags._replace(acts_as=identity).words()
        return (
            f'"$({joined(["extcli", "token", credentials.command, "--header", "--output", "plain", *given], quote)})"'
        )


def _in_double_quotes(text: str) -> str:
    """Return a text with escapes, so that a shell reads it literally between double quotes."""
    return text if quote(text) == text else f'"{quote(text)}"'


def _shown_body(body: bytes | Streamed | None) -> Any:
    """Return the body to print: JSON with secrets masked, or its size."""
    if body is None:
        return None
    if not isinstance(body, bytes):
        size = "" if body.length is None else f"{body.length:,} bytes, "
        return f"({size}made from files while they are sent)"
    try:
        return masked(json.loads(body))
    except (ValueError, RecursionError):
        return f"({len(body):,} bytes that are not JSON)"


def _curl_body(body: bytes | Streamed) -> str:
    """Return a body as an argument of curl. Raises `UsageError` if it holds a secret, or cannot be an argument."""
    what = "this request cannot be a line for curl"
    if not isinstance(body, bytes):
        raise UsageError(what, why="its body is made from files while they are sent", fix="use --dry-run")
    if len(body) > _LONGEST_ARGUMENT:
        raise UsageError(what, why=f"its body has {len(body):,} bytes; an argument {_LONGEST_ARGUMENT:,}")
    try:
        text = body.decode()
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise UsageError(what, why="its body is not JSON", fix="use --dry-run") from None
    if "\0" in text or masked(document) != document:
        raise UsageError(what, why="its body holds a PIN, a token, a code or a receipt", fix="use --dry-run")
    return text
