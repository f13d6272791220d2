"""Data URLs: which are refused, which file one names, and how a closed engine describes itself."""

from __future__ import annotations

import pytest

from emulator.storage.opening import data_url_error, database_path, open_engine

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


@pytest.mark.parametrize(
    ("rest", "path"),
    [("/C:/x.db", "C:/x.db"), ("/c:\\data\\x.db", "c:\\data\\x.db"), ("//C:/x.db", "C:/x.db"), ("/x.db", "/x.db"),
     ("/./x.db", "./x.db"), ("/C:x.db", "/C:x.db"),
     ("///server/share/x.db", "//server/share/x.db"), ("/\\\\server\\share\\x.db", "\\\\server\\share\\x.db")],
)  # fmt: skip
def test_a_drive_letter_begins_a_path_where_there_are_drives(rest: str, path: str):
    assert path == database_path(rest, f"sqlite://{rest}", has_drives=True)


def test_elsewhere_a_drive_letter_is_the_name_of_a_folder():
    assert "/C:/x.db" == database_path("/C:/x.db", "sqlite:///C:/x.db", has_drives=False)


@pytest.mark.parametrize(
    ("path", "advice"),
    [("C:\\data\\x.db", "sqlite:///C:/data/x.db"), ("C:/x.db", "sqlite:///C:/x.db"), ("x.db", "sqlite:///./x.db"),
     ("\\\\server\\share\\x.db", "sqlite://///server/share/x.db"), ("/x.db", "sqlite:///x.db")],
)  # fmt: skip
def test_the_advice_for_a_path_is_a_url_of_that_path_where_there_are_drives(path: str, advice: str):
    error = data_url_error(path, has_drives=True)

    assert f"write {advice} for a file;" in str(error)
    assert (database_path(advice.removeprefix("sqlite://"), advice, has_drives=True) or "").removeprefix(
        "./"
    ) == path.replace("\\", "/")
