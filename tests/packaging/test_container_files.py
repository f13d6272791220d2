"""The files for Docker, Compose and GitHub Actions. They do not run here; `make check` lints them."""

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
LINTED = ("Dockerfile", "action.yml", "compose.yaml", "compose.valkey.yaml", "examples/github-actions.yml")
OWN_WORKFLOW = ".github/workflows/test.yml"
WORKFLOWS = (OWN_WORKFLOW, "action.yml", "examples/github-actions.yml", "src/extcli/commands/access/clients/github.yml")
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


@pytest.mark.parametrize("name", LINTED)
def test_the_first_line_says_that_the_file_is_linted_but_not_run(name: str):
    first = (ROOT / name).read_text().splitlines()[0]

    assert first.startswith("# Checked ")
    assert "`make check`" in first
    assert "CI does not " in first


@pytest.mark.parametrize("name", [*LINTED, OWN_WORKFLOW])
def test_make_check_lints_the_file(name: str):
    [recipe] = re.findall(r"^check:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)

    assert name in recipe.split()


def test_every_variable_is_an_option_of_serve():
    known = {parameter.envvar for parameter in load_noun("serve").params} | {CONTROL_TOKEN}
    used = {name for file in LINTED for name in re.findall(r"\bEXTCLI_SERVE_[A-Z_]+[A-Z]\b", (ROOT / file).read_text())}

    assert {"EXTCLI_SERVE_HOST", "EXTCLI_SERVE_DATA", "EXTCLI_SERVE_CONTROL_HOST"} <= used
    assert set() == used - known


def test_the_image_runs_serve_as_an_unprivileged_user_in_two_stages():
    build, final = instructions("FROM")

    assert re.fullmatch(r"python:3\.12-slim-bookworm@sha256:[0-9a-f]{64}", final)
    assert f"{final} AS build" == build
    assert [["extcli"], ["serve"]] == [json.loads(each) for each in instructions("ENTRYPOINT") + instructions("CMD")]
    assert ["10001:10001"] == instructions("USER")


def test_the_image_installs_only_packages_whose_hash_is_locked():
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


def test_the_health_check_of_the_image_needs_no_shell():
    assert ["extcli", "wait", "--ready", "--timeout", "2s"] == health_check()


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
def test_a_node_has_a_control_api_under_the_name_of_its_service(name: str):
    named = {service: settings["environment"]["EXTCLI_SERVE_CONTROL_HOST"] for service, settings in nodes(name).items()}

    assert named
    assert {service: service for service in named} == named


@pytest.mark.parametrize("name", COMPOSE)
def test_a_sandbox_node_is_published_on_loopback_only(name: str):
    published = [port for settings in nodes(name).values() for port in settings["ports"]]

    assert published
    assert [] == [port for port in published if not port.startswith("127.0.0.1:")]


def test_two_nodes_share_the_data_of_one_valkey():
    found = nodes("compose.valkey.yaml")

    assert 2 == len(found)
    assert {"redis://valkey:6379/0"} == {each["environment"]["EXTCLI_SERVE_DATA"] for each in found.values()}


def test_the_action_installs_its_own_checkout_with_a_pinned_uv():
    steps = yaml.safe_load((ROOT / "action.yml").read_text())["runs"]["steps"]
    [uv] = [step["with"]["version"] for step in steps if step.get("uses", "").startswith("astral-sh/setup-uv@")]
    script = "".join(step.get("run", "") for step in steps)

    assert re.fullmatch(r"\d+\.\d+\.\d+", uv)
    assert '"$GITHUB_ACTION_PATH"' in script
    assert '>> "$GITHUB_PATH"' in script
    # A background service would outlive the action, which has no step at the end of a job.
    assert "extcli serve" not in script


def test_the_workflow_of_this_project_has_a_job_for_each_system():
    jobs = yaml.safe_load((ROOT / OWN_WORKFLOW).read_text())["jobs"]

    assert {"ubuntu-latest", "macos-latest", "windows-latest"} == {job["runs-on"] for job in jobs.values()}
