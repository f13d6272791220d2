"""Seeds: files that describe the data with which a test begins."""

from extcli.seeds.errors import InvalidSeed
from extcli.seeds.reader import Seed, read

__all__ = ["InvalidSeed", "Seed", "read"]
