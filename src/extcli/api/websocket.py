"""The WebSocket: its messages, connection and ends, with errors that say what to do.

Only this module and `simulate/listeners.py` import websockets.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import urlsplit

from websockets.exceptions import ConnectionClosed, InvalidStatus, InvalidURI, ProxyError, WebSocketException
from websockets.frames import Close, CloseCode
from websockets.sync.client import connect
from websockets.uri import parse_uri

from emulator.contract.names import MARK_HEADER
from extcli import __version__, bounded_json, clock
from extcli.api.call import encoded
from extcli.api.connection import tls_context
from extcli.api.http import CONNECT_SECONDS, ended_early, not_connected, proxy_refused, timed_out
from extcli.api.masking import shown, shown_frame
from extcli.config.urls import is_loopback
from extcli.errors import FIX_403, CliError, ErrorResponse, ExitCode, Refused, ServerError, Unreachable, UsageError
from extcli.output.sanitize import visible

if TYPE_CHECKING:
    from extcli.api.dry_run import DryRun

ID_WITHOUT_REQUEST = 65_535
"""The request id of updates, and of replies to requests that had none."""
_CLOSE_SECONDS = 2.0
_LARGEST_MESSAGE = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Message:
    """A reply or an update, and its text as received."""

    document: dict[str, Any]
    text: bytes

    @property
    def request_id(self) -> object:
        return self.document["meta"].get("request_id")

    @property
    def is_update(self) -> bool:
        """Whether the message is an update, not a reply."""
        return (
            self.document["meta"].get("action") == "update"
            and self.request_id == ID_WITHOUT_REQUEST
            and not self.errors
        )

    @property
    def data(self) -> dict[str, Any]:
        data = self.document.get("data")
        return data if isinstance(data, dict) else {}

    @property
    def errors(self) -> list[Any]:
        """The entries of `errors`; empty if the request succeeded."""
        errors = self.document.get("errors")
        return errors if isinstance(errors, list) else []


def request(action: str, target: str, data: object, request_id: object) -> str:
    """Return a request as text. `None` for `data` leaves the field out."""
    params = {"request_id": request_id} | ({"target": target} if target else {})
    return encoded({"action": action, "params": params} | ({} if data is None else {"data": data})).decode()


def read_message(text: bytes) -> Message | None:
    """Decode a message of the service; `None` if it has another format."""
    document = bounded_json.members(text)
    return Message(document, text) if isinstance(document.get("meta"), dict) else None


def error_of(name: str, message: Message) -> ErrorResponse:
    """Return the error for a reply with `errors`. `name` is the action and the target of the request."""
    return _refusal(name, status_of(message), message.text)


def status_of(message: Message) -> int:
    """Return the status of the first error in a reply. Some deployments call this field `number`."""
    first = message.errors[0] if message.errors and isinstance(message.errors[0], dict) else {}
    found = first.get("status", first.get("number"))
    return found if isinstance(found, int) else 400


_ADVICE = {401: "authenticate first: omit --no-auth", 403: FIX_403, 429: "retry later, or over fewer connections"}


def _refusal(name: str, status: int, body: bytes, fix: str = "") -> ErrorResponse:
    """Return the error for a request or handshake. `fix` is the advice about statuses that `_ADVICE` does not have."""
    if status >= 500:
        return ServerError(name, status, body)
    return Refused(name, status, body, fix=_ADVICE.get(status, fix))


class WebSocketClient:
    """A connection to the WebSocket of one service. It starts unauthenticated."""

    def __init__(self, url: str, *, timeout: float, trace: Callable[[str], None]) -> None:
        self.url = url
        self.timeout = timeout
        self._trace = trace
        self._updates: deque[Message] = deque()
        self._last_id = 0
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
                ssl=tls_context() if url.startswith("wss:") else None,
                open_timeout=min(timeout, CONNECT_SECONDS),
                close_timeout=min(timeout, _CLOSE_SECONDS),
                max_size=_LARGEST_MESSAGE,
                user_agent_header=f"extcli/{__version__}",
            ).__enter__()
            self._refuse_redirect()
        answer = self._socket.response
        self._handshake_id = answer.headers.get("X-Request-Id", "") if answer and MARK_HEADER in answer.headers else ""
        trace(f"< 101 Switching Protocols, {(clock.elapsed() - started) * 1000:.1f} ms")

    def request(self, action: str, target: str = "", data: object = None) -> Message:
        """Send a request and return its reply. Raises `Refused`, `ServerError` or `Unreachable`."""
        request_id = self._last_id = self._last_id % (ID_WITHOUT_REQUEST - 1) + 1
        self.send(request(action, target, data, request_id))
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
                    error = error_of(f"{action} {target}".strip(), message)
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
        self._count += 1
        with translate_errors(self.url):
            self._socket.send(text)

    def receive(self, seconds: float | None = None) -> Message | None:
        """Wait for a message and return it, or `None` after `seconds`."""
        text = self.receive_text(seconds)
        if text is None:
            return None
        message = read_message(text)
        if message is None:
            what = f"{self.url} sent a message without the field meta"
            raise Closed(what, fix=_CHECK_ADDRESS, exit_code=ExitCode.SERVICE_FAILED)
        return message

    def receive_text(self, seconds: float | None = None) -> bytes | None:
        """Wait for a text frame of any content and return it, or `None` after `seconds`."""
        with translate_errors(self.url):
            for wait in clock.split_wait(seconds):
                with suppress(TimeoutError):
                    text = self._socket.recv(None if wait is None else max(wait, 0), decode=False)
                    self._trace(f"< {shown(text)}")
                    return text
        return None

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def _refuse_redirect(self) -> None:
        """Raise an error if the library followed a redirect to another host. Credentials are for this host only."""
        asked, reached = parse_uri(self.url), self._socket.protocol.uri
        if (asked.secure, asked.host, asked.port) != (reached.secure, reached.host, reached.port):
            self._socket.close()
            what = f"{self.url} redirects to {reached.host}:{reached.port}"
            raise Closed(what, fix=_CHECK_ADDRESS, exit_code=ExitCode.REFUSED)


class UnsentWebSocket(WebSocketClient):
    """A WebSocket for --dry-run: opens no connection, prints the first request, and ends the command."""

    def __init__(self, dry_run: DryRun) -> None:
        self._dry_run = dry_run

    def request(self, action: str, target: str = "", data: object = None) -> NoReturn:
        """Print the request. Raises `RequestWithheld`."""
        self._dry_run.withhold_frame(request(action, target, data, 1))

    def close(self) -> None:
        """Do nothing."""


class Closed(CliError):
    """Raised if the connection has ended.

    The exit code says whether the client, the service or the network is the cause.
    """

    def __init__(self, what: str, *, why: str = "", fix: str, exit_code: ExitCode, code: int | None = None) -> None:
        super().__init__(what, why=why, fix=fix)
        self.exit_code = exit_code
        self.code = code
        """The close code, if the service sent one."""


_CHECK_ADDRESS = "set EXTCLI_WS_URL to the WebSocket's address, and EXTCLI_URL in place of --url, which overrides both"
_CLIENT_FAULT_CODES = (1003, 1007, 1008, 1009)
"""The close codes for what the client has sent."""


@contextmanager
def translate_errors(url: str) -> Iterator[None]:
    """Turn errors of websockets into `CliError`."""
    try:
        yield
    except ConnectionClosed as error:
        raise _closed_error(url, error.rcvd) from None
    except InvalidStatus as error:
        response = error.response
        body = bytes(response.body or b"")
        raise _refusal(f"connecting to {url}", response.status_code, body, _CHECK_ADDRESS) from None
    except (InvalidURI, UnicodeError):
        raise UsageError(f"cannot connect to {url}: invalid address", fix="check EXTCLI_WS_URL and --url") from None
    except ProxyError:
        raise proxy_refused(url) from None
    except WebSocketException:
        raise ended_early(url, "WebSocket") from None
    except OSError as error:
        raise not_connected(url, error) from None


def _closed_error(url: str, close: Close | None) -> CliError:
    if close is None:
        # If a service refuses a large frame that it has only read in part, its close frame is lost.
        fix = "start the service again; if the last request was large, send fewer bytes at once"
        return Unreachable(f"{url} dropped the connection", why="no close frame was received", fix=fix)
    exit_code, fix = ExitCode.UNREACHABLE, "once `extcli wait` succeeds, repeat the requests that got no reply"
    if close.code in _CLIENT_FAULT_CODES:
        exit_code, fix = ExitCode.REFUSED, ""
    elif close.code == CloseCode.INTERNAL_ERROR:
        exit_code, fix = ExitCode.SERVICE_FAILED, "the service's log has details"
    why = f"close code {close.code}" + (f": {visible(close.reason)}" if close.reason else "")
    return Closed(f"{url} closed the connection", why=why, fix=fix, exit_code=exit_code, code=close.code)
