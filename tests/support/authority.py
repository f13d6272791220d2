"""The authority of `extcli serve --tls` in a folder of a test, and clients that trust it and nothing else."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import httpx

from support.service import SECRET, RunningService, real_seconds

STATE = "XDG_STATE_HOME"
"""The variable with the folder in which the authority is kept."""


def authority_in(state: Path) -> Path:
    """Return the file with the certificate of the authority."""
    return state / "extcli" / "tls" / "authority.pem"


def trusting(file: Path) -> ssl.SSLContext:
    """Return the TLS context of a strict client, as Python 3.13 has by default."""
    context = ssl.create_default_context(cafile=file)
    context.verify_flags |= ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN
    return context


def client_of(service: RunningService, context: ssl.SSLContext, **settings: Any) -> httpx.Client:
    """Return a client for the whole service, with the token of a viewer."""
    import jwt

    claims = {"role": "viewer", "user_id": "5551", "channel_id": "777", "exp": real_seconds() + 600}
    headers = {"Authorization": f"my-extension {jwt.encode(claims, SECRET)}"}
    return httpx.Client(
        **{"base_url": service.url, "verify": context, "trust_env": False, "headers": headers} | settings
    )
