"""What the guides show is valid: the examples for pytest run, and the seeds and snapshots are read."""

from __future__ import annotations

import re
from io import BytesIO
from pathlib import Path

import pytest
from blocks import ROOT, blocks

from emulator.control.snapshots.codec import read_header, read_records
from extcli.seeds import reference
from support.plugin_runs import run_pytest

GUIDES = ROOT / "docs" / "guide"


@pytest.mark.slow
def test_the_examples_of_the_guide_to_pytest_pass(tmp_path: Path):
    shown = blocks(GUIDES / "pytest.md")
    examples = "\n\n".join(block.text for block in shown if block.info == "python")
    (seed,) = (block.text for block in shown if block.info == "toml")

    run = run_pytest(
        tmp_path, "-o", "asyncio_mode=auto", "-o", "asyncio_default_fixture_loop_scope=function",
        files={"test": examples, "lunch.toml": seed},
    )  # fmt: skip

    assert (0, examples.count("def test_")) == (run.exit_code, run.outcomes.get("passed")), run.output


def test_the_guide_to_seeds_lists_every_field_with_what_it_accepts():
    text = (GUIDES / "seeds.md").read_text()
    rows = re.findall(r"^\| `([^`]+)` \| (.*?) \| (.*?) \|$", text, re.MULTILINE)

    assert list(reference()) == rows


def test_the_snapshot_of_the_guide_is_valid() -> None:
    (shown,) = (each for each in blocks(GUIDES / "snapshots.md") if each.info == "json")
    file = BytesIO(shown.text.encode())

    header = read_header(file)

    assert sum(map(len, read_records(file))) == sum(header.counts.values())
