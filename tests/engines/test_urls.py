"""Data URLs: which are refused, and how a closed engine describes itself."""

from __future__ import annotations

import pytest

from emulator.storage.opening import open_engine

INVALID = (
    *("redis://", "redis:///0", "redis://h/x", "rediss://h?bogus=1", "redis://:hush@h:x/0", "redis://:hu/sh@h/0"),
    *("redis://:1/hush@h/0", "redis://:hush#@h/0", "redis://:[hush]@h/0", "redis://:hush℀@h/x"),
    *("redsi://:hush@h/0", "redsi://:a@hush?@h/0", "redsi://h/0?password=hush", "user:hush@h"),
)


@pytest.mark.parametrize(
    "url",
    [
        "sqlite://?synchronous=full",
        "sqlite:///data.db?cache=shared",
        "",
        "data.db",
        "sqlite:data.db",
        "sqlite:///",
        "sqlite://data.db",
        "postgresql://localhost",
        "mysql://x/y",
    ],
)
def test_an_unsupported_url_is_reported_with_the_accepted_forms(url: str) -> None:
    with pytest.raises(ValueError, match=r"^[^\n]*sqlite:///absolute[^\n]*$") as refused:
        open_engine(url, namespace="main")

    assert repr(url) in str(refused.value)


@pytest.mark.parametrize("url", INVALID)
def test_an_invalid_url_is_refused_without_showing_its_password(url: str) -> None:
    with pytest.raises(ValueError, match=r"^cannot keep data in ") as refused:
        open_engine(url, namespace="main")

    assert "hush" not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("sqlite://", ("sqlite", "memory", False)),
        ("sqlite:////srv/data.db?synchronous=full", ("sqlite", "/srv/data.db", True)),
        ("sqlite:///./data.db", ("sqlite", "./data.db", True)),
        ("redis://host", ("redis", "Redis at host:6379", True)),
        ("rediss://user:hush@host:1/2?socket_timeout=3", ("redis", "Redis at host:1/2", True)),
        ("valkey://host/3", ("redis", "Redis at host:6379/3", True)),
    ],
)
def test_a_closed_engine_describes_itself(url: str, expected: tuple[str, str, bool]) -> None:
    engine = open_engine(url, namespace="main")

    assert (engine.name, engine.location, engine.survives_restart) == expected
