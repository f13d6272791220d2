"""A line of `--dry-run=curl`, run by a shell, has the same effect as the command: 50 generated commands, real curl."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from support import preloaded

pytestmark = pytest.mark.slow

CALLS = 50
TEXTS = [
    "blue",
    "it's",
    'say "hi"',
    "$HOME `id` $(id)",
    "a\\b",
    "día ☀",
    "[1]{2}",
    "@file",
    "-x",
    "50% & more; #1",
    " ",
]
READS = [
    "vote list", "vote get p1", "vote get p2", "vote logs p1", "vote config p1", "vote config p2", "rank get r1",
    "rank list", "accumulate get b1", "accumulate list", "state all", "store-config all",
    "json-store get j1", "trivia list", "trivia leaderboard", "user list",
]  # fmt: skip
"""Commands that together show all that the calls below may change."""


def generated(random: random.Random) -> list[str]:
    """Return the arguments of a command that writes."""
    text, number = random.choice(TEXTS), random.randrange(5)
    document = json.dumps({"text": text, "number": number}, ensure_ascii=False)
    poll, user = f"p{random.randint(1, 2)}", f"viewer:U{random.randint(1, 4)}"
    channel = random.choice([[], ["--channel", "1002"]])
    return random.choice(
        [
            ["vote", "cast", poll, "--value", str(number), "--as", user, *channel],
            ["vote", "define", poll, "--prompt", text, "--option", text, "--option", "other", "--replace", *channel],
            ["vote", "rm", poll, *channel],
            ["rank", "submit", "r1", f"--key={text}", "--as", user],
            ["accumulate", "add", "b1", document, "--as", user],
            ["state", "set", "channel", document, "--yes"],
            ["state", "set", "viewer", document, "--as", user],
            ["store-config", "set", "channel", document],
            ["json-store", "set", "j1", document],
            ["trivia", "define", f"q{number}", f"--name={text}"],
            ["broadcast", "send", "round", document],
            ["datastream", "send", document],
            ["api", "POST", "rank?id=r1", "-f", f"key={text}", "--as", user],
        ]
    )


@pytest.mark.long
def test_curl_lines_have_the_effect_of_their_commands(extcli, live, tmp_path: Path):
    if shutil.which("curl") is None:
        pytest.skip("needs curl")
    urls = [f"{live.url}/_ns/command", f"{live.url}/_ns/curl"]
    for url in urls:
        assert 0 == extcli("clock", "freeze", "--url", url).exit_code
        assert 0 == extcli("clock", "set", "2026-01-01T00:00:00Z", "--url", url).exit_code
    random_calls = random.Random(20260101)
    calls = [generated(random_calls) for _ in range(CALLS)]
    lines, succeeded = [], []
    for call in calls:
        succeeded.append(extcli(*call, "--url", urls[0]).exit_code == 0)
        printed = extcli(*call, "--dry-run=curl", "--url", urls[1])
        # A command that finds out while it reads that it cannot write prints nothing.
        lines.append(printed.stdout)
        if printed.stdout:
            _run(printed.stdout, tmp_path, succeeds=succeeded[-1])

    assert CALLS * 0.8 < sum(map(bool, lines))
    assert CALLS * 0.6 < sum(succeeded)
    for command in READS:
        args = [*command.split(), "-o", "json"]
        direct, by_curl = (extcli(*args, "--url", url) for url in urls)
        assert direct.stdout == by_curl.stdout, command


def _run(line: str, folder: Path, *, succeeds: bool) -> None:
    """Run a printed line in a shell, as a user would who pasted it."""
    if not (folder / "extcli").exists():
        preloaded.put_program(folder)
    path = os.pathsep.join([str(folder), os.environ["PATH"]])
    result = subprocess.run(
        ["bash", "-c", line], env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=30, check=False
    )
    assert succeeds == (result.returncode == 0), (line, result.stdout, result.stderr)
