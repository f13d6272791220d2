"""The `OTEL_…` variables that `extcli serve --otel` accepts."""

from __future__ import annotations

import re

import pytest

from emulator.core.errors import ConfigurationError
from emulator.process.tracing import check_variables

NO_URL = "must be a URL with http:// or https:// and a host"
NO_RATIO = "must be a number from 0 to 1"


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "nonsense", NO_URL),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "grpc://host:4317", NO_URL),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://host:port", NO_URL),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "is not supported; use http/protobuf"),
        ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json", "is not supported; use http/protobuf"),
        (
            "OTEL_TRACES_SAMPLER",
            "sometimes",
            "is not one of always_on, always_off, traceidratio",
        ),
        ("OTEL_TRACES_SAMPLER_ARG", "half", NO_RATIO),
        ("OTEL_TRACES_SAMPLER_ARG", "2", NO_RATIO),
        ("OTEL_TRACES_SAMPLER_ARG", "-0.1", NO_RATIO),
        ("OTEL_TRACES_SAMPLER_ARG", "nan", NO_RATIO),
    ],
)
def test_an_invalid_variable_is_named(name: str, value: str, problem: str):
    with pytest.raises(ConfigurationError, match=re.escape(f"--otel: {name}: {value!r} {problem}")):
        check_variables({"OTEL_TRACES_SAMPLER": "traceidratio", name: value})


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "https://collector:4318", "OTEL_EXPORTER_OTLP_PROTOCOL": " http/protobuf "},
        {"OTEL_TRACES_SAMPLER": "ParentBased_TraceIdRatio", "OTEL_TRACES_SAMPLER_ARG": "0.5"},
        {"OTEL_TRACES_SAMPLER": "always_on", "OTEL_TRACES_SAMPLER_ARG": "ignored"},
    ],
)
def test_valid_variables_are_accepted(variables: dict[str, str]):
    check_variables(variables)
