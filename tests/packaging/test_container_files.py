"""The files for Docker, Compose and GitHub Actions. `make check` lints them."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement

from emulator.contract.names import CONTROL_TOKEN
from extcli.app import load_noun
from support.program import PROGRAM
from support.service import LiveServer

ROOT = Path(__file__).parent.parent.parent
DOCKERFILE = (ROOT / "Dockerfile").read_text()
WORKFLOWS = (
    ".github/workflows/release.yml",
    ".github/workflows/test.yml",
    "action.yml",
    "examples/github-actions.yml",
    "src/extcli/commands/clients/github.yml",
)
LOCK = (ROOT / "requirements.lock").read_text()
COMPOSE = ("compose.yaml", "compose.valkey.yaml")


def instructions(name: str) -> list[str]:
    """The arguments of each instruction of this name in the Dockerfile, continued lines joined."""
    joined = re.sub(r"\\\n\s*", "", re.sub(r"^#.*\n", "", DOCKERFILE, flags=re.MULTILINE))
    return re.findall(rf"^{name} (.*)$", joined, re.MULTILINE)


def nodes(name: str) -> dict[str, dict[str, Any]]:
    """The services of a Compose file that run extcli."""
    services: dict[str, dict[str, Any]] = yaml.safe_load((ROOT / name).read_text())["services"]
    return {service: settings for service, settings in services.items() if "build" in settings}


def test_every_variable_is_an_option_of_serve():
    known = {parameter.envvar for parameter in load_noun("serve").params} | {CONTROL_TOKEN}
    files = ("Dockerfile", *COMPOSE, "action.yml", "examples/github-actions.yml")
    used = {name for file in files for name in re.findall(r"\bEXTCLI_SERVE_[A-Z_]+[A-Z]\b", (ROOT / file).read_text())}

    assert {"EXTCLI_SERVE_HOST", "EXTCLI_SERVE_DATA", "EXTCLI_SERVE_CONTROL_HOST"} <= used
    assert set() == used - known


def test_the_image_and_the_action_install_only_packages_whose_hash_is_locked():
    # The image installs only packages whose hash is locked
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = [*project["project"]["dependencies"], *project["build-system"]["requires"]]
    locked = dict(re.findall(r"^([a-z0-9-]+)==([^ ;]+)(?: ;.*?)? \\$", LOCK, re.MULTILINE))

    unlocked = [each for each in map(Requirement, wanted) if locked.get(each.name, "0") not in each.specifier]
    assert [] == unlocked
    assert len(locked) <= LOCK.count("--hash=sha256:")
    assert "://" not in LOCK
    [install, own] = re.findall(r"pip install (.*?)(?: &&|$)", instructions("RUN")[0])
    assert "--require-hashes" in install
    assert {"--no-deps", "--no-build-isolation"} <= set(own.split())

    # The action installs the packages of the lock file and extcli without others
    [install, own] = re.findall(r"uv pip install (.*)", (ROOT / "action.yml").read_text())

    assert '--require-hashes --requirements "$GITHUB_ACTION_PATH/requirements.lock"' in install
    assert '--no-deps --no-build-isolation "$GITHUB_ACTION_PATH"' in own


@pytest.mark.parametrize("name", WORKFLOWS)
def test_actions_of_others_are_pinned_by_commit(name: str):
    used = re.findall(r"uses: (\S+/\S+)@(\S+)( # v\d\S*)?", (ROOT / name).read_text())

    assert used
    assert [] == [each for each in used if not re.fullmatch(r"[0-9a-f]{40}", each[1]) or not each[2]]


def health_check() -> list[str]:
    """The words of the command, which is JSON because no shell runs it."""
    [check] = instructions("HEALTHCHECK")
    words: list[str] = json.loads(check.partition("CMD ")[2])
    return words


def health(url: str) -> int:
    """The exit code of the health check for a service at this URL."""
    command = [PROGRAM, *health_check()[1:]]
    return subprocess.run(command, env={**os.environ, "EXTCLI_URL": url}, capture_output=True, check=False).returncode


@pytest.mark.slow
@pytest.mark.long
def test_docker_takes_a_ready_service_for_healthy_and_a_missing_one_for_unhealthy(live: LiveServer):
    with socket.create_server(("127.0.0.1", 0)) as wire:
        free = wire.getsockname()[1]

    assert 0 == health(live.url)
    # Docker reserves 2 and counts every other code but 0 as unhealthy.
    assert 3 == health(f"http://127.0.0.1:{free}")


def test_the_build_context_has_the_files_that_the_image_copies_and_no_tests():
    sent = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = {name for each in instructions("COPY") if "--from" not in each for name in each.split()[:-1]}

    assert copied == sent
    assert copied == {name for name in copied if (ROOT / name).exists()}


@pytest.mark.parametrize("name", COMPOSE)
def test_a_sandbox_node_is_published_on_loopback_only(name: str):
    published = [port for settings in nodes(name).values() for port in settings["ports"]]

    assert published
    assert [] == [port for port in published if not port.startswith("127.0.0.1:")]
