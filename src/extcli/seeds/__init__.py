"""Seeds: files that describe the data with which a test begins."""

from extcli.seeds.reader import Seed, read
from extcli.tables.errors import InvalidFile

__all__ = ["InvalidFile", "Seed", "read"]
