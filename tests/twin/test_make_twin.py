"""`make twin` compares everything, and a tenth with `QUICK=1`."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("given", "is_quick"), [([], False), (["QUICK=1"], True)])
def test_make_twin_compares_a_tenth_only_on_request(given: list[str], is_quick: bool):
    printed = subprocess.run(
        ["make", "-n", "twin", *given], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    ).stdout

    assert is_quick == ("--quick" in printed)
    assert "-m twin" in printed
