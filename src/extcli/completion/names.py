"""Names that a running service or the profiles file has, for completion. Never uses a secret or a stored token.

A sandbox does not check signatures, so an unsigned token reads its listings. A production service refuses it, and then
there are no names. Imports only what one request needs: `config/resolver.py` would double the time.
"""

from __future__ import annotations

import json
import os
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping
from contextlib import suppress
from threading import Thread
from typing import Any, NamedTuple

from emulator.contract import user_files
from extcli import bounded_json
from extcli.api import local_http
from extcli.config.light import DEFAULT_CLIENT_ID, DEFAULT_URL, by_precedence, profiles_file

SECONDS = 0.12
"""How long the service may take. With the start of Python, the answer then comes within 200 ms."""
_FAR = 4_102_444_800
"""The expiry of the token in Unix s, in the year 2100: the clock of an emulator may have been moved."""
_LARGEST = 4 << 20

_END = "0"
"""The cursor of the first page, and `next` of the last."""


def names_of(kind: str, given: Mapping[str, str], environ: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return names of this kind with a description each, which may be empty. No names if anything fails.

    `given` has the options on the command line.
    """
    found: dict[str, str] = {}

    def read() -> None:
        with suppress(Exception):  # completion never shows an error
            for name, about in _read(kind, given, environ):
                found.setdefault(name, about)

    worker = Thread(target=read, daemon=True)
    worker.start()
    worker.join(SECONDS)
    return list(found.items())


def _read(kind: str, given: Mapping[str, str], environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    profiles = _profiles(environ)
    if kind == "profiles":
        return ((name, str(profile.get("url", ""))) for name, profile in profiles["profiles"].items())
    service = _service(profiles, given, environ)
    if service is None:
        return iter(())
    if kind == "namespaces":
        return ((name, "") for name in _get(service.url.partition("/_ns/")[0], "/_ns")["namespaces"])
    if kind == "faults":
        faults = _get(service.url, "/_emulator/faults")["faults"]
        return ((each["id"], f"{each['match']} {each['effect']}") for each in faults)
    return _sets(service) if kind == "sets" else _listed(service, kind)


class _Service(NamedTuple):
    """The service of the command line, and what its listings are about."""

    url: str
    client_id: str
    channel: str

    @property
    def authorization(self) -> str:
        return f"{self.client_id} {_unsigned(self.channel)}"


def _service(profiles: Mapping[str, Any], given: Mapping[str, str], environ: Mapping[str, str]) -> _Service | None:
    """Return the service that the command would call, as `config/resolver.py` finds it; `None` for production."""
    named = given.get("--profile") or given.get("-p")
    chosen = named or environ.get("EXTCLI_PROFILE") or profiles.get("profile")
    profile = profiles["profiles"][chosen] if chosen else {}

    def setting(option: str, variable: str, key: str, default: str) -> str:
        first, second = by_precedence(environ.get(variable), profile.get(key), is_named=bool(named))
        return str(given.get(option) or first or second or default)

    url = setting("--url", "EXTCLI_URL", "url", DEFAULT_URL).rstrip("/")
    if any(each.get("production") and each.get("url") == url for each in (profile, *profiles["profiles"].values())):
        return None
    client_id = setting("--client-id", "EXTCLI_CLIENT_ID", "client_id", DEFAULT_CLIENT_ID)
    return _Service(url, client_id, setting("--channel", "EXTCLI_CHANNEL", "channel", ""))


def _sets(service: _Service) -> Iterator[tuple[str, str]]:
    """Return the indices and names of the code sets."""
    document = _get(service.url, "/v1/e/codes", service.authorization)
    names = document["names"] or []
    return zip(map(str, document.get("indices") or range(len(names))), names, strict=True)


def _listed(service: _Service, kind: str) -> Iterator[tuple[str, str]]:
    """Yield the ids of the polls, rankings or buffers, with their channels, page by page."""
    cursor, authorization = _END, service.authorization
    while True:
        page = _get(service.url, f"/v1/e/{kind}?limit=1000&cursor={cursor}", authorization)
        for each in page[kind]:
            yield each["id"], f"channel {each['channel_id']}" if each["channel_id"] else ""
        if (cursor := page["next"]) == _END:
            return


def _unsigned(channel: str) -> str:
    """Return a token for the backend with an empty signature."""
    claims = {"exp": _FAR, "role": "backend", **({"channel_id": channel} if channel else {})}
    parts = [json.dumps(each).encode() for each in ({"alg": "HS256", "typ": "JWT"}, claims)]
    return ".".join([*(urlsafe_b64encode(each).decode().rstrip("=") for each in parts), "AA"])


def _get(url: str, path: str, authorization: str = "") -> Any:
    """Send a request and return the JSON of its answer. The address must start with `http://`."""
    answer = local_http.get(url, path, seconds=SECONDS, authorization=authorization, largest=_LARGEST)
    if answer.status != 200:
        raise ValueError(answer.status)
    return bounded_json.decoded(answer.body)


def _profiles(environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the profiles file; without one, no profiles."""
    file = profiles_file(environ)
    if not os.path.exists(file):
        return {"profiles": {}}
    text = user_files.text(file, user_files.CONFIGURATION)
    return {"profiles": {}, **user_files.decoded(text)}
