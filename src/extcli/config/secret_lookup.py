"""Finds the token or secret to use, and sends a profile's secrets only to the profile's service.

With `-p live --url http://other`, the command goes to another service, by mistake or on purpose. That service must not
receive a token that is valid for live. So a profile's token, and tokens signed with its secret, go to the profile's own
addresses only. Tokens and secrets from options and variables are used for any address.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Mapping
from pathlib import Path
from stat import S_IRGRP, S_IROTH, S_ISREG

from emulator.contract import user_files
from emulator.contract.shell import quoted
from extcli.config import settings
from extcli.config.resolver import Found, Resolver, Source
from extcli.config.settings import CONTROL_TOKEN_FILE, SECRET_FILE, Setting, header_word
from extcli.errors import UsageError
from extcli.output.printer import write_stderr


def find_token(resolver: Resolver, to: str | None = None) -> Found[str | Path] | None:
    """Return the ready-made token for the address `to` (default: the service), or the path of its file.

    `--as` excludes tokens from the environment and from the profile. `EXTCLI_AS`, or a secret in the environment,
    excludes the profile's. If the profile is named on the command line, its own identity or secret excludes the token
    in the environment.
    """
    flags = resolver.flags
    if flags.token_file:
        if flags.acts_as:
            raise UsageError("--token-file and --as exclude each other", why="a token already has a role and a user")
        return Found(flags.token_file, Source.FLAG, "--token-file", "token")
    if flags.acts_as:
        return None
    text, of_profile = resolver.variable("EXTCLI_TOKEN"), _file_of_profile(resolver, settings.TOKEN_FILE, to)
    if flags.profile:
        own_identity = resolver.in_profile(settings.ACTS_AS)
        if of_profile or own_identity or _file_of_profile(resolver, SECRET_FILE, to):
            return of_profile
    elif not text and any(resolver.variable(name) for name in ("EXTCLI_AS", "EXTCLI_SECRET", "EXTCLI_SECRET_FILE")):
        return None
    return Found(text, Source.VARIABLE, "EXTCLI_TOKEN", "token") if text else of_profile


def find_secret(resolver: Resolver, to: str | None = None) -> Found[str | Path] | None:
    """Return the secret that signs tokens for the address `to` (default: the service), or the path of its file.

    There is no option for it, because arguments are visible in process lists and shell histories.
    """
    return _in_profile_or_environment(resolver, SECRET_FILE, "EXTCLI_SECRET", to)


def _in_profile_or_environment(
    resolver: Resolver, file: Setting[Path], variable: str, to: str | None
) -> Found[str | Path] | None:
    """Return what the variable holds, otherwise the path of the file that its variable or the profile names.

    The profile comes first if it is named on the command line.
    """
    of_profile, in_variable = _file_of_profile(resolver, file, to), resolver.in_variable(file)
    if of_profile and resolver.flags.profile:
        return of_profile
    if text := resolver.variable(variable):
        return Found(text, Source.VARIABLE, variable, file.key.removesuffix("_file").replace("_", " "))
    return in_variable or of_profile


def token(resolver: Resolver, to: str | None = None) -> str | None:
    """Return the token that `find_token` finds, read from its file if necessary. Raises `UsageError`."""
    found = find_token(resolver, to)
    if found is None:
        return None
    label = f"{found.value} ({found.label})" if isinstance(found.value, Path) else found.label
    return header_word(_content(found, resolver), label, "token")


def control_token(resolver: Resolver) -> str | None:
    """Return the token for the control API of the service, if one is configured. Raises `UsageError`."""
    found = _in_profile_or_environment(resolver, CONTROL_TOKEN_FILE, "EXTCLI_CONTROL_TOKEN", None)
    return None if found is None else header_word(_content(found, resolver), found.label, "control token")


def secret(resolver: Resolver, to: str | None = None) -> bytes | None:
    """Return the secret that `find_secret` finds, decoded. Raises `UsageError`."""
    found = find_secret(resolver, to)
    return _decode_secret(_content(found, resolver), found.label) if found else None


def secret_of(environ: Mapping[str, str]) -> bytes | None:
    """Return the secret that variables name, decoded: EXTCLI_SECRET or EXTCLI_SECRET_FILE. Raises `UsageError`."""
    if text := environ.get("EXTCLI_SECRET"):
        return _decode_secret(text, "EXTCLI_SECRET")
    if name := environ.get("EXTCLI_SECRET_FILE"):
        return _decode_secret(_read(Path(name), "EXTCLI_SECRET_FILE"), f"{name} (EXTCLI_SECRET_FILE)")
    return None


def check_file(key: str, file: Path, where: str) -> None:
    """Raise `UsageError` if the file holds no valid secret or token. `where` names the setting."""
    content = _read(file, where)
    if key == SECRET_FILE.key:
        _decode_secret(content, f"{file} ({where})")
    else:
        header_word(content, f"{file} ({where})", "token")


def permission_warning(file: Path) -> str:
    """Return a warning if other users can read this file, which holds a secret or token; otherwise an empty string."""
    try:
        mode = file.stat().st_mode
    except OSError:
        return ""
    # A pipe, as in `<(pass show …)`, belongs to this user. On Windows the mode means nothing.
    if os.name != "posix" or not S_ISREG(mode) or not mode & (S_IRGRP | S_IROTH):
        return ""
    return f"other users can read {file}: chmod 600 {quoted(str(file))}"


def _file_of_profile(resolver: Resolver, file: Setting[Path], to: str | None) -> Found[str | Path] | None:
    """Return the profile's secret or token file, unless the address belongs to another service."""
    found = resolver.in_profile(file)
    if found is None or (resolver.profile and not resolver.profile.is_of(to or resolver.url())):
        return None
    return found


def _content(found: Found[str | Path], resolver: Resolver) -> str:
    if isinstance(found.value, str):
        return found.value.strip()
    if not resolver.flags.quiet and found.value not in resolver.checked_files:
        resolver.checked_files.add(found.value)
        write_stderr(filter(None, [permission_warning(found.value)]))
    return _read(found.value, found.label)


def _read(file: Path, label: str) -> str:
    try:
        return user_files.text(file, user_files.SECRET, pipes=True).strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else "not a text file"
        raise UsageError(f"cannot read {file} ({label})", why=why) from None


def _decode_secret(text: str, origin: str) -> bytes:
    compact = "".join(text.split()).translate(str.maketrans("-_", "+/")).rstrip("=")
    try:
        decoded = base64.b64decode(compact + "=" * (-len(compact) % 4), validate=True)
    except (binascii.Error, ValueError):
        decoded = b""
    if not decoded:
        # The cause is not chained, as it could quote the secret.
        raise UsageError(f"{origin} is not base64", fix="use the secret exactly as Twitch shows it") from None
    return decoded
