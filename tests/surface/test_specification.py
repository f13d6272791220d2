"""Both modes of the service keep every rule of `extcli conform`: the specification as calls (C6, R1, S3, T5, W7).

`tests/cli/test_conform_services.py` runs the rules on each engine.
"""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from emulator.core.settings import Settings
from support.program import PROGRAM, SECRET_BASE64
from support.service import in_production, live_server


@pytest.mark.parametrize(
    "settings", [Settings(), pytest.param(in_production(), marks=pytest.mark.long)], ids=["sandbox", "production"]
)
def test_the_service_keeps_every_rule_of_the_specification(settings: Settings):
    with live_server(settings) as live:
        command = [PROGRAM, "conform", "--writes", "--yes", "--whole-extension", "--url", live.url, "-o", "json"]
        variables = {**os.environ, "EXTCLI_SECRET": SECRET_BASE64}
        run = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)

    rules = json.loads(run.stdout)["rules"]
    assert [] == [each for each in rules if each["status"] not in ("pass", "skipped")]
    assert (0, "") == (run.returncode, run.stderr)
