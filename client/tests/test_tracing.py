"""The trace context of requests: of the active OpenTelemetry span, or as the caller gives it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_api import JOB, Flavor, answer
from opentelemetry import context, trace
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, TraceState
from test_requests import Api

import punctual

OWN = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
OTHER = f"00-{'a' * 32}-{'b' * 16}-00"


@pytest.fixture
def span() -> Iterator[None]:
    """An active span, whose traceparent is `OWN`."""
    made = SpanContext(int(OWN[3:35], 16), int(OWN[36:52], 16), False, TraceFlags(1), TraceState([("vendor", "1")]))
    token = context.attach(trace.set_span_in_context(NonRecordingSpan(made)))
    yield
    context.detach(token)


def sent(api: Api) -> list[tuple[str | None, str | None]]:
    return [(request.headers.get("traceparent"), request.headers.get("tracestate")) for request in api.requests]


def test_a_request_carries_the_active_span(flavor: Flavor, span: None) -> None:
    api = Api(answer(JOB, 201))
    flavor.run(api, lambda c: c.jobs.create(message="m"))
    flavor.run(api, lambda c: c.jobs.create(message="m", key="k"))
    assert sent(api) == [(OWN, "vendor=1")] * 2


def test_a_repeated_request_carries_the_same_span(flavor: Flavor, span: None) -> None:
    api = Api(answer(status=503), answer(JOB, 201))
    flavor.run(api, lambda c: c.jobs.create(message="m"))
    assert sent(api) == [(OWN, "vendor=1")] * 2


def test_a_traceparent_that_is_given_goes_first(flavor: Flavor, span: None) -> None:
    api = Api(answer(JOB, 201))
    flavor.run(api, lambda c: c.jobs.create(message="m", traceparent=OTHER))
    assert sent(api) == [(OTHER, None)], "a tracestate belongs to its own traceparent"


def test_each_job_of_a_batch_may_have_its_own(flavor: Flavor) -> None:
    results = [{"index": number, "status": 201, "job": JOB} for number in range(2)]
    api = Api(answer({"accepted": 2, "refused": 0, "results": results}))
    flavor.run(api, lambda c: c.jobs.create_many([{"message": "m"}, {"message": "n", "traceparent": OTHER}]))
    assert [job.get("traceparent") for job in json.loads(api.requests[0].content)["jobs"]] == [None, OTHER]


def test_without_a_span_nothing_is_sent(flavor: Flavor) -> None:
    api = Api(answer(JOB, 201))
    flavor.run(api, lambda c: c.jobs.create(message="m"))
    assert sent(api) == [(None, None)]


def test_a_program_without_opentelemetry_does_not_load_it() -> None:
    code = "import sys, punctual; from punctual import tracing; assert tracing.active() == {}; print('opentelemetry' in sys.modules)"
    sources = {"PYTHONPATH": str(Path(punctual.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ | sources)
    assert done.stdout == "False\n"
