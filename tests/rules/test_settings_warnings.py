"""The settings that are valid but risky, and the warnings about them."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.config.environment import PRODUCTION, SANDBOX
from emulator.config.settings import Settings
from emulator.engines.opening import open_engine
from emulator.process.startup_log import settings_warnings

INLINE, IN_FILE = 'secrets = ["c2VjcmV0"]', 'secret_files = ["my.secret"]'


def warnings(settings: Settings) -> list[str]:
    return list(settings_warnings(settings, open_engine(settings.data, namespace="")))


def test_production_in_memory_warns_that_a_stop_loses_its_data(tmp_path: Path):
    (warning,) = warnings(Settings(PRODUCTION))

    assert "--production keeps data in memory, so a stop loses all of it: set --data" == warning
    assert [] == warnings(Settings(SANDBOX)) == warnings(Settings(PRODUCTION, f"sqlite://{tmp_path}/data.db"))


@pytest.mark.parametrize(
    ("line", "mode", "secret_mode", "named"),
    [
        (INLINE, 0o644, 0o600, ["extensions.toml"]),
        (INLINE, 0o640, 0o644, []),
        (IN_FILE, 0o644, 0o644, ["my.secret"]),
        (IN_FILE, 0o644, 0o640, []),
        (f"{INLINE}\n{IN_FILE}", 0o644, 0o644, ["extensions.toml", "my.secret"]),
    ],
)
def test_files_of_secrets_that_other_users_can_read_are_named(
    tmp_path: Path, line: str, mode: int, secret_mode: int, named: list[str]
):
    file, secret = tmp_path / "extensions.toml", tmp_path / "my.secret"
    file.write_text(f"[extensions.e]\n{line}\n")
    secret.write_text("c2VjcmV0")
    file.chmod(mode)
    secret.chmod(secret_mode)

    assert [
        f"{tmp_path}/{name}: holds secrets, but every user of this machine can read it: chmod o-r" for name in named
    ] == warnings(Settings(extensions_file=file))
