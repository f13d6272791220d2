"""The certificate of `extcli serve`: from files of the user, or its own; and how browsers come to trust that one."""

from __future__ import annotations

import os
import ssl
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import mkstemp

from emulator.contract.shell import quoted
from extcli.api.trust import authority
from extcli.errors import UsageError

_COMMANDS = {
    "darwin": "security add-trusted-cert -k ~/Library/Keychains/login.keychain-db",
    "win32": "certutil -user -addstore Root",
}
"""The beginning of the command that makes browsers trust an authority, by system."""
_CHROMIUM = 'mkdir -p ~/.pki/nssdb; certutil -d "sql:$HOME/.pki/nssdb" -A -t C,, -n extcli -i'
"""The same for Chromium on all other systems. Without the folder, certutil makes no database."""


def context_of_files(certificate: Path | None, key: Path | None) -> ssl.SSLContext:
    """Return the context of a server with this certificate and key. Raises `UsageError`."""
    if certificate is None or key is None:
        given, missing = ("--tls-key", "--tls-cert") if certificate is None else ("--tls-cert", "--tls-key")
        raise UsageError(f"{given} {certificate or key}: needs {missing} too: a certificate and its key")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    _load("--tls-cert", certificate, context.load_verify_locations, "has no certificate in PEM")
    # Without a password, OpenSSL would ask for one on the terminal.
    _load("--tls-key", key, lambda file: context.load_cert_chain(certificate, file, ""), "is no unencrypted key in PEM")
    return context


def _load(option: str, file: Path, load: Callable[[Path], object], otherwise: str) -> None:
    try:
        load(file)
    except ssl.SSLError as error:
        is_other = error.reason == "KEY_VALUES_MISMATCH"
        raise UsageError(f"{option} {file}: {'is not the key of --tls-cert' if is_other else otherwise}") from None
    except OSError as error:
        raise UsageError(f"{option} {file}: {error.strerror}") from None


def own_context(host: str) -> ssl.SSLContext:
    """Return the context of a server with a new certificate for the host that it listens on. Raises `UsageError`."""
    from extcli.running.authority import certificate_for

    folder = authority().parent
    try:
        return _context_of_text(certificate_for(host), folder)
    except (OSError, ValueError) as error:
        cause = getattr(error, "strerror", None) or error
        raise UsageError(f"--tls: cannot use {folder}: {cause}; repair or delete it, or use --tls-cert") from None


def _context_of_text(text: bytes, folder: Path) -> ssl.SSLContext:
    """Return the context of a server with this key and certificate. OpenSSL reads them from a file only."""
    descriptor, name = mkstemp(dir=folder)  # with mode 0600
    try:
        with open(descriptor, "wb") as file:
            file.write(text)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(name)
        return context
    finally:
        os.unlink(name)


def trust_advice() -> str:
    """Return lines that say how browsers of this user come to trust the authority."""
    file = str(authority())
    command = f"{_COMMANDS.get(sys.platform, _CHROMIUM)} {quoted(file)}"
    return f"certificate authority: {file}\nto trust it in a browser, run once: {command}\n"
