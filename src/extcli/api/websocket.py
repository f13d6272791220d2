"""The WebSocket connection: requests, updates, and errors that say what to do.

Only this module and `simulate/listeners.py` import websockets.
"""

from __future__ import annotations

import ssl
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NoReturn
from urllib.parse import urlsplit

from websockets.exceptions import (
    ConnectionClosed,
    InvalidProxy,
    InvalidStatus,
    InvalidURI,
    ProxyError,
    WebSocketException,
)
from websockets.frames import Close
from websockets.sync.client import connect
from websockets.uri import parse_uri

from emulator.contract.names import MARK
from extcli import __version__, clock
from extcli.api import envelope
from extcli.api.envelope import Message
from extcli.api.failures import no_tls, not_connected, proxy_refused, timed_out
from extcli.api.http import CONNECT_SECONDS, NO_TLS, is_loopback
from extcli.api.masking import shown, shown_frame
from extcli.api.trust import certificates
from extcli.errors import LOG, CliError, ExitCode, Refused, ServerError, Unreachable, UsageError, shortened

if TYPE_CHECKING:
    from extcli.api.dry_run import DryRun

_CLOSE_SECONDS = 2.0
_LARGEST_MESSAGE = 16 * 1024 * 1024
_LARGE_FRAME = 128 * 1024
"""In characters. More than any valid request: a store holds 64 KiB."""
_LAST_ID = envelope.NO_REQUEST - 1


class WebSocketClient:
    """A connection to the WebSocket of one service. It starts unauthenticated."""

    def __init__(self, url: str, *, timeout: float, trace: Callable[[str], None]) -> None:
        self.url = url
        self.timeout = timeout
        self._trace = trace
        self._updates: deque[Message] = deque()
        self._last_id = 0
        self._sent = 0
        self._count = 0
        """Messages sent. The journal also numbers them."""
        trace(f"> CONNECT {url}")
        started = clock.elapsed()
        with translate_errors(url):
            self._socket = connect(
                url,
                compression=None,
                # A service on this machine is never behind a proxy.
                proxy=None if is_loopback(urlsplit(url).hostname or "") else True,
                ssl=certificates() if url.startswith("wss:") else None,
                open_timeout=min(timeout, CONNECT_SECONDS),
                close_timeout=min(timeout, _CLOSE_SECONDS),
                max_size=_LARGEST_MESSAGE,
                user_agent_header=f"extcli/{__version__}",
            ).__enter__()
            self._refuse_redirect()
        answer = self._socket.response
        is_sandbox = answer is not None and MARK in answer.headers
        self._handshake_id = answer.headers.get("X-Request-Id", "") if answer is not None and is_sandbox else ""
        trace(f"< 101 Switching Protocols, {(clock.elapsed() - started) * 1000:.1f} ms")

    def request(self, action: str, target: str = "", data: object = None) -> Message:
        """Send a request and return its reply. Raises `Refused`, `ServerError` or `Unreachable`."""
        request_id = self._last_id = self._last_id % _LAST_ID + 1
        self.send(envelope.request(action, target, data, request_id))
        number = self._count
        deadline = clock.elapsed() + self.timeout
        while True:
            message = self.receive(deadline - clock.elapsed())
            if message is None:
                raise timed_out(self.url)
            if message.is_update:
                self._updates.append(message)
            elif message.request_id == request_id:
                if message.errors:
                    error = envelope.error_of(f"{action} {target}".strip(), message)
                    error.request_id = f"{self._handshake_id}/{number}" if self._handshake_id else ""
                    error.is_explained = bool(self._handshake_id)
                    raise error
                return message

    def next_update(self, deadline: float | None) -> Message | None:
        """Wait for an update and return it, or `None` at the deadline, a time of `clock.elapsed`."""
        if self._updates:
            return self._updates.popleft()
        while message := self.receive(None if deadline is None else deadline - clock.elapsed()):
            if message.is_update:
                return message
        return None

    @property
    def place(self) -> tuple[str, int]:
        """Return the handshake's request id (only an emulator has one), and the number of messages sent."""
        return self._handshake_id, self._count

    def send(self, text: str | bytes) -> None:
        """Send a text frame; bytes become a binary frame, which no extension service accepts."""
        self._trace(f"> {shown_frame(text)}" if isinstance(text, str) else f"> {len(text)} bytes")
        self._sent = len(text)
        self._count += 1
        with translate_errors(self.url, sent=self._sent):
            self._socket.send(text)

    def receive(self, seconds: float | None = None) -> Message | None:
        """Wait for a message and return it, or `None` after `seconds`."""
        text = self.receive_text(seconds)
        if text is None:
            return None
        message = envelope.read_message(text)
        if message is None:
            raise Closed(
                f"{self.url} returned an unexpected response",
                why="a message without meta",
                fix="is EXTCLI_WS_URL (or --url) the WebSocket of an extension service?",
                exit_code=ExitCode.SERVICE_FAILED,
            )
        return message

    def receive_text(self, seconds: float | None = None) -> bytes | None:
        """Wait for a text frame of any content and return it, or `None` after `seconds`."""
        with translate_errors(self.url, sent=self._sent):
            for wait in clock.split_wait(seconds):
                with suppress(TimeoutError):
                    text = self._socket.recv(None if wait is None else max(wait, 0))
                    break
            else:
                return None
        self._trace(f"< {shown(text)}")
        return text.encode() if isinstance(text, str) else text

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def _refuse_redirect(self) -> None:
        """Raise an error if the library followed a redirect to another host. Credentials are for this host only."""
        asked, reached = parse_uri(self.url), self._socket.protocol.uri
        if (asked.secure, asked.host, asked.port) != (reached.secure, reached.host, reached.port):
            self._socket.close()
            why = f"to {reached.host}:{reached.port}"
            raise Closed(f"{self.url} redirects", why=why, fix=_CHECK_ADDRESS, exit_code=ExitCode.REFUSED)


class UnsentWebSocket(WebSocketClient):
    """A WebSocket for --dry-run: opens no connection, prints the first request, and ends the command."""

    def __init__(self, dry_run: DryRun) -> None:
        self._dry_run = dry_run

    def request(self, action: str, target: str = "", data: object = None) -> NoReturn:
        """Print the request. Raises `Withheld`."""
        self._dry_run.withhold_frame(envelope.request(action, target, data, 1))

    def close(self) -> None:
        """Do nothing."""


class Closed(CliError):
    """Raised if the connection has ended.

    The exit code says whether the client, the service or the network is the cause.
    """

    def __init__(self, what: str, *, why: str, fix: str, exit_code: ExitCode, code: int | None = None) -> None:
        super().__init__(what, why=why, fix=fix)
        self.exit_code = exit_code
        self.code = code
        """The close code, if the service sent one."""


_CHECK_ADDRESS = "set EXTCLI_WS_URL to the address of the service's WebSocket, and EXTCLI_URL instead of --url"
_STOPPED = "start the service again, then repeat the requests without a reply"
_ENDINGS = {
    1000: ("the service ended it", _STOPPED, ExitCode.UNREACHABLE),
    1001: ("the service is stopping", _STOPPED, ExitCode.UNREACHABLE),
    1003: ("it accepts text frames only", "", ExitCode.REFUSED),
    1007: ("it accepts UTF-8 text only", "", ExitCode.REFUSED),
    1008: ("too many failed attempts to authenticate", "request a new PIN, and try it once", ExitCode.REFUSED),
    1009: ("the frame is too large", "send fewer bytes at once", ExitCode.REFUSED),
    1011: ("the service failed", f"{LOG}; the request itself was fine", ExitCode.SERVICE_FAILED),
    1012: ("the service is restarting", "try again in a moment", ExitCode.UNREACHABLE),
    1013: ("updates were not read fast enough", "read faster, or subscribe to less", ExitCode.UNREACHABLE),
}
"""By close code: its meaning, what to do, and the exit code."""


@contextmanager
def translate_errors(url: str, *, sent: int = 0) -> Iterator[None]:
    """Turn errors of websockets into `CliError`. `sent` is the length of the last frame."""
    try:
        yield
    except ConnectionClosed as error:
        raise _closed_error(url, error.rcvd, sent) from None
    except InvalidStatus as error:
        raise _refused_handshake(url, error.response.status_code, bytes(error.response.body or b"")) from None
    except (InvalidURI, UnicodeError):
        raise UsageError(f"cannot connect to {url}: invalid address", fix="check EXTCLI_WS_URL and --url") from None
    except (ProxyError, InvalidProxy):
        raise proxy_refused(url) from None
    except ImportError as error:
        raise UsageError(f"cannot use the proxy for {url}", why=str(error)) from None
    except WebSocketException:
        raise Unreachable(
            f"{url} closed the connection, or does not speak WebSocket",
            why="the handshake is incomplete",
            fix="is EXTCLI_WS_URL (or --url) the address of an extension service?",
        ) from None
    except TimeoutError:
        raise not_connected(url, "no connection in time") from None
    except ssl.SSLError as error:
        if error.reason in NO_TLS:
            raise no_tls(url) from None
        raise not_connected(url, (error.reason or "TLS failed").replace("_", " ").lower()) from None
    except OSError as error:
        raise not_connected(url, (error.strerror or "the connection failed").lower()) from None


def _refused_handshake(url: str, status: int, body: bytes) -> CliError:
    name = f"connecting to {url}"
    if status >= 500:
        return ServerError(name, status, body)
    return Refused(name, status, body, fix=envelope.TOO_MANY if status == 429 else _CHECK_ADDRESS)


def _closed_error(url: str, close: Close | None, sent: int) -> CliError:
    if close is None and sent > _LARGE_FRAME:
        # The service's close frame was lost, because it closed the connection with our frame partly unread.
        why = f"while receiving a frame of {sent:,} characters, which may be too large"
        return Unreachable(f"{url} dropped the connection", why=why, fix="send fewer bytes at once")
    if close is None:
        return Unreachable(f"{url} dropped the connection", why="no close frame was received", fix=_STOPPED)
    meaning, fix, exit_code = _ENDINGS.get(close.code, ("unknown reason", "", ExitCode.UNREACHABLE))
    why = f"close code {close.code}" + (f": {shortened(close.reason)}" if close.reason else "")
    return Closed(f"{url} closed the connection: {meaning}", why=why, fix=fix, exit_code=exit_code, code=close.code)
