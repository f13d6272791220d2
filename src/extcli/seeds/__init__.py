"""Seeds: files that describe the data with which a test begins."""

from extcli.seeds.reader import Seed, read
from extcli.tables import InvalidFile

__all__ = ["InvalidFile", "Seed", "read"]
