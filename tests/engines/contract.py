"""What every engine promises, as tests that never ask which engine they have.

An engine's test module subclasses `EngineContract` and supplies the fixture `open`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from emulator.engines.engine import Engine
from engines.contract_ballots import BallotsContract
from engines.contract_documents import DocumentsContract
from engines.contract_engine import NamespacesContract
from engines.contract_entries import EntriesContract
from engines.contract_holdings import HoldingsContract
from engines.contract_logs import LogsContract
from engines.contract_pools import PoolsContract, SuppliesContract
from engines.contract_pools_property import PoolsPropertyContract
from engines.contract_property import PropertyContract
from engines.contract_purge import PurgeContract
from engines.contract_relay import RelayContract
from engines.contract_rosters import RostersContract
from engines.contract_tally import TallyContract
from engines.contract_terms import TermsContract
from engines.shorthand import Open


class EngineContract(
    DocumentsContract,
    BallotsContract,
    TermsContract,
    TallyContract,
    EntriesContract,
    LogsContract,
    PoolsContract,
    SuppliesContract,
    HoldingsContract,
    RostersContract,
    PurgeContract,
    NamespacesContract,
    RelayContract,
    PropertyContract,
    PoolsPropertyContract,
):
    @pytest.fixture
    def open(self) -> Open:
        """Gives closed engines by `open(namespace=…)`, all of them on the data of one test."""
        raise NotImplementedError("an engine's test class supplies this")

    @pytest.fixture
    async def engine(self, open: Open) -> AsyncIterator[Engine]:
        async with open(namespace="main") as engine:
            yield engine
