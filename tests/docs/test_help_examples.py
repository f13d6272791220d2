"""Every example in the help of a command works: a shell runs it, with the files and data that the examples assume."""

from __future__ import annotations

import gzip
import os
import subprocess
from pathlib import Path

import httpx
import pytest

from support.cli_reference import commands, examples
from support.program import PROGRAM, SECRET_BASE64
from support.service import LiveServer

pytestmark = pytest.mark.slow

EXAMPLES = list(dict.fromkeys(line for _, command in commands() for line in examples(command)))
FILES = {
    "ballots.csv": "user,value\nU1,0\nU2,1\n",
    "answers.csv": "user,key\nU1,blue\n",
    "ratings.jsonl": '{"user": "U1", "stars": 4}\n',
    "news.json": '{"text": "hello"}',
    "pistol.txt": "P-1\n",
    "hats.txt": "H-1\nH-2\n",
    "more-hats.csv": "code,size\nH-3,1\n",
    "winners.csv": "user,place\nU1,1\n",
    "receipt.txt": "",
    "live.secret": SECRET_BASE64,
    "test/.keep": "",
    "home/.config/fish/completions/.keep": "",
    "backend.js": "",
    "faults.toml": '[[faults]]\nmatch = "POST /v1/e/vote"\nstatus = 503\n',
}
FILLED_BY = """
extcli vote define lunch --prompt 'Which?' --options A,B --ends-in 10m
extcli vote cast lunch --value 0
extcli vote cast quiz --value 2 --as viewer:U2
extcli rank submit colour --key blue
extcli accumulate add ratings '{"stars": 5}'
extcli state set channel '{"round": 4, "team": "red"}'
extcli store-config set channel '{"round": 4, "team": "red"}'
extcli json-store set highscore '{"score": 4}'
extcli trivia define q1 --name 'Which team?'
extcli trivia define-option q1 red --name Red
extcli trivia move q1 unlocked
extcli codes upload --set Pistol=pistol.txt --set Coat=hats.txt --yes
extcli codes mark-from-list U2 --prize 0
extcli bits purchase hat --id a1b2c3
extcli bits purchase hat --as viewer:7
extcli seed example > seed.toml
extcli extension init --client-id my-extension --owner 7
extcli profile add dev --url "$EXTCLI_URL"
extcli profile add live --url https://ext.example --production
extcli snapshot save before.json
extcli snapshot save after.json
"""
LINK = "extcli pin request -o plain | extcli pin login"
BEFORE = {
    "extcli token refresh": LINK,
    "$(extcli token refresh": LINK,
    "extcli token revoke": LINK,
    'echo "$game"': "game=$(extcli pin request --game -o plain); echo $game | cut -d' ' -f1 | extcli pin validate",
    "extcli config unset timeout": "extcli config set timeout 10s -p dev",
    "extcli extension retire": "extcli extension rotate --client-id my-extension",
    "extcli extension init": "rm extensions.toml",
    "extcli profile add": "rm config.toml",
    "extcli logs replay": "extcli vote get lunch",
    "extcli fault rm": "extcli fault add --id f1 --match 'POST /v1/e/vote' --drop",
    "extcli token mint": "export EXTCLI_SECRET=$(cat live.secret)",
}
"""What runs before an example that contains the text."""
NOT_RUN = {
    "extcli serve --port 0 --data sqlite:///srv/": "writes to /srv",
    "extcli data ": "needs a data file; test_data_command.py",
    "extcli exec --": "needs a project with npm; test_exec.py runs others",
    "extcli exec --quiet": "runs pytest in pytest; test_exec.py runs others",
    "extcli status": "needs a named service; test_status.py",
    'eval "$(extcli status': "needs a named service; test_status.py",
    "extcli stop": "needs a named service; test_status.py",
    "extcli socket close": "needs an open socket; test_socket_list_command.py",
    "extcli socket stall": "needs an open socket; test_socket_list_command.py",
    "extcli logs -f": "follows without end; test_logs_follow.py",
    "extcli serve &": "leaves a service behind; test_wait.py",
    "extcli extension init /etc/": "writes to /etc",
    "extcli pin validate --channel": "asks at a terminal; test_pin_typing.py",
    "extcli pin login": "asks at a terminal; test_pin_typing.py",
    "extcli bits purchase --receipt": "needs a signed receipt; test_bits_command.py",
    "extcli seed apply seed.toml": "the example names files of its own; test_seed_command.py",
    "extcli seed check": "the example names files of its own; test_seed_command.py",
    "extcli connect node >": "runs a backend in Node; test_connect_command.py",
}
ENDLESS = ("--watch", "extcli listen", "extcli socket repl", "--wait 1", "extcli wait", "extcli expect")
"""Examples that wait for something. They are interrupted, and must have begun without an error."""


def environment(folder: Path, live: LiveServer) -> dict[str, str]:
    path = os.pathsep.join([str(folder / "bin"), str(PROGRAM.parent), os.environ["PATH"]])
    kept = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
    places = {"EXTCLI_CONFIG": str(folder / "config.toml"), "EXTCLI_STATE_DIR": str(folder / "state")}
    return {**kept, **places, "PATH": path, "HOME": str(folder / "home"), "LC_ALL": "C.UTF-8", "EXTCLI_URL": live.url}


def run(script: str, folder: Path, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-uo", "pipefail", "-c", script], cwd=folder, env=variables, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip


@pytest.fixture
def prepared(live: LiveServer, tmp_path: Path, programs: Path) -> Path:
    """A folder with the files of the examples, and a service with their data."""
    for name, content in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    (tmp_path / "hats.txt.gz").write_bytes(gzip.compress(b"H-4\n"))
    (tmp_path / "bin").symlink_to(programs)
    return tmp_path


def reason_not_to_run(line: str) -> str:
    return next((reason for start, reason in NOT_RUN.items() if line.startswith(start)), "")


def test_the_examples_of_the_help_work(live: LiveServer, prepared: Path) -> None:
    variables = environment(prepared, live)
    filled = run(f"set -e\n{FILLED_BY}", prepared, variables)
    assert 0 == filled.returncode, filled.stderr
    data = httpx.get(f"{live.url}/_emulator/snapshot?keys=true").content
    kept = {name: (prepared / name).read_bytes() for name in ("config.toml", "extensions.toml")}
    failed = []

    for line in EXAMPLES:
        if reason_not_to_run(line):
            continue
        httpx.put(f"{live.url}/_emulator/snapshot", content=data, timeout=30).raise_for_status()
        for name, content in kept.items():
            (prepared / name).write_bytes(content)
        first = next((script for text, script in BEFORE.items() if text in line), "")
        place = line.replace("http://127.0.0.1:8282", live.url).replace("curl -H", "curl -sSf -H")
        endless = any(text in line for text in ENDLESS)
        script = f"timeout --signal=INT 1 bash -c {_quoted(place)}" if endless else place
        result = run(f"{first} >/dev/null\n{script}" if first else script, prepared, variables)
        if result.returncode not in ((0, 7, 124, 130) if endless else (0,)):
            failed.append(f"{line}: exit code {result.returncode}, {result.stderr}")

    assert not failed, "\n".join(failed)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def test_no_reason_for_not_running_an_example_is_left_over() -> None:
    assert [] == [start for start in NOT_RUN if not any(line.startswith(start) for line in EXAMPLES)]
