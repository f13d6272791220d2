"""Every setting with the value in force, and where it comes from; of what opens a service only whether it is there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from extcli.config import secret_lookup, settings
from extcli.config.resolver import Found
from extcli.errors import UsageError

if TYPE_CHECKING:
    from extcli.config.settings import Setting
    from extcli.session import Session

_DEFAULT = "default"


def settings_in_force(session: Session) -> list[dict[str, Any]]:
    """Each as `key`, `value` and `origin`; `None` is a value that there is none of, or that suits each command."""
    return [{"key": key, "value": value, "origin": origin} for key, value, origin in _facts(session)]


def setting_in_force(session: Session, key: str) -> dict[str, Any]:
    """That of this key; raises `UsageError` if there is none."""
    found = {each["key"]: each for each in settings_in_force(session)}
    if key not in found:
        raise UsageError(f"{key!r} is no setting", fix=f"one of {', '.join(found)}")
    return found[key]


def _facts(session: Session) -> Iterator[tuple[str, object, str]]:
    resolver = session.resolver
    url, socket, production = resolver.find(settings.URL), resolver.told_socket(), resolver.production()
    yield "profile", resolver.profile.name if resolver.profile else None, _chosen_by(session)
    yield "url", resolver.url(), _origin(url)
    yield "ws_url", resolver.ws_url(), _origin(socket)
    yield "client_id", resolver.client_id(), _origin(resolver.find(settings.CLIENT_ID))
    identity, channel = resolver.find(settings.ACTS_AS), resolver.find(settings.CHANNEL)
    yield "as", str(identity.value) if identity else None, _origin(identity)
    yield "channel", channel.value if channel else None, _origin(channel)
    yield from _at_hand(session, "token", secret_lookup.token_at(resolver), settings.TOKEN_FILE)
    yield from _at_hand(session, "secret", secret_lookup.secret_at(resolver), settings.SECRET_FILE)
    yield "pin_path", resolver.pin_path(), _origin(resolver.find(settings.PIN_PATH))
    yield "broadcast_method", resolver.broadcast_method(post=False), _origin(resolver.find(settings.BROADCAST_METHOD))
    yield "output", session.output.format.value, _origin(resolver.find(settings.OUTPUT))
    yield "timeout", f"{resolver.timeout():g}s", _origin(resolver.find(settings.TIMEOUT))
    yield "production", production is not None, str(production) if production else _DEFAULT
    yield "state_dir", str(session.link_store.directory), "EXTCLI_STATE_DIR" if resolver.state_dir() else _DEFAULT
    yield (
        "config",
        str(resolver.file_of_profiles),
        "EXTCLI_CONFIG" if resolver.variable("EXTCLI_CONFIG") else _DEFAULT,
    )


def _chosen_by(session: Session) -> str:
    resolver = session.resolver
    if resolver.asked_profile:
        return resolver.asked_profile[1]
    return str(resolver.file_of_profiles) if resolver.profile else _DEFAULT


def _origin(found: Found[Any] | None) -> str:
    return found.origin if found else _DEFAULT


def _at_hand(
    session: Session, key: str, found: Found[str | Path] | None, setting: Setting[Path]
) -> Iterator[tuple[str, object, str]]:
    """Whether it is there, and in which file if it is in one. The file is not read: that it is named is what counts."""
    passed_over = None if found else session.resolver.find(setting)
    origin = f"{_DEFAULT}, as that of {passed_over.origin} is passed over" if passed_over else _origin(found)
    yield key, "set" if found else "not set", origin
    in_file = found if found and isinstance(found.value, Path) else None
    yield setting.key, str(in_file.value) if in_file else None, _origin(in_file)
