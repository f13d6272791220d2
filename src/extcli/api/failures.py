"""Errors about a service that does not respond, for HTTP and the WebSocket."""

from __future__ import annotations

import re

from extcli.config.settings import DEFAULT_URL
from extcli.errors import CliError, ExitCode, Unreachable


class NotConnected(Unreachable):
    """Raised if no connection could be opened, so that nothing was sent."""


def not_connected(url: str, why: str) -> NotConnected:
    """Return the error for a service that accepts no connection."""
    fix = "check --url, EXTCLI_URL, EXTCLI_WS_URL or the profile, or start a local service with `extcli serve`"
    if url == DEFAULT_URL:
        fix = "start a service with `extcli serve`, or set --url or EXTCLI_URL to a running one"
    if re.search("certificate verify failed.*(self.signed|issuer)", why):
        fix = "if a private CA signed its certificate, set SSL_CERT_FILE to the CA's file"
    return NotConnected(f"cannot connect to {url}", why=why, fix=fix)


def timed_out(url: str) -> Unreachable:
    """Return the error for a response that did not arrive in time."""
    return Unreachable(f"no response from {url} in time", fix="allow more time with --timeout, for example 2m")


def proxy_refused(url: str) -> Unreachable:
    """Return the error for a proxy that does not forward the request."""
    fix = "check HTTP_PROXY, HTTPS_PROXY and NO_PROXY"
    return Unreachable(f"the proxy for {url} refused the connection", fix=fix)


def no_tls(url: str) -> Unreachable:
    """Return the error for a service without TLS at an address that requires it."""
    scheme, _, rest = url.partition("://")
    return Unreachable(
        f"{url} does not use TLS", fix=f"if you want to send your data unencrypted, use {scheme[:-1]}://{rest}"
    )


def undecodable(url: str) -> CliError:
    """Return the error for a compressed body that is damaged."""
    fix = "check that --url (EXTCLI_URL) is an extension service"
    error = CliError(f"a response of {url} cannot be decoded", why="the compressed body is damaged", fix=fix)
    error.exit_code = ExitCode.SERVICE_FAILED
    return error


def incomplete(url: str) -> Unreachable:
    """Return the error for a connection that ended before the response was complete."""
    return Unreachable(
        f"{url} closed the connection, or does not speak HTTP",
        why="the response is incomplete",
        fix="check the port, and http or https; if the service was stopped meanwhile, start it again",
    )
