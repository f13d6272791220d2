"""Finds out what the service is, before any rule is probed."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from extcli import clock
from extcli.api.client import SERVICE, encoded
from extcli.api.credentials import service_time
from extcli.api.http import is_loopback
from extcli.config import secret_lookup
from extcli.conform.pacing import Pace
from extcli.conform.target import Target, fresh
from extcli.doctor.probe import Kind, Probe, probe
from extcli.errors import ExpectationFailed, Unreachable, shortened

if TYPE_CHECKING:
    from extcli.session import Session


def target_of(session: Session, *, writes: bool, whole_extension: bool) -> Target:
    """Return the service at the URL. Raises `Unreachable`, or `ExpectationFailed` for another program."""
    found = probe(session.http)
    url = session.resolver.url()
    if found.error:
        raise found.error
    if not found.is_ours:
        raise ExpectationFailed(
            f"{url} is no extension service", why=shortened(found.reason), fix="check --url (EXTCLI_URL)"
        )
    if not found.ready:
        raise Unreachable(f"{url} is not ready", why=shortened(found.reason), fix="`extcli wait` waits until it is")
    is_emulator = found.kind is Kind.EMULATOR
    environment = _environment(session, found)
    token, secret = secret_lookup.token(session.resolver, url), secret_lookup.secret(session.resolver, url)
    is_open = is_emulator and environment == "sandbox"
    now = service_time(session.http) if found.clock else None
    host = _host(url)
    return Target(
        http=session.http,
        ws_url=session.resolver.ws_url(),
        environment=environment,
        is_emulator=is_emulator,
        has_control=found.clock is not None,
        # A sandbox emulator accepts any client id, so a run shares no data with other extensions.
        client_id=fresh() if is_open and token is None else session.resolver.client_id(),
        # It does not check signatures either (ruling A1).
        secret=secret or (secrets.token_bytes(32) if is_open and token is None else None),
        token=token,
        writes=writes,
        whole_extension=whole_extension or (is_open and token is None),
        ahead=now - clock.now() if now is not None else 0,
        timeout=session.resolver.timeout(),
        pace=Pace(unlimited=is_open, shared=not is_loopback(host)),
        has_default_ws=session.resolver.configured_ws_url() is None,
    )


def is_production(session: Session, target: Target) -> bool:
    """Return whether writing needs a confirmation: by the profile, or production on another machine."""
    if session.resolver.production() is not None:
        return True
    return target.environment == "production" and not is_loopback(_host(session.resolver.url()))


def _environment(session: Session, found: Probe) -> str:
    if found.environment:
        return found.environment
    # A deployment does not say it; only a sandbox issues tokens.
    body = encoded({"app_id": session.resolver.client_id(), "role": "viewer", "channel_id": "1", "user_id": "1"})
    answer = session.http.send("POST", f"{SERVICE}authtoken", body=body)
    return "sandbox" if answer.status_code == 200 else "production"


def _host(url: str) -> str:
    from urllib.parse import urlsplit

    return urlsplit(url).hostname or ""
