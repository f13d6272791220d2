"""The snapshot that the guide shows."""

from __future__ import annotations

from io import BytesIO

from blocks import ROOT, blocks

from emulator.control.snapshots.codec import read_header, read_records


def test_the_snapshot_of_the_guide_is_valid() -> None:
    (shown,) = (each for each in blocks(ROOT / "docs" / "guide" / "snapshots.md") if each.info == "json")
    file = BytesIO(shown.text.encode())

    header = read_header(file)

    assert sum(map(len, read_records(file))) == sum(header.counts.values())
