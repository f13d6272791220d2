"""What clients trust over TLS: the authorities of the system, and the one that `extcli serve --tls` makes."""

from __future__ import annotations

import ssl
from contextlib import suppress
from functools import cache
from pathlib import Path


def authority() -> Path:
    """Return the file with the certificate of this user's authority. It exists after the first `serve --tls`."""
    import platformdirs

    return platformdirs.user_state_path("extcli", appauthor=False) / "tls" / "authority.pem"


@cache
def certificates() -> ssl.SSLContext:
    """Return the TLS context of every client."""
    context = ssl.create_default_context()
    if not context.cert_store_stats()["x509"]:  # the system has none, for example in a small container
        import certifi

        context.load_verify_locations(certifi.where())
    with suppress(OSError):
        context.load_verify_locations(authority())
    return context
