"""The examples of the guide to pytest run, in the order in which they stand, as one file."""

from __future__ import annotations

from pathlib import Path

import pytest
from blocks import ROOT, blocks

from support.plugin_runs import run_pytest

GUIDE = ROOT / "docs" / "guide" / "pytest.md"


@pytest.mark.slow
def test_the_examples_of_the_guide_pass(tmp_path: Path):
    shown = blocks(GUIDE)
    examples = "\n\n".join(block.text for block in shown if block.info == "python")
    (seed,) = (block.text for block in shown if block.info == "toml")

    run = run_pytest(
        tmp_path, "-o", "asyncio_mode=auto", "-o", "asyncio_default_fixture_loop_scope=function",
        files={"test": examples, "lunch.toml": seed},
    )  # fmt: skip

    assert (0, examples.count("def test_")) == (run.exit_code, run.outcomes.get("passed")), run.output
