"""The contract of all engines: tests that do not depend on which engine they run on.

The test module of an engine subclasses `EngineContract` and provides the fixture `open`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from emulator.engines.engine import Engine
from engines.contract_ballots import BallotsContract, TallyContract
from engines.contract_catalog import CatalogContract
from engines.contract_documents import DocumentsContract
from engines.contract_draws import DrawsContract
from engines.contract_dump import DumpContract, DumpPropertyContract
from engines.contract_engine import NamespacesContract
from engines.contract_entries import EntriesContract, NotesContract
from engines.contract_holdings import HoldingsContract, SpentItemsContract
from engines.contract_load import AsideContract, LoadContract
from engines.contract_logs import ListingContract, LogsContract
from engines.contract_pools import AssignmentsContract, PoolsContract
from engines.contract_property import PoolsPropertyContract, PropertyContract
from engines.contract_purge import ExpiryContract, PurgeContract
from engines.contract_relay import RelayContract
from engines.contract_rosters import RostersContract
from engines.contract_terms import TermsContract
from engines.schedules import AcknowledgedContract
from engines.shorthand import Open


class EngineContract(
    DocumentsContract,
    BallotsContract,
    TermsContract,
    TallyContract,
    EntriesContract,
    NotesContract,
    LogsContract,
    ListingContract,
    CatalogContract,
    PoolsContract,
    AssignmentsContract,
    HoldingsContract,
    DrawsContract,
    RostersContract,
    PurgeContract,
    NamespacesContract,
    RelayContract,
    PropertyContract,
    PoolsPropertyContract,
    SpentItemsContract,
    DumpContract,
    LoadContract,
    AsideContract,
    DumpPropertyContract,
    AcknowledgedContract,
    ExpiryContract,
):
    @pytest.fixture
    def open(self) -> Open:
        """Returns `open(namespace=…)`, whose closed engines all use the data of one test."""
        raise NotImplementedError("each engine's test class provides this")

    @pytest.fixture
    async def engine(self, open: Open) -> AsyncIterator[Engine]:
        async with open(namespace="main") as engine:
            yield engine
