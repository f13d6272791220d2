"""All features: the endpoints, socket actions and feeds of each, and the part of a `Service` that handles them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, NamedTuple

from emulator.config.environment import Environment
from emulator.control.calls import http as calls_http
from emulator.control.contents import http as contents_http
from emulator.control.explanations import http as explanations_http
from emulator.control.faults import http as faults_http
from emulator.control.journal import http as journal_http
from emulator.control.operation import http as control_http
from emulator.control.parity import http as parity_http
from emulator.control.sdk_scripts import http as sdk_scripts_http
from emulator.control.seeds import http as seeds_http
from emulator.control.snapshots import http as snapshots_http
from emulator.control.sockets import http as sockets_http
from emulator.control.waits import http as waits_http
from emulator.dashboard import http as dashboard_http
from emulator.features.accumulation import http as accumulation_http
from emulator.features.broadcast import actions as broadcast_actions
from emulator.features.broadcast import http as broadcast_http
from emulator.features.codes import http as codes_http
from emulator.features.datastream import actions as datastream_actions
from emulator.features.datastream import http as datastream_http
from emulator.features.identity import http as identity_http
from emulator.features.pins import actions as pins_actions
from emulator.features.pins import http as pins_http
from emulator.features.ranking import http as ranking_http
from emulator.features.stores import actions as stores_actions
from emulator.features.stores import http as stores_http
from emulator.features.transactions import actions as transactions_actions
from emulator.features.transactions import http as transactions_http
from emulator.features.trivia import http as trivia_http
from emulator.features.votes import actions as votes_actions
from emulator.features.votes import http as votes_http
from emulator.http.endpoint import Endpoint, Offer
from emulator.kind_list import KINDS
from emulator.namespaces import http as namespaces_http
from emulator.realtime.action import Action, Feed


class Feature(NamedTuple):
    """The endpoints, socket actions and feeds of one feature."""

    service: Callable[[Any], Any]
    """Takes an `app.Service` and returns the part of it that handles them."""
    endpoints: tuple[Endpoint[Any], ...] = ()
    actions: tuple[Action[Any], ...] = ()
    feeds: tuple[Feed[Any], ...] = ()
    is_offered: Callable[[Environment], bool] = lambda environment: True


def _has_control(environment: Environment) -> bool:
    return environment.has_control


def _issues_tokens(environment: Environment) -> bool:
    return environment.issues_sandbox_tokens


FEATURES: Final = (
    Feature(lambda service: service.polls, votes_http.endpoints, votes_actions.actions, votes_actions.feeds),
    Feature(lambda service: service.rankings, ranking_http.endpoints),
    Feature(lambda service: service.buffers, accumulation_http.endpoints),
    Feature(lambda service: service.stores, stores_http.endpoints, stores_actions.actions, stores_actions.feeds),
    Feature(lambda service: service.json_stores, stores_http.json_store_endpoints),
    Feature(lambda service: service.pins, pins_http.endpoints, pins_actions.actions, pins_actions.feeds),
    Feature(lambda service: service.pins, pins_http.control, is_offered=_has_control),
    Feature(
        lambda service: service.broadcasts, broadcast_http.endpoints, broadcast_actions.actions, broadcast_actions.feeds
    ),
    Feature(lambda service: service.code_sets, codes_http.endpoints),
    Feature(
        lambda service: service.transactions,
        transactions_http.endpoints,
        transactions_actions.actions,
        transactions_actions.feeds,
    ),
    Feature(lambda service: service.datastream, datastream_http.endpoints, feeds=datastream_actions.feeds),
    Feature(lambda service: service.trivia, trivia_http.endpoints),
    Feature(lambda service: service.identities, (identity_http.issue_sandbox_token,), is_offered=_issues_tokens),
    Feature(lambda service: service.identities, identity_http.endpoints),
    Feature(lambda service: service.control, control_http.monitoring),
    Feature(lambda service: service.metrics, (control_http.metrics,)),
    Feature(lambda service: service.control, control_http.control, is_offered=_has_control),
    Feature(lambda service: service.undo, control_http.resets, is_offered=_has_control),
    Feature(lambda service: service.seeds, seeds_http.endpoints, is_offered=_has_control),
    Feature(lambda service: service.contents, contents_http.endpoints_of(KINDS), is_offered=_has_control),
    Feature(lambda service: service.waits, waits_http.endpoints_of(KINDS), is_offered=_has_control),
    Feature(lambda service: service.calls, calls_http.endpoints, is_offered=_has_control),
    Feature(lambda service: service.connections, sockets_http.endpoints, is_offered=_has_control),
    Feature(lambda service: service.faults, faults_http.endpoints, is_offered=_has_control),
    Feature(lambda service: service.journals, journal_http.endpoints, is_offered=_has_control),
    Feature(lambda service: service.parity, parity_http.endpoints, is_offered=_has_control),
    Feature(lambda service: service.explanations, explanations_http.endpoints, is_offered=_has_control),
    Feature(lambda service: service.snapshots, snapshots_http.endpoints, is_offered=_has_control),
    Feature(lambda service: service.namespaces, namespaces_http.endpoints, is_offered=_has_control),
    Feature(lambda service: service, dashboard_http.endpoints, is_offered=_has_control),
    Feature(lambda service: None, sdk_scripts_http.endpoints, is_offered=_has_control),
)
"""All features. Routes, OpenAPI document, dispatcher and gateway are built from this list."""


@cache
def endpoints_of(environment: Environment) -> Mapping[tuple[str, str], Offer]:
    """Return the endpoints that an environment offers, by method and path. All its services share the table."""
    return {
        (each.method, each.path): Offer(each, feature.service)
        for feature in FEATURES
        if feature.is_offered(environment)
        for each in feature.endpoints
    }


@cache
def absent_from(environment: Environment) -> frozenset[tuple[str, str]]:
    """Return the methods and paths of the endpoints that an environment does not have."""
    return frozenset((each.method, each.path) for feature in FEATURES for each in feature.endpoints) - set(
        endpoints_of(environment)
    )
