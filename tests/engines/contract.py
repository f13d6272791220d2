"""The contract of all engines: tests that do not depend on which engine they run on.

The test module of an engine subclasses `EngineContract` and provides the fixture `open`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from emulator.engines.engine import Engine
from engines.contract_acknowledged import AcknowledgedContract
from engines.contract_aside import AsideContract
from engines.contract_assignments import AssignmentsContract
from engines.contract_ballots import BallotsContract
from engines.contract_catalog import CatalogContract
from engines.contract_documents import DocumentsContract
from engines.contract_draws import DrawsContract
from engines.contract_dump import DumpContract
from engines.contract_dump_property import DumpPropertyContract
from engines.contract_engine import NamespacesContract
from engines.contract_entries import EntriesContract
from engines.contract_expiry import ExpiryContract
from engines.contract_holdings import HoldingsContract
from engines.contract_listing import ListingContract
from engines.contract_load import LoadContract
from engines.contract_logs import LogsContract
from engines.contract_notes import NotesContract
from engines.contract_pools import PoolsContract
from engines.contract_pools_property import PoolsPropertyContract
from engines.contract_property import PropertyContract
from engines.contract_purge import PurgeContract
from engines.contract_relay import RelayContract
from engines.contract_rosters import RostersContract
from engines.contract_spent_items import SpentItemsContract
from engines.contract_tally import TallyContract
from engines.contract_terms import TermsContract
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
