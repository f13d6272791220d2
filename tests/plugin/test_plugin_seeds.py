"""Seeds in tests of an extension, by the marker and by a call."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.plugin_runs import run_pytest

pytestmark = pytest.mark.slow

SEED = """
extcli = 1
[[polls]]
id = "lunch"
options = ["Pizza", "Sushi"]
votes = { U1 = 0, U2 = 1, U3 = 1 }
"""


def test_the_marker_applies_a_seed_next_to_the_test(tmp_path: Path):
    test = """
        import pytest
        @pytest.mark.extcli(seed="lunch.toml")
        def test_it(extcli, extcli_factory):
            assert extcli.viewer().poll("lunch")["specific"][:2] == [1, 2]
            assert extcli_factory().viewer().poll("lunch")["count"] == 3
    """
    assert 0 == run_pytest(tmp_path, files={"test": test, "lunch.toml": SEED}).exit_code


def test_an_invalid_seed_is_an_error_with_its_line_and_field(tmp_path: Path):
    test = """
        import pytest
        @pytest.mark.extcli(seed="lunch.toml")
        def test_it(extcli): pass
    """
    run = run_pytest(tmp_path, files={"test": test, "lunch.toml": SEED.replace("U1 = 0", "U1 = true")})

    assert 1 == run.exit_code
    assert re.search(r"lunch\.toml:6:\d+: polls\[0\]\.votes\.U1", run.output), run.output


def test_a_wrong_marker_says_what_it_takes(tmp_path: Path):
    test = """
        import pytest
        @pytest.mark.extcli("2030-01-01")
        def test_it(extcli): pass
    """
    assert (
        "the marker extcli takes seed=FILE and clock=TIME, by name" in run_pytest(tmp_path, files={"test": test}).output
    )
