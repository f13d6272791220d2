"""All features: the endpoints, socket actions and feeds of each, and the part of a `Service` that handles them. And all
kinds of records that features keep, from which lists, waits, snapshots and the dashboard follow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any, NamedTuple

from emulator.auth import signing_key
from emulator.control import calls, contents, explanations, faults, operation, parity, sdk_scripts, seeds, sockets, undo
from emulator.control.journal import service as journal
from emulator.control.snapshots import service as snapshots
from emulator.control.waits import service as waits
from emulator.core.environment import Environment
from emulator.core.errors import BadRequest
from emulator.dashboard import http as dashboard_http
from emulator.features import accumulation, id_quota, identity, ranking
from emulator.features.broadcast import endpoints as broadcast
from emulator.features.codes.service import CODES, CodeSets
from emulator.features.datastream import Datastream
from emulator.features.kinds import Kind, Measure
from emulator.features.pins import service as pins
from emulator.features.pins.links import LINKS, PINS
from emulator.features.stores import endpoints as stores
from emulator.features.stores import json_stores
from emulator.features.stores import service as stores_service
from emulator.features.transactions import PURCHASES, Transactions
from emulator.features.trivia.service import TRIVIA, Trivia
from emulator.features.votes.results import POLLS
from emulator.features.votes.service import Polls
from emulator.http import openapi
from emulator.http.endpoint import Endpoint, EndpointTable, endpoints_in
from emulator.namespaces import routing as namespaces
from emulator.realtime.action import Declaration
from emulator.storage.kinds import Stored
from emulator.storage.records import Record, type_name


class Feature(NamedTuple):
    """The endpoints, socket actions and feeds of one feature."""

    service: Callable[[Any], Any]
    """Takes an `app.Service` and returns the part of it that handles them."""
    endpoints: tuple[Endpoint, ...] = ()
    actions: tuple[Declaration, ...] = ()
    feeds: tuple[Declaration, ...] = ()
    kinds: tuple[Kind, ...] = ()
    """The kinds of records that it keeps."""
    is_offered: Callable[[Environment], bool] = lambda environment: True


def _control_feature(service: Callable[[Any], Any], endpoints: tuple[Endpoint, ...]) -> Feature:
    """Return a feature of the control API."""
    return Feature(service, endpoints, is_offered=attrgetter("has_control"))


class Features:
    """A list of features, and what follows from it. All services of a process share it."""

    def __init__(self, *features: Feature) -> None:
        self.declared = features
        """Those that are given, without the ones that follow from their kinds."""
        self.kinds = tuple(kind for feature in features for kind in feature.kinds)
        self._features = (
            *features,
            _control_feature(attrgetter("contents"), contents.endpoints_of(self.kinds)),
            _control_feature(attrgetter("waits"), waits.endpoints_of(self.kinds)),
        )
        self._tables: dict[Environment, EndpointTable] = {}
        records = [each for kind in self.kinds for each in kind.records]
        others = (*identity.STORED, *id_quota.STORED, *signing_key.STORED)
        self._checks = {(each.type, each.kind): each for each in (*records, *others)}

    def __iter__(self) -> Iterator[Feature]:
        return iter(self._features)

    def wait_measures(self, service: object) -> dict[str, Measure]:
        """Return what measures each stored subject of waits, of an `app.Service`."""
        return {
            kind.waits_for.name: feature.service(service).measure
            for feature in self.declared
            for kind in feature.kinds
            if kind.waits_for and kind.waits_for.is_stored
        }

    def offered_features(self, environment: Environment) -> Sequence[Feature]:
        return [feature for feature in self if feature.is_offered(environment)]

    def endpoint_table(self, environment: Environment) -> EndpointTable:
        """Return the endpoints that an environment offers."""
        if environment not in self._tables:
            endpoints = {
                (each.method, each.path): replace(each, part=feature.service)
                for feature in self.offered_features(environment)
                for each in feature.endpoints
            }
            every = {(each.method, each.path) for feature in self for each in feature.endpoints}
            self._tables[environment] = EndpointTable(endpoints, every - endpoints.keys())
        return self._tables[environment]

    def check(self, record: Record) -> None:
        """Raise `ValueError` for a record that its feature could not read or would not have written.

        The message names the record, the field, the value and the limit.
        """
        kind = record[0].kind
        shape, family = type(record), f"{kind.partition('/')[0]}/"
        found = self._checks.get((shape, kind)) or self._checks.get((shape, family))
        if found is None:
            known = ", ".join(sorted(each for of, each in self._checks if of is shape))
            raise ValueError(f"{kind[:64]}: unknown kind of {type_name(shape)}; known kinds: {known}")
        try:
            found.check(record)
        except (BadRequest, ValueError) as error:
            problem = "; ".join(error.details) if isinstance(error, BadRequest) else str(error)
            raise ValueError(f"{_record_name(record, found)}: {problem}") from None


def _record_name(record: Record, stored: Stored) -> str:
    """Return a record's kind, name and channel as a text for error messages."""
    kind, _, name, channel, _ = record[0]
    shown = "" if stored.has_secret_name else name
    return " ".join(each for each in (kind, shown, f"in channel {channel}" if channel else "") if each)


FEATURES = Features(
    Feature(
        attrgetter("polls"),
        endpoints_in(Polls),
        (Polls.create_poll, Polls.read_results, Polls.reconfigure_poll, Polls.delete_poll),
        (Polls.poll_topic,),
        kinds=(POLLS,),
    ),
    Feature(attrgetter("rankings"), endpoints_in(ranking.Rankings), kinds=(ranking.RANKINGS,)),
    Feature(attrgetter("buffers"), endpoints_in(accumulation.Buffers), kinds=(accumulation.BUFFERS,)),
    Feature(
        attrgetter("stores"), stores.endpoints, stores.actions, stores.feeds, kinds=(stores_service.STORE_RECORDS,)
    ),
    Feature(attrgetter("json_stores"), endpoints_in(json_stores.JsonStores), kinds=(json_stores.JSON_STORES,)),
    Feature(attrgetter("code_sets"), endpoints_in(CodeSets), kinds=(CODES,)),
    Feature(
        attrgetter("pins"),
        pins.endpoints,
        (pins.Pins.log_in,),
        (pins.Pins.authentication_feed,),
        kinds=(PINS, LINKS),
    ),
    _control_feature(attrgetter("pins"), pins.control),
    Feature(attrgetter("broadcasts"), broadcast.endpoints, broadcast.actions, broadcast.feeds),
    Feature(attrgetter("trivia"), endpoints_in(Trivia), kinds=(TRIVIA,)),
    Feature(
        attrgetter("transactions"),
        endpoints_in(Transactions),
        (Transactions.list_outstanding, Transactions.settle),
        (Transactions.transaction_topics,),
        kinds=(PURCHASES,),
    ),
    Feature(attrgetter("datastream"), endpoints_in(Datastream), feeds=(Datastream.datastream_topics,)),
    Feature(attrgetter("identities"), identity.sandbox_calls, is_offered=lambda environment: not environment.is_strict),
    Feature(attrgetter("identities"), identity.endpoints),
    Feature(attrgetter("control"), operation.health_endpoints),
    Feature(attrgetter("metrics"), operation.metrics_endpoints),
    Feature(attrgetter("dispatcher"), openapi.endpoints),
    _control_feature(attrgetter("control"), operation.endpoints),
    _control_feature(attrgetter("undo"), endpoints_in(undo.Undo)),
    _control_feature(attrgetter("seeds"), endpoints_in(seeds.Seeds)),
    _control_feature(attrgetter("calls"), endpoints_in(calls)),
    _control_feature(attrgetter("connections"), endpoints_in(sockets.Sockets)),
    _control_feature(attrgetter("faults"), endpoints_in(faults.FaultPlan)),
    _control_feature(attrgetter("journals"), endpoints_in(journal.Journals)),
    _control_feature(attrgetter("parity"), endpoints_in(parity)),
    _control_feature(attrgetter("journal"), endpoints_in(explanations)),
    _control_feature(attrgetter("snapshots"), endpoints_in(snapshots)),
    _control_feature(attrgetter("namespaces"), endpoints_in(namespaces)),
    _control_feature(lambda service: service, (*endpoints_in(dashboard_http), *dashboard_http.redirects)),
    _control_feature(lambda service: None, endpoints_in(sdk_scripts)),
)
"""All features. OpenAPI document, dispatcher and gateway are built from this list."""
