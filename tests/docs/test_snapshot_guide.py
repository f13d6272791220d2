"""The snapshot that the guide shows."""

from __future__ import annotations

from blocks import ROOT, blocks

from emulator.control.snapshots.codec import SnapshotReader


def test_the_snapshot_of_the_guide_is_valid() -> None:
    (shown,) = (each for each in blocks(ROOT / "docs" / "guide" / "snapshots.md") if each.info == "json")
    reader = SnapshotReader()

    records = reader.feed(shown.text.encode())

    assert len(records) == sum(reader.finish().counts.values())
