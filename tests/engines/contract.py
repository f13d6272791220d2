"""The contract of all engines: tests that do not depend on which engine they run on.

The test module of an engine subclasses `EngineContract` and provides the fixture `open`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from emulator.storage.engine import Engine
from engines.contract_ballots import BallotsContract
from engines.contract_catalog import CatalogContract
from engines.contract_documents import DocumentsContract
from engines.contract_draws import DrawsContract
from engines.contract_dump import DumpContract
from engines.contract_engine import NamespacesContract
from engines.contract_entries import EntriesContract
from engines.contract_holdings import HoldingsContract
from engines.contract_load import LoadContract
from engines.contract_logs import LogsContract
from engines.contract_overtaken import OvertakenContract
from engines.contract_pools import PoolsContract
from engines.contract_purge import PurgeContract
from engines.contract_relay import RelayContract
from engines.contract_rosters import RostersContract
from engines.contract_terms import TermsContract
from engines.schedules import AcknowledgedContract
from engines.shorthand import Open


class EngineContract(
    DocumentsContract,
    BallotsContract,
    TermsContract,
    EntriesContract,
    LogsContract,
    CatalogContract,
    PoolsContract,
    HoldingsContract,
    DrawsContract,
    OvertakenContract,
    RostersContract,
    PurgeContract,
    NamespacesContract,
    RelayContract,
    DumpContract,
    LoadContract,
    AcknowledgedContract,
):
    @pytest.fixture
    def open(self) -> Open:
        """Returns `open(namespace=…)`, whose closed engines all use the data of one test."""
        raise NotImplementedError("each engine's test class provides this")

    @pytest.fixture
    async def engine(self, open: Open) -> AsyncIterator[Engine]:
        async with open(namespace="main") as engine:
            yield engine
