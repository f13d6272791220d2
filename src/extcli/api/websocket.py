"""The one importer of websockets: sends requests, hands on updates, and says what to do where the socket fails."""

from __future__ import annotations

import ssl
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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

from extcli import __version__, clock
from extcli.api import envelope
from extcli.api.envelope import Message
from extcli.api.http import ANSWERED_IN_PLAIN, CONNECT_SECONDS, certificates, is_loopback, timed_out
from extcli.errors import LOG, CliError, ExitCode, Refused, ServerError, Unreachable, UsageError, shortened

_CLOSE_SECONDS = 2.0
_LARGEST_MESSAGE = 16 * 1024 * 1024
_LARGE_FRAME = 128 * 1024
"""Longer than what requests usually are: a store holds 64 KiB."""
_LAST_ID = envelope.NO_REQUEST - 1


class WebSocketClient:
    """A connection to the socket of one service, with no rights until something authenticates it."""

    def __init__(self, url: str, *, timeout: float, trace: Callable[[str], None]) -> None:
        self.url = url
        self.timeout = timeout
        self._trace = trace
        self._updates: deque[Message] = deque()
        self._last_id = 0
        self._sent = 0
        trace(f"> CONNECT {url}")
        started = clock.elapsed()
        with explained(url):
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
            self._refuse_to_be_led_elsewhere()
        trace(f"< 101 Switching Protocols, {(clock.elapsed() - started) * 1000:.1f} ms")

    def ask(self, action: str, target: str = "", data: object = None) -> Message:
        """Send a request and return its reply. Raises `Refused`, `ServerError` or `Unreachable`."""
        request_id = self._next_id()
        self.send(envelope.request(action, target, data, request_id))
        deadline = clock.elapsed() + self.timeout
        while True:
            message = self.receive(deadline - clock.elapsed())
            if message is None:
                raise timed_out(self.url)
            if message.is_update:
                self._updates.append(message)
            elif message.request_id == request_id:
                if message.faults:
                    raise envelope.declined(f"{action} {target}".strip(), message)
                return message

    def update(self, deadline: float | None) -> Message | None:
        """The next update; `None` if there is none until the deadline by `clock.elapsed`, if there is a deadline."""
        if self._updates:
            return self._updates.popleft()
        while message := self.receive(None if deadline is None else deadline - clock.elapsed()):
            if message.is_update:
                return message
        return None

    def send(self, text: str) -> None:
        """Send a frame as it is."""
        self._trace(f"> {envelope.shown(text)}")
        self._sent = len(text)
        with explained(self.url, sent=self._sent):
            self._socket.send(text)

    def receive(self, seconds: float | None = None) -> Message | None:
        """The next message; `None` if none came within so many seconds."""
        with explained(self.url, sent=self._sent):
            try:
                text = self._socket.recv(None if seconds is None else max(seconds, 0))
            except TimeoutError:
                return None
        self._trace(f"< {envelope.shown(text)}")
        message = envelope.read_message(text.encode() if isinstance(text, str) else text)
        if message is None:
            raise _strange(self.url)
        return message

    def close(self) -> None:
        """Give the connection back."""
        self._socket.close()

    def _next_id(self) -> int:
        self._last_id = self._last_id % _LAST_ID + 1
        return self._last_id

    def _refuse_to_be_led_elsewhere(self) -> None:
        """The library follows redirects; what is sent next are credentials, and they are for this host only."""
        asked, reached = parse_uri(self.url), self._socket.protocol.uri
        if (asked.secure, asked.host, asked.port) != (reached.secure, reached.host, reached.port):
            self._socket.close()
            raise Closed(
                f"{self.url} leads elsewhere",
                why=f"to {reached.host}:{reached.port}",
                fix="set EXTCLI_WS_URL to the address that is meant, and EXTCLI_URL in place of --url",
                exit_code=Refused.exit_code,
            )


class Closed(CliError):
    """The connection ended where it was still wanted; the exit code says whose doing that is."""

    def __init__(self, what: str, *, why: str, fix: str, exit_code: ExitCode) -> None:
        super().__init__(what, why=why, fix=fix)
        self.exit_code = exit_code


_STOPPED = "start the service again, then repeat what was not answered"
_ENDINGS = {
    1000: ("the service ended the conversation", _STOPPED, Unreachable.exit_code),
    1001: ("the service stops", _STOPPED, Unreachable.exit_code),
    1003: ("it takes text frames only", "", Refused.exit_code),
    1007: ("it takes UTF-8 text only", "", Refused.exit_code),
    1008: ("too many attempts to authenticate failed", "ask for a fresh PIN, and try it once", Refused.exit_code),
    1009: ("a frame was too large", "send less at once", Refused.exit_code),
    1011: ("it failed", f"{LOG}; the request itself was fine", ServerError.exit_code),
    1012: ("the service restarts", "try again in a moment", Unreachable.exit_code),
    1013: ("its updates were not read fast enough", "read faster, or follow less", Unreachable.exit_code),
}
"""By close code: what it means, what to do, and the exit code."""


@contextmanager
def explained(url: str, *, sent: int = 0) -> Iterator[None]:
    """Turns failures of websockets into errors that say what to do; `sent` is the length of the last frame."""
    try:
        yield
    except ConnectionClosed as error:
        raise _closed(url, error.rcvd, sent) from None
    except InvalidStatus as error:
        raise _not_let_in(url, error.response.status_code, bytes(error.response.body or b"")) from None
    except (InvalidURI, UnicodeError):
        raise UsageError(f"no connection can be made to {url}", fix="check EXTCLI_WS_URL and --url") from None
    except (ProxyError, InvalidProxy):
        fix = "check HTTP_PROXY, HTTPS_PROXY and NO_PROXY"
        raise Unreachable(f"the proxy in the way of {url} refused", fix=fix) from None
    except ImportError as error:
        raise UsageError(f"the proxy in the way of {url} cannot be used", why=str(error)) from None
    except WebSocketException:
        raise Unreachable(
            f"{url} hung up or does not speak WebSocket",
            why="the connection ended before it was one",
            fix="is EXTCLI_WS_URL (or --url) the address of an extension service?",
        ) from None
    except TimeoutError:
        raise _nobody_answers(url, "no connection in time") from None
    except ssl.SSLError as error:
        if error.reason in ANSWERED_IN_PLAIN:
            fix = f"try ws://{url.partition('://')[2]}, if what you send may be read on the way"
            raise Unreachable(f"the other side does not speak TLS: {url}", fix=fix) from None
        raise _nobody_answers(url, (error.reason or "TLS failed").replace("_", " ").lower()) from None
    except OSError as error:
        raise _nobody_answers(url, (error.strerror or "the connection failed").lower()) from None


def _nobody_answers(url: str, why: str) -> Unreachable:
    fix = "check --url (EXTCLI_URL) and EXTCLI_WS_URL, or start a service here with `extcli serve`"
    return Unreachable(f"nobody answers at {url}", why=why, fix=fix)


_ELSEWHERE = "set EXTCLI_WS_URL to where the service's socket is, and EXTCLI_URL in place of --url"


def _not_let_in(url: str, status: int, body: bytes) -> CliError:
    name = f"connecting to {url}"
    if status >= 500:
        return ServerError(name, status, body)
    return Refused(name, status, body, fix=envelope.OVERCROWDED if status == 429 else _ELSEWHERE)


def _closed(url: str, close: Close | None, sent: int) -> CliError:
    if close is None and sent > _LARGE_FRAME:
        # The reason was on its way, and was lost with what the service did not read any more.
        why = f"in the middle of a frame of {sent:,} characters, which may be too large"
        return Unreachable(f"{url} hung up", why=why, fix="send less at once")
    if close is None:
        return Unreachable(f"{url} hung up", why="the connection broke off without a word", fix=_STOPPED)
    meaning, fix, exit_code = _ENDINGS.get(close.code, ("it does not say why", "", Unreachable.exit_code))
    why = f"close code {close.code}" + (f": {shortened(close.reason)}" if close.reason else "")
    return Closed(f"{url} closed the connection: {meaning}", why=why, fix=fix, exit_code=exit_code)


def _strange(url: str) -> CliError:
    return Closed(
        f"{url} returned an unexpected answer",
        why="a message without meta",
        fix="is EXTCLI_WS_URL (or --url) the socket of an extension service?",
        exit_code=ServerError.exit_code,
    )
