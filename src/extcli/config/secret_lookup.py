"""The token and the secret that the user has at hand, and the addresses that they may be sent to.

Somebody who types `-p live --url http://other` means another service with live's settings, by mistake or on purpose.
It is given nothing that opens live: a profile's secret signs tokens for the profile's own URL and socket only, and its
token goes nowhere else. Those of variables and options go wherever the command goes: whoever sets them decides both.
"""

from __future__ import annotations

import base64
import binascii
import os
from pathlib import Path
from shlex import quote
from stat import S_IRGRP, S_IROTH, S_ISREG

from extcli.config import settings
from extcli.config.resolver import Found, Place, Resolver
from extcli.config.settings import SECRET_FILE, one_word
from extcli.errors import UsageError
from extcli.output.printer import write_stderr


def token_at(resolver: Resolver, to: str | None = None) -> Found[str | Path] | None:
    """The ready-made token for an address, else the service's: itself, or the file it is in.

    `--as` passes over that of a variable or profile, and `EXTCLI_AS` over that of a profile, which also gives way to a
    secret of the environment.
    """
    flags = resolver.flags
    if flags.token_file:
        if flags.acts_as:
            raise UsageError("--token-file and --as exclude each other", why="a token already says who it is")
        return Found(flags.token_file, Place.FLAG, "--token-file", "token")
    if flags.acts_as:
        return None
    if text := resolver.variable("EXTCLI_TOKEN"):
        return Found(text, Place.VARIABLE, "EXTCLI_TOKEN", "token")
    if any(resolver.variable(name) for name in ("EXTCLI_AS", "EXTCLI_SECRET", "EXTCLI_SECRET_FILE")):
        return None
    return _unless_elsewhere(resolver, resolver.find(settings.TOKEN_FILE), to)


def secret_at(resolver: Resolver, to: str | None = None) -> Found[str | Path] | None:
    """The secret that signs tokens for an address, else the service's: itself, or the file it is in.

    Never an option: arguments show up in process lists and histories.
    """
    if text := resolver.variable("EXTCLI_SECRET"):
        return Found(text, Place.VARIABLE, "EXTCLI_SECRET", "secret")
    return _unless_elsewhere(resolver, resolver.find(settings.SECRET_FILE), to)


def token(resolver: Resolver, to: str | None = None) -> str | None:
    """What `token_at` has found."""
    found = token_at(resolver, to)
    if found is None:
        return None
    label = f"{found.value} ({found.label})" if isinstance(found.value, Path) else found.label
    return one_word(_content(found, resolver), label, "token")


def secret(resolver: Resolver, to: str | None = None) -> bytes | None:
    """What `secret_at` has found, decoded."""
    found = secret_at(resolver, to)
    return _decoded(_content(found, resolver), found.label) if found else None


def check_file(key: str, file: Path, where: str) -> None:
    """Raise `UsageError` for a file that holds no secret or token; `key` says which, `where` what to call it."""
    content = _content_of(file, where)
    if key == SECRET_FILE.key:
        _decoded(content, f"{file} ({where})")
    else:
        one_word(content, f"{file} ({where})", "token")


def remark_on(file: Path) -> str:
    """What to say of a file of a secret or token that others may read as well, if they may."""
    try:
        mode = file.stat().st_mode
    except OSError:
        return ""
    # A pipe, as of `<(pass show …)`, is nobody else's; and on Windows the mode says nothing.
    if os.name != "posix" or not S_ISREG(mode) or not mode & (S_IRGRP | S_IROTH):
        return ""
    return f"others may read {file}, by its mode: chmod 600 {quote(str(file))}"


def _unless_elsewhere(resolver: Resolver, found: Found[Path] | None, to: str | None) -> Found[str | Path] | None:
    if found is None:
        return None
    if found.place is Place.PROFILE and resolver.profile and not resolver.profile.is_of(to or resolver.url()):
        return None
    return Found(found.value, found.place, found.origin, found.key)


def _content(found: Found[str | Path], resolver: Resolver) -> str:
    if isinstance(found.value, str):
        return found.value.strip()
    if not resolver.flags.quiet and found.value not in resolver.checked_files:
        resolver.checked_files.add(found.value)
        write_stderr(filter(None, [remark_on(found.value)]))
    return _content_of(found.value, found.label)


def _content_of(file: Path, label: str) -> str:
    try:
        return file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else "not a text file"
        raise UsageError(f"{file} ({label}) cannot be read", why=why) from None


def _decoded(text: str, origin: str) -> bytes:
    compact = "".join(text.split()).translate(str.maketrans("-_", "+/")).rstrip("=")
    try:
        decoded = base64.b64decode(compact + "=" * (-len(compact) % 4), validate=True)
    except (binascii.Error, ValueError):
        decoded = b""
    if not decoded:
        # No cause is chained: it could quote the secret.
        raise UsageError(f"{origin} is not base64", fix="use the secret exactly as it was handed out") from None
    return decoded
