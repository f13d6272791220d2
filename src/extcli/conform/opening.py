"""Finds out what the service is, before any rule is probed."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from extcli import clock
from extcli.api import tokens
from extcli.api.call import SERVICE, encoded
from extcli.api.http import is_loopback
from extcli.api.token_sources import service_time
from extcli.config import secret_lookup
from extcli.conform.pacing import Pace
from extcli.conform.target import Target, fresh
from extcli.doctor.probe import Kind, Probe, probe
from extcli.errors import ExpectationFailed, Unreachable, UsageError, shortened

if TYPE_CHECKING:
    from extcli.session import Session


def target_of(session: Session, *, writes: bool, whole_extension: bool) -> Target:
    """Return the service at the URL. Raises `Unreachable`, `ExpectationFailed` for another program, or `UsageError`."""
    found = _checked(session)
    url = session.resolver.url()
    environment = _environment(session, found)
    is_sandbox_emulator = found.kind is Kind.EMULATOR and environment == "sandbox"
    now = service_time(session.http) if found.clock else None
    secret = secret_lookup.secret(session.resolver, url)
    token = _given_token(session) if secret is None or session.resolver.flags.token_file else None
    target = Target(
        http=session.http,
        ws_url=session.resolver.ws_url(),
        environment=environment,
        is_emulator=found.kind is Kind.EMULATOR,
        has_control=found.clock is not None,
        client_id=session.resolver.client_id(),
        secret=secret,
        token=token,
        writes=writes,
        whole_extension=whole_extension,
        ahead=now - clock.now() if now is not None else 0,
        timeout=session.resolver.timeout(),
        pace=Pace(unlimited=is_sandbox_emulator, shared=not is_loopback(_host(url))),
        has_default_ws=session.resolver.configured_ws_url() is None,
    )
    if is_sandbox_emulator and token is None:
        _use_own_extension(target)
    return target


def _checked(session: Session) -> Probe:
    """Probe the service. Raises `Unreachable`, also if it is not ready, or `ExpectationFailed` for another program."""
    found = probe(session.http)
    url = session.resolver.url()
    if found.error:
        raise found.error
    if not found.is_ours:
        raise ExpectationFailed(
            f"{url} is not an extension service", why=shortened(found.reason), fix="check --url (EXTCLI_URL)"
        )
    if not found.ready:
        raise Unreachable(f"{url} is not ready", why=shortened(found.reason), fix="`extcli wait` waits until it is")
    return found


def _given_token(session: Session) -> str | None:
    """Return the token that the user gave, or `None`. Raises `UsageError` if it is not a JWT."""
    token = secret_lookup.token(session.resolver, session.resolver.url())
    if token is not None and not tokens.claims_in(token):
        fix = "check it with `extcli token inspect`, or unset EXTCLI_TOKEN (--token-file)"
        raise UsageError("the given token is not a JWT", fix=fix)
    return token


def _use_own_extension(target: Target) -> None:
    """Let a run in a sandbox emulator use a client id of its own, so that it shares no data with other extensions."""
    target.secret = target.secret or secrets.token_bytes(32)  # a sandbox does not check signatures (ruling A1)
    client_id = fresh()
    authorization = f"{client_id} {target.token_of({'role': 'viewer'}, client_id)}"
    with target.http.stream("GET", f"{SERVICE}user_info", authorization=authorization) as answer:
        if answer.status_code == 200:  # not with `serve --registered-only`
            target.client_id, target.whole_extension = client_id, True


def _environment(session: Session, found: Probe) -> str:
    if found.environment:
        return found.environment
    # A deployment does not say it; only a sandbox issues tokens.
    body = encoded({"app_id": session.resolver.client_id(), "role": "viewer", "channel_id": "1", "user_id": "1"})
    answer = session.http.send("POST", f"{SERVICE}authtoken", body=body)
    return "sandbox" if answer.status_code == 200 else "production"


def _host(url: str) -> str:
    return urlsplit(url).hostname or ""
