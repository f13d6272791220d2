"""The arrangement of the rig: its frames, and who each of them simulates. No I/O; the rig's URL has all of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import SplitResult, parse_qsl, urlencode, urljoin, urlsplit

from emulator.control import gate
from emulator.core.limits import parse_address
from emulator.dashboard.refusals import wrong_arrangement

MAX_VIEWERS = 6
DEFAULT_VIEWERS = 2
DEFAULT_CHANNEL = "1001"
"""Also the default of the command line and of the scripts for pages."""
DEFAULT_CLIENT = "my-extension"
_VIEWER_COUNTS = [str(count) for count in range(1, MAX_VIEWERS + 1)]
_MAX_URL = 2_048
_MAX_ID = 64
_HOST = re.compile(r"[a-z0-9_]([a-z0-9_.-]{0,252}[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_LANGUAGE = re.compile(r"[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8}){0,3}")
_REGIONS = {
    "cs": "CZ",
    "da": "DK",
    "el": "GR",
    "en": "US",
    "ja": "JP",
    "ko": "KR",
    "sv": "SE",
    "vi": "VN",
    "zh": "CN",
}
"""Twitch's region of languages whose own code, in capitals, is another region or none."""


class View(NamedTuple):
    """Where Twitch shows a page: its size in pixels, and the parameters that say so to the page."""

    label: str
    width: int
    height: int
    anchor: str
    """Empty for pages that viewers do not see."""
    platform: str
    mode: str


VIEWS = {
    "panel": View("Panel", 318, 496, "panel", "web", "viewer"),
    "component": View("Component", 480, 540, "component", "web", "viewer"),
    "overlay": View("Overlay", 1920, 1080, "video_overlay", "web", "viewer"),
    "mobile": View("Mobile", 375, 812, "panel", "mobile", "viewer"),
    "config": View("Config page", 1000, 700, "", "web", "config"),
    "live": View("Live page", 640, 496, "", "web", "dashboard"),
}
SWITCHES = {
    "controls": "Player controls visible",
    "paused": "Video paused",
    "fullscreen": "Full screen",
    "hidden": "Hidden",
    "highlight": "Highlighted",
    "mute": "No network",
}
"""Settings of a frame that are off or on. The platform helper reports a change to the running page."""


class NumberSetting(NamedTuple):
    """A setting of a frame that is a whole number. The platform helper reports a change to the running page."""

    label: str
    least: int
    most: int
    default: int


NUMBERS = {
    "delay": NumberSetting("Broadcast delay, seconds", 0, 15, 0),
    "height": NumberSetting("Height", 100, 500, VIEWS["panel"].height),
    "x": NumberSetting("From the left, %", 0, 75, 0),
    "y": NumberSetting("From the top, %", 0, 50, 0),
}
CHOICES = {
    "role": {"viewer": "viewer", "moderator": "moderator", "broadcaster": "broadcaster"},
    "identity": {"shared": "id shared", "unshared": "id not shared", "anonymous": "not logged in"},
    "view": {name: view.label for name, view in VIEWS.items() if view.mode == "viewer"},
    "theme": {"light": "light", "dark": "dark"},
    "subscription": {"none": "none", "1000": "tier 1", "2000": "tier 2", "3000": "tier 3"},
}
"""The values of other settings of a frame, with their labels; the first is the default. Broadcasters have their own id,
whatever their identity."""
_DEFAULTS = {
    **{name: next(iter(values)) for name, values in CHOICES.items()},
    "language": "en",
    **dict.fromkeys(SWITCHES, "off"),
    **{name: str(kind.default) for name, kind in NUMBERS.items()},
}


@dataclass(frozen=True)
class Frame:
    """One frame, and who its page simulates."""

    name: str
    """`1` to `6`, `config` or `live`; the prefix of its parameters."""
    url: str
    """The page, without the parameters that the rig adds."""
    settings: Mapping[str, str]
    """Ids of client, channel and user, the language, and values of `CHOICES`, `SWITCHES` (on or off) and `NUMBERS`."""

    @property
    def view(self) -> View:
        """The view of the page."""
        return VIEWS[self.settings["view"]]

    @property
    def title(self) -> str:
        return f"Viewer {self.name}" if self.view.mode == "viewer" else self.view.label

    @property
    def height(self) -> str:
        """The height in pixels."""
        return self.settings["height"] if self.settings["view"] == "panel" else str(self.view.height)

    @property
    def user_id(self) -> str:
        """The id of the simulated user: a broadcaster is always the owner of the channel."""
        return self.settings["channel_id" if self.settings["role"] == "broadcaster" else "user_id"]

    @property
    def src(self) -> str:
        """The page's URL with the parameters that `platform-helper.js` and `sdk.js` read."""
        view, settings = self.view, self.settings
        language, _, region = settings["language"].partition("-")
        added = {
            "state": "testing",  # as Twitch adds to the URL of every frame
            "popout": "false",
            **({"anchor": view.anchor} if view.anchor else {}),
            "platform": view.platform,
            "mode": view.mode,
            "language": settings["language"],
            "locale": f"{language}-{region or _REGIONS.get(language, language.upper())}",
            "extcli_role": settings["role"],
            "extcli_channel": settings["channel_id"],
            "extcli_client": settings["client_id"],
            "extcli_user": self.user_id,
            "extcli_identity": settings["identity"],
            "extcli_theme": settings["theme"],
        }
        for name in ("subscription", *SWITCHES, "delay", "x", "y"):
            if settings[name] != _DEFAULTS[name]:
                added[f"extcli_{name}"] = settings[name]
        parts = urlsplit(self.url)
        given = parse_qsl(parts.query, keep_blank_values=True)
        own = [(name, value) for name, value in given if name not in added]
        return parts._replace(query=urlencode([*own, *added.items()])).geturl()


class Arrangement(NamedTuple):
    """All frames of the rig. Their pages have one origin, and their users are of one channel and extension."""

    origin: str
    viewers: int
    """The number of viewers, whose frames come first."""
    frames: list[Frame]

    @property
    def is_local(self) -> bool:
        """Whether the pages are on this machine."""
        return is_loopback(urlsplit(self.origin).hostname or "")


def parse_arrangement(query: Mapping[str, str], own: str, *, client_id: str = DEFAULT_CLIENT) -> Arrangement:
    """Read the parameters of the rig. Pages of `own`, the URL of the service, are refused.

    `client_id` is the default. Raises `BadRequest` naming the parameter.
    """
    url = query.get("url", "").strip()
    origin = _checked_origin("url", url, own)
    count = query.get("viewers") or str(DEFAULT_VIEWERS)
    if count not in _VIEWER_COUNTS:
        raise wrong_arrangement("viewers", f"must be 1 to {MAX_VIEWERS}")
    channel_id = _checked("channel_id", query.get("channel_id") or DEFAULT_CHANNEL)
    place = {"channel_id": channel_id, "client_id": _checked("client_id", query.get("client_id") or client_id)}
    frames = []
    for name in _VIEWER_COUNTS[: int(count)]:
        settings = _frame_settings(query, name, {**_DEFAULTS, "user_id": f"555{name}"})
        frames.append(Frame(name, url, settings | place))
    for name in ("config", "live"):
        if text := query.get(name, "").strip():
            page = urljoin(url, text)
            if _checked_origin(name, page, own) != origin:
                raise wrong_arrangement(name, f"must be a page of {origin}: all frames of a rig have one origin")
            settings = _frame_settings(query, name, {**_DEFAULTS, "role": "broadcaster", "user_id": channel_id})
            frames.append(Frame(name, page, settings | place | {"view": name}))
    return Arrangement(origin, int(count), frames)


def _frame_settings(query: Mapping[str, str], frame: str, defaults: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a frame. Raises `BadRequest` naming the parameter."""
    return {
        name: _checked(f"{frame}.{name}", query.get(f"{frame}.{name}") or value) for name, value in defaults.items()
    }


def _checked(parameter: str, value: str) -> str:
    """Return the value of a setting or of an id. Raises `BadRequest` naming the parameter."""
    name = parameter.partition(".")[2]
    if kind := NUMBERS.get(name):
        is_number = value.isascii() and value.isdecimal() and len(value) < 5
        if not (is_number and kind.least <= int(value) <= kind.most):
            raise wrong_arrangement(parameter, f"must be {kind.least} to {kind.most}")
    elif name in CHOICES or name in SWITCHES:
        allowed = CHOICES.get(name, ("on", "off"))
        if value not in allowed:
            raise wrong_arrangement(parameter, f"must be one of {', '.join(allowed)}")
    elif name == "language":
        if not _LANGUAGE.fullmatch(value):
            raise wrong_arrangement(parameter, "must be a language tag such as en or pt-BR")
    elif len(value) > _MAX_ID or not value.isprintable() or not value.strip():
        raise wrong_arrangement(parameter, f"must be 1 to {_MAX_ID} printable characters")
    return value


def _checked_origin(name: str, url: str, own: str) -> str:
    """Return the origin of a page, in the form that a Content-Security-Policy can name. Raises `BadRequest`."""
    try:
        parts = urlsplit(url)
        port, host = parts.port, parts.hostname or ""
        if host:
            host = host.encode("idna").decode()
    except ValueError:
        raise wrong_arrangement(name, f"{url[:80]!r} is not a URL") from None
    if len(url) > _MAX_URL or not url.isprintable() or " " in url:
        raise wrong_arrangement(name, f"must be at most {_MAX_URL} printable characters without spaces")
    if parts.scheme not in ("http", "https"):
        raise wrong_arrangement(name, "must begin with http:// or https://")
    if parts.username is not None or parts.password is not None:
        raise wrong_arrangement(name, "must not contain a user name or a password")
    if ":" in host:
        raise wrong_arrangement(
            name, "must have a host name, such as localhost: a Content-Security-Policy cannot name an IPv6 address"
        )
    # Browsers also read 2130706433 and 0x7f.1 as addresses.
    is_like_number = _NUMBER.fullmatch(host.rpartition(".")[2])
    if not _HOST.fullmatch(host) or (is_like_number and parse_address(host) is None):
        raise wrong_arrangement(name, f"{url[:80]!r} has no valid host name")
    if _is_of_service(parts, own):
        raise wrong_arrangement(
            name, "is a page of this service; serve the extension at another port, so that it has another origin"
        )
    is_default = port in (None, default_port(parts.scheme))
    return f"{parts.scheme}://{host}" if is_default else f"{parts.scheme}://{host}:{port}"


def _is_of_service(parts: SplitResult, own: str) -> bool:
    """Whether a URL is the service's own, under any of its names on this machine."""
    service = urlsplit(own)
    host, own_name = parts.hostname or "", service.hostname or ""
    is_same_host = host == own_name or (is_loopback(host) and is_loopback(own_name))
    return is_same_host and port_of(parts) == port_of(service)


def is_loopback(host: str) -> bool:
    """Whether a host name means this machine without looking it up."""
    return host.endswith(".localhost") or gate.is_loopback(host)


def port_of(url: SplitResult) -> int:
    """Return the port of a URL, or the default port of its scheme."""
    return url.port or default_port(url.scheme)


def default_port(scheme: str) -> int:
    return 443 if scheme == "https" else 80
