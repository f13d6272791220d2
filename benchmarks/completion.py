"""Times completion in real shells: `python benchmarks/completion.py [ROUNDS]`.

From the key Tab until the terminal shows the result, in bash, zsh and fish: with 1,000 polls, with none, and without a
service. The limits are 200 ms with 1,000 polls and 120 ms with none, for 95 of 100.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory

import httpx
from common import argument, start_extcli

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from support.typing_shell import SHELLS, Shell  # noqa: E402

PROGRAMS = Path(sys.executable).parent
UNUSED = "http://127.0.0.1:9"


def service(stack: ExitStack, polls: int) -> str:
    """Run a service with this many polls and return its URL. One poll has a name that starts like no other."""
    url = start_extcli(stack).url
    with httpx.Client(base_url=url) as client:
        caller = {"app_id": "my-extension", "role": "viewer", "user_id": "U1", "channel_id": "1001"}
        token = client.post("/v1/e/authtoken", json=caller).json()["token"]
        client.headers["authorization"] = f"my-extension {token}"
        for number in range(polls):
            name = f"poll-{number}" if number else "unique"
            client.post(f"/v1/e/vote?id={name}", json={"value": 1}).raise_for_status()
    return url


def times(shell: Shell, rounds: int, *, names: bool) -> list[float]:
    """Complete the name of a poll this many times, after one time that is not counted."""
    if names:
        return [shell.shown_after_tab("extcli vote get uni", "que") for _ in range(rounds + 1)][1:]
    return [shell.nothing_after_tab("extcli vote get uni") for _ in range(rounds + 1)][1:]


def main() -> None:
    rounds = int(argument(1, 40))
    print(f"{'':28} {'shell':5} {'p50':>7} {'p95':>7}")
    with ExitStack() as stack, TemporaryDirectory() as cache:
        full, empty = service(stack, 1_000), service(stack, 0)
        for case, url, limit in (("1,000 polls", full, 200), ("no polls", empty, 120), ("no service", UNUSED, 120)):
            for name in SHELLS:
                with TemporaryDirectory() as home:
                    # Compiled modules are kept in a new folder, as in an installation.
                    shell = Shell(name, PROGRAMS, Path(home), {"EXTCLI_URL": url, "PYTHONPYCACHEPREFIX": cache})
                    found = times(shell, rounds, names=url == full)
                    shell.close()
                late = quantiles(found, n=20)[-1]
                verdict = "" if late * 1000 <= limit else f"  over {limit} ms"
                print(f"{case:28} {name:5} {median(found) * 1000:4.0f} ms {late * 1000:4.0f} ms{verdict}")


if __name__ == "__main__":
    main()
