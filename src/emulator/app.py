"""The composition root: builds a service from its parts. Start reading here.

A `Service` holds all state of one service: data, clock, tokens, features and endpoints. Several can run in one process,
and share the Litestar routes.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from importlib.metadata import version
from typing import cast
from weakref import proxy

from uvicorn.server import ServerState

from emulator.auth.signing_key import SigningKey
from emulator.auth.tokens import Tokens
from emulator.control.calls import Calls
from emulator.control.contents import Contents, name_readers
from emulator.control.demo import Crowd, Demo
from emulator.control.faults import FaultPlan, MatchTargets
from emulator.control.gate import ControlGate
from emulator.control.journal.service import Journals
from emulator.control.operation import RESET, Control
from emulator.control.seeds import Seeds
from emulator.control.snapshots.service import Snapshots
from emulator.control.sockets import Sockets
from emulator.control.undo import Undo
from emulator.control.waits.rules import subjects_of
from emulator.control.waits.service import Waits
from emulator.core.bounded_cache import BoundedCache
from emulator.core.changes import Changes
from emulator.core.clock import Clock
from emulator.core.extensions import Extension, Extensions
from emulator.core.hints import Hints
from emulator.core.ids import NewId, token_id
from emulator.core.journal import NO_JOURNAL, Journal, JournalBudget
from emulator.core.limits import RateLimits
from emulator.core.observability.audit import audit
from emulator.core.observability.metrics import Metrics
from emulator.core.observability.request_context import DEFAULT_NAMESPACE, log_name
from emulator.core.parity import ComparedRateLimits, ExpiredEarly, Parity, VerdictTally
from emulator.core.scheduler import Scheduler
from emulator.core.settings import Settings
from emulator.feature_list import Features
from emulator.features.accumulation import Buffers
from emulator.features.broadcast import endpoints as broadcast_actions
from emulator.features.broadcast.service import Broadcasts, PageEvents
from emulator.features.codes.service import CodeSets
from emulator.features.datastream import Datastream
from emulator.features.directory import Directory
from emulator.features.id_quota import IdQuota
from emulator.features.identity import Identities
from emulator.features.pins.rules import LINKS_ENDED
from emulator.features.pins.service import Pins
from emulator.features.ranking import Rankings
from emulator.features.stores.json_stores import JsonStores
from emulator.features.stores.rules import STORES
from emulator.features.stores.service import PUBLISHED_KINDS, Stores, publish_store
from emulator.features.transactions import Transactions
from emulator.features.trivia.rules import CONTEST, VOTER
from emulator.features.trivia.service import Trivia
from emulator.features.votes.results import PollReader, PollUpdates
from emulator.features.votes.service import Polls
from emulator.http.access import Access
from emulator.http.dispatch import Dispatcher
from emulator.http.long_requests import Uploads
from emulator.namespaces.registry import Registry
from emulator.namespaces.service_app import ServiceApp
from emulator.realtime.dispatch import MessageDispatcher
from emulator.realtime.faulty_messages import FaultyBroadcasts
from emulator.realtime.gateway import Gateway
from emulator.realtime.hub import Hub
from emulator.realtime.publisher import Publisher
from emulator.realtime.web_page_connection import PusherAccess
from emulator.realtime.websocket import WebSocket
from emulator.storage.engine import Engine
from emulator.storage.opening import open_engine

_log = logging.getLogger("emulator")
_VERSION = version("extcli")


class SharedParts:
    """What all services (namespaces) of a process share."""

    def __init__(self, settings: Settings, extensions: Extensions, features: Features) -> None:
        self.settings = settings
        self.extensions = extensions
        self.features = features
        self.journals = JournalBudget(settings.journal)
        self.uploads = Uploads(settings.limits.uploads, extensions if settings.environment.is_strict else None)
        self.verdicts = VerdictTally()
        """Counts what production would do differently."""
        self.namespaces: Registry | None = None
        """All namespaces of the process; `None` in production."""


class Service(ServiceApp):
    """One running service."""

    def __init__(
        self, shared: SharedParts, engine: Engine, clock: Clock, new_id: NewId = token_id, name: str = DEFAULT_NAMESPACE
    ) -> None:
        """`name` is the namespace's."""
        self.shared = shared
        self.settings = shared.settings
        self.extensions = shared.extensions
        self.engine = engine
        self.clock = clock
        self.key = SigningKey(engine.documents, clock)
        self.name = name
        self._new_id = new_id
        self._me = cast(Service, proxy(self))
        """This service, for its parts: so they form no circle, and are freed as soon as it is."""
        self._build_foundation()
        self._build_features()
        self._build_control()
        self._build_entry_points()
        self._subscribe_to_control()

    @property
    def namespaces(self) -> Registry | None:
        return self.shared.namespaces

    @property
    def prefix(self) -> str:
        """What all paths of this service begin with, as its clients see them."""
        label = log_name(self.name)
        return self.settings.root_path + (f"/_ns/{label}" if label else "")

    def _build_foundation(self) -> None:
        """The parts that all features use: recorded changes, verdicts, messages, faults, tokens, ids and limits."""
        settings, clock, shared, me = self.settings, self.clock, self.shared, self._me
        has_control = settings.environment.has_control
        self.scheduler = Scheduler(clock)
        self.changes = Changes(clock.now if has_control else None)
        self.journal = Journal(shared.journals, clock) if has_control else NO_JOURNAL
        self.parity = Parity(
            clock,
            shared.features.endpoint_table(settings.production).absent,
            _shorter_lifetimes(settings),
            shared.verdicts,
            is_on=has_control,
        )
        self.hub = Hub(self.changes, self.journal)
        self.hints = Hints(
            name_readers(lambda key: me.contents.names_in_use(key), self.hub, self.changes),
            lambda: me.extensions.current,
            is_on=has_control,
        )
        self.publisher = Publisher(self.engine.relay, self.hub, clock)
        self.faults = FaultPlan(
            clock,
            lambda: MatchTargets(me.dispatcher.table.open_endpoints, me.messages.action_names),
            is_alone=self.publisher.is_single_node,
        )
        self.late = FaultyBroadcasts(self.faults)
        self.tokens = Tokens(settings, self.extensions, clock, self.key)
        self._directory = Directory(self.engine.documents, clock)
        self._id_quota = IdQuota(self.engine.documents, clock, settings.limits.ids)
        self._rate_limits = _rate_limits(settings, clock)

    def _build_features(self) -> None:
        """The features of the specification."""
        settings, clock, engine, changes = self.settings, self.clock, self.engine, self.changes
        directory, id_quota = self._directory, self._id_quota
        pages = PageEvents(self.publisher, settings.environment, self.extensions, settings.page_events)
        self.pins = Pins(
            engine.documents,
            clock,
            self.tokens,
            settings,
            self.extensions,
            self.publisher,
            self.key,
            changes,
            engine.catalog,
            self._new_id,
        )
        self.identities = Identities(directory, clock, self.tokens, self.extensions)
        self.stores = Stores(engine.documents, clock, settings, directory, changes)
        self.poll_updates = PollUpdates(PollReader(engine.ballots, clock), self.publisher, pages, self.scheduler, clock)
        self.polls = Polls(engine.ballots, clock, id_quota, self.stores, directory, self.poll_updates, changes)
        changes.listen(["poll"], self.poll_updates.handle_change)
        changes.listen(PUBLISHED_KINDS, partial(publish_store, self.publisher, pages))
        self.rankings = Rankings(engine.ballots, clock, id_quota, changes)
        self.buffers = Buffers(engine.logs, clock, id_quota, changes)
        self.broadcasts = Broadcasts(self.publisher, directory, settings.environment, self.changes, self.late)
        self.code_sets = CodeSets(engine.pools, engine.rosters, clock, self.polls, directory, self._new_id)
        self.transactions = Transactions(
            engine.documents, clock, self.tokens, self.publisher, settings.environment, directory, changes
        )
        self.datastream = Datastream(clock, self.publisher, settings)
        self.trivia = Trivia(engine.documents, clock, settings.environment, changes)
        self.json_stores = JsonStores(engine.documents, clock, id_quota, changes)

    def _build_control(self) -> None:
        """The features of the control API, by which tests and tools read and steer the service."""
        settings, clock, engine, shared, me = self.settings, self.clock, self.engine, self.shared, self._me
        self.metrics = Metrics(
            settings.environment.name,
            _VERSION,
            sockets=lambda: len(me.gateway.admission),
            unauthenticated=lambda: me.gateway.admission.unauthenticated,
            held=lambda: len(me.dispatcher.held),
        )
        self.control = Control(engine, self.key, clock, settings, _VERSION, self.metrics)
        self.undo = Undo(self.control, engine, clock, self.changes)
        self.snapshots = Snapshots(engine, self.key, clock, settings, _VERSION, self.control, shared.features.check)
        self.seeds = Seeds(clock, partial(Service._open_scratch, me), self.control, self.faults)
        kinds = shared.features.kinds
        self.contents = Contents(engine, clock, kinds, settings.environment.state_lifetime)
        self.connections = Sockets(self.hub, self.changes, lambda: me.gateway.admission)
        self.waits = Waits(
            self.changes,
            subjects_of(kinds),
            shared.features.wait_measures(self),
            self.connections,
            self.journal,
            is_alone=self.publisher.is_single_node,
        )
        self.journals = Journals(self.journal, self.name)
        self.activities = BoundedCache[tuple[tuple[str, str], ...], object](8)
        """What pages of the dashboard have counted of the journal, by the filters of each."""
        self.calls = Calls(self.tokens, lambda: me.dispatcher)
        accept = partial(WebSocket, me, settings.limits, server_state=ServerState(), config=None, app_state=None)
        self.demo = Demo(lambda: me.control.reset(), Crowd(me, self.name, self.tokens, accept))

    def _build_entry_points(self) -> None:
        """The entry points of requests and sockets: they check the caller and call the enabled features."""
        settings, features = self.settings, self.shared.features
        offered = features.offered_features(settings.environment)
        access = Access(
            cached_caller=self.tokens.cached_caller,
            authenticate=self.pins.authenticate,
            is_admitted=self.tokens.is_admitted,
            check_registered=self.tokens.check_registered,
            control_gate=(gate := ControlGate(settings.control_hosts, settings.control_token)),
            page_gate=gate.check_dashboard,
            rate_limits=self._rate_limits,
        )
        self.dispatcher: Dispatcher = Dispatcher(
            features.endpoint_table(settings.environment),
            self._me,
            access=access,
            identify=self._directory.identify,
            limits=settings.limits,
            recorder=self.metrics,
            changes=self.changes,
            parity=self.parity,
            journal=self.journal,
            faults=self.faults,
            hints=self.hints,
            uploads=self.shared.uploads,
        )
        self.messages = MessageDispatcher(
            (action.bind(feature.service(self)) for feature in offered for action in feature.actions),
            (feed.bind(feature.service(self)) for feature in offered for feed in feature.feeds),
            broadcast_actions.event_topics.bind(self.broadcasts),
            identify=self._directory.identify,
            hub=self.hub,
            clock=self.clock,
            limits=settings.limits,
            rate_limits=self._rate_limits,
            parity=self.parity,
            hints=self.hints,
            recorder=self.metrics,
            faults=self.faults,
            log_requests=settings.logs.requests,
            namespace=log_name(self.name),
        )
        self.gateway: Gateway = Gateway(
            messages=self.messages,
            anonymous=settings.anonymous,
            pages=PusherAccess(
                access.verified_caller,
                not settings.environment.is_strict,
                self.clock,
                self.scheduler,
                settings.leeway,
                self.metrics,
            ),
        )

    def _subscribe_to_control(self) -> None:
        """The callbacks for changed data, a wipe, a reset, a load, expired data and a move of the clock."""
        control, updates = self.control, self.poll_updates
        control.on_change += [
            self._id_quota.clear,
            self.buffers.added.clear,
            self._directory.forget,
            self.tokens.forget,
            self.scheduler.clear,
            self.gateway.watch_page_tokens,
            updates.forget,
            self.changes.wake,
        ]
        control.on_wipe += [self.parity.lapses.clear, self.faults.clear]
        control.on_reset += [
            self._rate_limits.clear,
            self.pins.attempt_limit.clear,
            self.changes.forget,
            self.journal.clear,
            self.connections.release_all,
            self.parity.tally.clear,
            self.hints.clients.clear,
            self.demo.stop,
        ]
        control.on_load.append(updates.handle_reload)
        control.on_expiry.append(self.parity.lapses.add_expired)
        control.on_move += [
            self._directory.clock_moved,
            self.scheduler.clock_moved,
            updates.clock_moved,
            self.faults.clock_moved,
            self.gateway.admission.close_unauthenticated,
            self.changes.clock_moved,
        ]
        self.publisher.on_message(RESET, lambda *_: self._drop_cached_state())
        self.publisher.on_message(LINKS_ENDED, lambda key, _: self.gateway.recheck_pages(key))

    def replace_extensions(self, current: Mapping[str, Extension]) -> None:
        """Replace the extensions of all namespaces, and close the sockets whose secret or link this ends."""
        before = self.extensions.current
        self.extensions.current = current
        for client_id in before.keys() - current.keys():
            audit("extension removed", extension=client_id)
        for client_id, extension in current.items():
            known = before.get(client_id)
            if known != extension:
                audit("extension changed", extension=client_id, secrets=len(extension.secrets))
            if known is not None and known.tokens_not_before != extension.tokens_not_before:
                audit("tokens revoked", extension=client_id)
        services = [self] if self.namespaces is None else self.namespaces.open_services
        if count := sum(each.expel_ended() for each in services):
            _log.info("closed %s sockets whose secret was retired or whose link has ended", count)

    async def close(self) -> None:
        """Cancel scheduled work, and wait for running callbacks."""
        await self.demo.close()
        self.faults.clear()
        self.journal.clear()
        for scheduled in (self.late, self.undo, self.poll_updates, self.scheduler):
            await scheduled.close()
        for part in (self.publisher, self.key, self.changes):
            part.close()

    @asynccontextmanager
    async def _open_scratch(self, clock: Clock, new_id: NewId) -> AsyncIterator[Service]:
        """Open an empty service in memory with the settings and the signing key of this one."""
        shared = SharedParts(self.settings, self.extensions, self.shared.features)
        async with open_engine("sqlite://", namespace="scratch") as engine:
            scratch = Service(shared, engine, clock, new_id, self.name)
            scratch.key.value = self.key.value
            try:
                yield scratch
            finally:
                await scratch.close()

    def _drop_cached_state(self) -> None:
        """Drop cached state, because all data may have been replaced: after a reset, for example, on any node."""
        self._directory.forget()
        self._id_quota.clear()
        self.changes.wake()
        if not self.publisher.is_single_node:
            self.scheduler.schedule(RESET, self.clock.now(), self._adopt_loaded_data)

    async def _adopt_loaded_data(self) -> None:
        """Use the key of data that another node has loaded, and send the results of its polls."""
        await self.key.sync()
        self.poll_updates.handle_reload()


def _shorter_lifetimes(settings: Settings) -> ExpiredEarly:
    """Return the kinds of data that expire earlier in the sandbox than in production."""
    here, there = settings.environment, settings.production
    if here.is_strict:
        return ExpiredEarly({})
    state, config = (here.state_lifetime, there.state_lifetime), (here.config_lifetime, there.config_lifetime)
    kinds = {store.name: config if store.is_config else state for store in STORES}
    return ExpiredEarly({**kinds, CONTEST: state, VOTER: state})


def _rate_limits(settings: Settings, clock: Clock) -> RateLimits:
    """Return the limits of a service. In the sandbox, they also compute production's verdict."""
    per_caller, per_client = settings.caller_rate, settings.limits.client_rate
    if settings.environment.is_strict:
        return RateLimits(clock, per_caller=per_caller, per_client=per_client)
    there = per_caller or settings.production.caller_rate
    return ComparedRateLimits(clock, per_caller=per_caller, per_client=per_client, production=there)
