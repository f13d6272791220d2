"""The only place that wires. Read this first.

A `Service` is one running service: its data, clock, tokens, features and endpoints. Nothing in this package keeps
state anywhere else, so several can live in one process. The Litestar routes are the same for all of them and are
built once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from importlib.metadata import version
from itertools import chain
from typing import Any, Final

from litestar import Litestar

from emulator.auth.signing_key import ServiceKey
from emulator.auth.tokens import Tokens
from emulator.callers import Caller
from emulator.clock import Clock
from emulator.config.extensions import Extensions
from emulator.config.settings import Settings
from emulator.engines import open_engine
from emulator.engines.engine import Engine
from emulator.errors import EngineError
from emulator.features.accumulation.http import endpoints as accumulation_endpoints
from emulator.features.accumulation.service import Buffers
from emulator.features.broadcast.actions import actions as broadcast_actions
from emulator.features.broadcast.actions import event_topics
from emulator.features.broadcast.actions import feeds as broadcast_feeds
from emulator.features.broadcast.http import endpoints as broadcast_endpoints
from emulator.features.broadcast.service import Broadcasts
from emulator.features.codes.http import endpoints as code_endpoints
from emulator.features.codes.service import CodeSets
from emulator.features.control.gate import ControlGate
from emulator.features.control.http import controlling, metrics, watching
from emulator.features.control.metrics import Metrics
from emulator.features.control.service import Control
from emulator.features.datastream.actions import feeds as datastream_feeds
from emulator.features.datastream.http import endpoints as datastream_endpoints
from emulator.features.datastream.service import Datastream
from emulator.features.identity.http import authtoken
from emulator.features.identity.http import endpoints as identity_endpoints
from emulator.features.identity.service import Identities
from emulator.features.pins.actions import actions as pin_actions
from emulator.features.pins.actions import feeds as pin_feeds
from emulator.features.pins.http import endpoints as pin_endpoints
from emulator.features.pins.service import Pins
from emulator.features.ranking.http import endpoints as ranking_endpoints
from emulator.features.ranking.service import Rankings
from emulator.features.sdk_scripts.http import endpoints as page_endpoints
from emulator.features.sdk_scripts.service import Scripts
from emulator.features.stores.actions import actions as store_actions
from emulator.features.stores.actions import feeds as store_feeds
from emulator.features.stores.http import endpoints as store_endpoints
from emulator.features.stores.http import json_store_endpoints
from emulator.features.stores.service import JsonStores, Stores
from emulator.features.transactions.actions import actions as transaction_actions
from emulator.features.transactions.actions import feeds as transaction_feeds
from emulator.features.transactions.http import endpoints as transaction_endpoints
from emulator.features.transactions.service import Transactions
from emulator.features.trivia.http import endpoints as trivia_endpoints
from emulator.features.trivia.service import Trivia
from emulator.features.votes.actions import actions as poll_actions
from emulator.features.votes.actions import feeds as poll_feeds
from emulator.features.votes.http import endpoints as poll_endpoints
from emulator.features.votes.service import Polls
from emulator.limits.id_quota import Room
from emulator.limits.rate_limit import Rates
from emulator.namespaces import Namespaces
from emulator.realtime.gateway import Sockets
from emulator.realtime.hub import Hub
from emulator.realtime.publisher import Updates
from emulator.scheduling.scheduler import Alarms
from emulator.web.dispatch import Dispatcher
from emulator.web.endpoint import Bound, Endpoint
from emulator.web.front import HOT, Front
from emulator.web.routes import build_routes

ENDPOINTS: Final[tuple[Endpoint[Any], ...]] = (
    *poll_endpoints,
    *ranking_endpoints,
    *accumulation_endpoints,
    *store_endpoints,
    *json_store_endpoints,
    *pin_endpoints,
    *broadcast_endpoints,
    *code_endpoints,
    *transaction_endpoints,
    *datastream_endpoints,
    *trivia_endpoints,
    authtoken,
    *identity_endpoints,
    *watching,
    metrics,
    *controlling,
    *page_endpoints,
)
"""Every endpoint there is; an environment may leave some out."""

_SWEEP_EVERY = 60.0
_log = logging.getLogger("emulator")


def create_routes() -> Litestar:
    """The routes, shared by all services of a process."""
    return build_routes(ENDPOINTS)


class Service:
    """One running service."""

    def __init__(
        self, settings: Settings, extensions: Extensions, engine: Engine, clock: Clock, key: ServiceKey
    ) -> None:
        self.settings = settings
        self.extensions = extensions
        self.engine = engine
        self.clock = clock
        self.alarms = Alarms(clock)
        self.hub = Hub()
        self.updates = Updates(engine.relay, self.hub, clock)
        self.tokens = Tokens(settings, extensions, clock, key)
        self.pins = Pins(engine.documents, clock, self.tokens, settings, extensions, self.updates, key, self._caller)
        self.identities = Identities(engine.documents, clock, self.tokens, extensions, self.pins.linked)
        self.stores = Stores(engine.documents, clock, settings, self.updates)
        room = Room(engine.documents, clock, settings.limits.ids)
        self.polls = Polls(engine.ballots, clock, room, self.updates, self.alarms, self.stores)
        self.rankings = Rankings(engine.ballots, clock, room)
        self.buffers = Buffers(engine.logs, clock, room)
        self.broadcasts = Broadcasts(self.updates, settings.environment)
        self.code_sets = CodeSets(engine.pools, engine.rosters, engine.documents, clock, self.polls)
        self.transactions = Transactions(engine.documents, clock, self.tokens, self.updates)
        self.datastream = Datastream(clock, self.updates)
        self.trivia = Trivia(engine.documents, clock, settings.environment)
        self.json_stores = JsonStores(engine.documents, clock, room)
        self.scripts = Scripts()
        self.metrics = Metrics(settings.environment.name, version("extcli"), open_sockets=lambda: self.sockets.size)
        self.control = Control(engine, key, clock, settings, version("extcli"), self.metrics)
        rates = Rates(clock, per_caller=settings.caller_rate, per_client=settings.client_rate)
        for forget in (rates.forget, room.forget, self.tokens.forget, self.alarms.forget, self.polls.updates.forget):
            self.control.on_reset(forget)
        for moved in (self.alarms.clock_moved, self.polls.updates.clock_moved):
            self.control.on_move(moved)
        self.dispatcher = Dispatcher(
            self._bound(),
            known_caller=self.tokens.known_caller,
            caller=self.identities.caller,
            check_registered=self.tokens.check_registered,
            control_gate=ControlGate(settings.control_hosts),
            limits=settings.limits,
            rates=rates,
            watcher=self.metrics,
        )
        self.sockets = Sockets(
            chain(
                (each.bind(self.pins) for each in pin_actions),
                (each.bind(self.stores) for each in store_actions),
                (each.bind(self.polls) for each in poll_actions),
                (each.bind(self.broadcasts) for each in broadcast_actions),
                (each.bind(self.transactions) for each in transaction_actions),
            ),
            chain(
                (each.bind(self.pins) for each in pin_feeds),
                (each.bind(self.stores) for each in store_feeds),
                (each.bind(self.polls) for each in poll_feeds),
                (each.bind(self.broadcasts) for each in broadcast_feeds),
                (each.bind(self.transactions) for each in transaction_feeds),
                (each.bind(self.datastream) for each in datastream_feeds),
            ),
            event_topics.bind(self.broadcasts),
            hub=self.hub,
            clock=clock,
            limits=settings.limits,
            rates=rates,
            watcher=self.metrics,
            logs_requests=settings.logs.requests,
        )

    async def reset(self) -> None:
        """Forget all data, and run the clock with the machine's."""
        await self.control.reset()

    async def close(self) -> None:
        """Let nothing more happen by itself, and what is happening come to its end."""
        await self.polls.updates.close()
        await self.alarms.close()

    async def _caller(self, header: str) -> Caller:
        return self.tokens.known_caller(header) or await self.identities.caller(header)

    def _bound(self) -> list[Bound]:
        environment = self.settings.environment
        return list(
            chain(
                (each.bind(self.polls) for each in poll_endpoints),
                (each.bind(self.rankings) for each in ranking_endpoints),
                (each.bind(self.buffers) for each in accumulation_endpoints),
                (each.bind(self.stores) for each in store_endpoints),
                (each.bind(self.json_stores) for each in json_store_endpoints),
                (each.bind(self.pins) for each in pin_endpoints),
                (each.bind(self.broadcasts) for each in broadcast_endpoints),
                (each.bind(self.code_sets) for each in code_endpoints),
                (each.bind(self.transactions) for each in transaction_endpoints),
                (each.bind(self.datastream) for each in datastream_endpoints),
                (each.bind(self.trivia) for each in trivia_endpoints),
                [authtoken.bind(self.identities)] if environment.issues_sandbox_tokens else [],
                (each.bind(self.identities) for each in identity_endpoints),
                (each.bind(self.control) for each in watching),
                [metrics.bind(self.metrics)],
                (each.bind(self.control) for each in controlling) if environment.has_control else [],
                (each.bind(self.scripts) for each in page_endpoints) if environment.issues_sandbox_tokens else [],
            )
        )


@asynccontextmanager
async def open_app(
    settings: Settings, clock: Clock | None = None, *, hot: frozenset[tuple[str, str]] = HOT
) -> AsyncIterator[tuple[Front | Namespaces, Service]]:
    """The application for a port, and the service of its plain paths; closed when the context ends.

    In sandbox more services come to stand beside it, as namespaces. `clock` is that of the plain paths.
    """
    routes = create_routes()
    extensions = Extensions(settings.extensions, admits_any=settings.admits_any_client)

    @asynccontextmanager
    async def open_front(namespace: str) -> AsyncIterator[Front]:
        async with open_service(settings, extensions, namespace=namespace) as service:
            yield Front(routes, service, hot=hot)

    async with open_service(settings, extensions, clock) as service:
        front = Front(routes, service, hot=hot)
        if not settings.environment.has_control:
            yield front, service
            return
        gate = ControlGate(settings.control_hosts)
        namespaces = Namespaces(front, open_front, gate, settings.limits.namespaces)
        try:
            yield namespaces, service
        finally:
            await namespaces.close()


@asynccontextmanager
async def open_service(
    settings: Settings, extensions: Extensions, clock: Clock | None = None, *, namespace: str = ""
) -> AsyncIterator[Service]:
    """A service on its opened engine, with housekeeping; closed when the context ends. Raises `EngineError`."""
    clock = clock or Clock()
    name = f"{settings.environment.name}/{namespace}" if namespace else settings.environment.name
    async with open_engine(settings.data, namespace=name) as engine:
        key = ServiceKey(engine.documents, clock)
        await key.agree()
        service = Service(settings, extensions, engine, clock, key)
        background = [
            asyncio.create_task(_sweep(service.control, service.metrics)),
            asyncio.create_task(service.sockets.keep_alive()),
            asyncio.create_task(service.metrics.outages.watch(service.control.check)),
        ]
        try:
            yield service
        finally:
            for task in background:
                task.cancel()
            for task in background:
                with suppress(asyncio.CancelledError):
                    await task
            await service.close()


async def _sweep(control: Control, metrics: Metrics) -> None:
    while True:
        await asyncio.sleep(_SWEEP_EVERY)
        try:
            await control.sweep()
            metrics.storage(answers=True)
        except EngineError as error:
            metrics.storage(answers=False)
            _log.warning("housekeeping failed and will be tried again: %s", error)
