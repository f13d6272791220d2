"""The steps of `deploying.md` after a leak end everything that a thief holds, and nothing else."""

from __future__ import annotations

import base64
import shlex
import signal
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import pytest
from blocks import FENCE, ROOT

from extcli.main import main
from support.authentication import authenticate, refused
from support.holding import VIOLATION, Holding, all_are, owner
from support.pins import create_pin
from support.process import ServerProcess, server_process
from support.service import CHANNEL, CLIENT_ID, OTHER_ID
from support.socket_client import SocketClient

GUIDE = ROOT / "docs" / "deploying.md"
pytestmark = pytest.mark.slow


def steps(heading: str) -> list[str]:
    """The commands below a heading of the guide, up to the next heading."""
    section = GUIDE.read_text().partition(f"### {heading}\n")[2].partition("\n#")[0]
    return [line.removeprefix("$ ") for _, text in FENCE.findall(section) for line in text.splitlines()]


@dataclass
class Deployment:
    """A production service with two extensions in a file that `extcli extension` edits."""

    folder: Path
    served: ServerProcess

    def run(self, command: str) -> None:
        """Run one command of the guide."""
        program, *arguments = shlex.split(command)
        assert ("extcli", 0) == (program, main(arguments))

    def reload(self) -> None:
        """Send SIGHUP, and wait until the service has logged the reload."""
        self.served.process.send_signal(signal.SIGHUP)
        assert self.served.process.stderr is not None
        assert any("reloaded by process" in line for line in self.served.process.stderr)

    def secret(self, client_id: str = CLIENT_ID) -> bytes:
        """The newest secret of an extension."""
        files = self.folder.glob(f"{client_id}*.secret")
        return base64.b64decode(max(files, key=lambda file: file.stat().st_mtime_ns).read_text())


@pytest.fixture
def deploy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], AbstractContextManager[ServerProcess]]:
    """Start a service on the files in `tmp_path`, which is the working directory."""
    monkeypatch.chdir(tmp_path)
    for client_id in (CLIENT_ID, OTHER_ID):
        assert 0 == main(["extension", "init", "--client-id", client_id, "-q"])
    arguments = ("--production", "--extensions", "extensions.toml", "--data", f"sqlite:///{tmp_path}/data.db")
    return lambda: server_process(*arguments)


def test_the_steps_after_the_leak_of_a_token(tmp_path: Path, deploy):
    (revoke_all,) = steps("An issued token or a link has leaked")
    with deploy() as served:
        deployment = Deployment(tmp_path, served)
        before = Holding(served, deployment.secret())
        others = Holding(served, deployment.secret(OTHER_ID), client_id=OTHER_ID)
        with SocketClient(served) as thief:
            stolen = authenticate(thief, refresh=before.pair["refresh"])
            pin = create_pin(served.bearer(stolen["jwt"]))

            deployment.run(revoke_all)
            late = authenticate(thief, refresh=stolen["refresh"])
            deployment.reload()

            assert VIOLATION == thief.close_code()
        after = Holding(served, deployment.secret())

        with SocketClient(served) as thief:
            attempts = [{"refresh": stolen["refresh"]}, {"refresh": late["refresh"]}, {"pin": pin}]
            assert [400, 400, 400] == [refused(thief, **each)[0] for each in attempts]
            assert [401, 401] == [refused(thief, jwt=each["jwt"])[0] for each in (stolen, late)]
        assert [401, 401] == [served.bearer(each["jwt"]).get("user_info").status_code for each in (stolen, late)]
        assert all_are(before.working(), False, but={"self-signed token": True})
        assert [True, True] == [all_are(each.working(), True) for each in (after, others)]


@pytest.mark.long
def test_the_steps_after_the_leak_of_the_database(tmp_path: Path, deploy):
    (delete_key,) = steps("The database or a backup has leaked")
    with deploy() as served:
        deployment = Deployment(tmp_path, served)
        before = Holding(served, deployment.secret())
        assert 0 == served.stop(signal.SIGTERM)

    deployment.run(delete_key.replace("/srv/extension.db", f"{tmp_path}/data.db"))

    with deploy() as served:
        client = owner(served, deployment.secret())
        assert 401 == served.bearer(before.pair["jwt"]).get("user_info").status_code
        with SocketClient(served) as game:
            assert 400 == refused(game, refresh=before.pair["refresh"])[0]
            assert 400 == refused(game, pin=before.bound_pin)[0]
            assert CHANNEL == authenticate(game, pin=create_pin(client))["twitch_id"]
