"""The spans of a job: one tree from its request to its attempts, links for what comes later, and the JSON of OTLP."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import pytest

from scheduler.model import lifecycle, trace
from scheduler.model.job import Failure, FailureKind, Job, Result, RunInfo
from scheduler.notify import spans
from tests.contract import make
from tests.unit.test_trace import GOOD, LATE, SPAN, TRACE, claimed_at

SLOT = "2026-11-20T10:05#03"
ASKED = make.job(trace=f"{GOOD} vendor=1")
Span = Mapping[str, Any]


@dataclass(frozen=True)
class Write:
    before: Job | None
    after: Job | None


def of(*jobs: Job | None, ratio: float = 1.0) -> list[Span]:
    """The spans of a job that becomes one after the other."""
    return [span for before, after in pairwise(jobs) for span in spans.of_change(Write(before, after), ratio)]


def named(made: Sequence[Span]) -> list[str]:
    return [str(span["name"]).split()[0] for span in made]


def values(span: Span) -> dict[str, Any]:
    return {each["key"]: next(iter(each["value"].values())) for each in span["attributes"]}


def links(span: Span) -> dict[str, str]:
    """The spans that a span links to, by their relation."""
    found = span.get("links", [])
    return {link["attributes"][0]["value"]["stringValue"]: f"00-{link['traceId']}-{link['spanId']}-01" for link in found}


def parent_of(span: Span) -> str:
    return f"00-{span['traceId']}-{span['spanId']}-01"


def lived(job: Job) -> list[Job]:
    """A job that succeeds at its second attempt."""
    first = make.claimed(job)
    waits = make.retried(first, SLOT)
    second = make.claimed(waits)
    return [job, first, waits, second, lifecycle.succeed(second, make.NOW + 900, started_at=make.NOW + 800, result=Result("o"))]


def test_one_tree_leads_from_the_request_to_the_attempts() -> None:
    made = of(None, *lived(ASKED))
    create, wait, first, second = made
    assert named(made) == ["create", "wait", "process", "process"] and {span["traceId"] for span in made} == {TRACE}
    assert create["parentSpanId"] == SPAN and wait["parentSpanId"] == create["spanId"]
    assert first["parentSpanId"] == second["parentSpanId"] == wait["spanId"] and {span["traceState"] for span in made} == {"vendor=1"}
    assert not links(first) and links(second) == {"previous attempt": parent_of(first)}, "a retry is a link"
    assert [span["kind"] for span in made] == [spans.PRODUCER, spans.INTERNAL, spans.CONSUMER, spans.CONSUMER]


def test_the_times_are_those_of_the_job() -> None:
    create, wait, first, second = of(None, *lived(ASKED))
    times = [(int(each["startTimeUnixNano"]) // 10**6, int(each["endTimeUnixNano"]) // 10**6) for each in (create, wait, first, second)]
    assert times[0] == (ASKED.created_at, ASKED.created_at) and times[1] == (make.NOW, make.NOW)
    assert times[2:] == [(make.NOW, make.NOW + 100), (make.NOW + 800, make.NOW + 900)]


def test_a_job_without_a_context_begins_a_trace() -> None:
    made = of(None, *lived(make.job()))
    assert "parentSpanId" not in made[0] and len({span["traceId"] for span in made}) == 1 and made[0]["traceId"] != TRACE


def test_a_write_that_is_delivered_twice_makes_the_same_spans() -> None:
    assert of(None, *lived(ASKED)) == of(None, *lived(ASKED))


def test_other_writes_make_no_span() -> None:
    job, claimed = ASKED, make.claimed(ASKED)
    dead = make.failed(claimed)
    assert of(job, claimed, make.flagged(claimed)) == of(dead, make.redriven(dead)) == of(dead, replace(dead, output="o"), None) == []
    assert of(claimed, make.accepted(claimed), make.beaten(make.accepted(claimed))) == []


def test_a_job_for_later_has_a_second_trace_that_links_to_the_first() -> None:
    job = replace(ASKED, created_at=make.NOW - 3 * 86_400_000)
    create, wait, first, _ = of(None, *lived(job))
    assert create["traceId"] == TRACE != wait["traceId"] == first["traceId"]
    assert "parentSpanId" not in wait and links(wait) == {"create": parent_of(create)} and first["parentSpanId"] == wait["spanId"]


def test_a_run_of_a_task_has_no_creation() -> None:
    run = make.job(origin=RunInfo("t1", 2, make.NOW - 5))
    wait, first, _ = of(None, *lived(run))
    assert named([wait, first]) == ["wait", "process"] and not wait.get("links") and "parentSpanId" not in wait
    assert values(first)["punctual.task_id"] == "t1"


def test_a_late_attempt_begins_a_trace_with_links() -> None:
    first = claimed_at(make.claimed(ASKED), LATE)
    waits = lifecycle.retry(first, LATE + 9, started_at=LATE, result=Result(), due_at=LATE + 99, slot=SLOT)
    second = claimed_at(make.claimed(waits), LATE + 99, fence=2)
    wait, attempt, again = of(first, waits, second, make.succeeded(second, LATE + 200))
    assert wait["traceId"] == TRACE and len({TRACE, attempt["traceId"], again["traceId"]}) == 3
    assert "parentSpanId" not in attempt and links(attempt) == {"wait": parent_of(wait)}
    assert links(again) == {"previous attempt": parent_of(attempt)}


def test_a_redriven_job_links_to_its_attempt_before() -> None:
    dead = make.failed(make.claimed(ASKED))
    again = claimed_at(make.claimed(make.redriven(dead)), LATE, fence=2)
    (attempt,) = of(again, make.succeeded(again, LATE + 9))
    assert links(attempt) == {"previous attempt": trace.last(dead, 1).parent} and attempt["traceId"] != TRACE
    assert values(attempt)["punctual.attempt"] == "2"


def test_a_replay_links_to_its_original() -> None:
    (create,) = of(None, make.job(replay_of="01A", links_to=GOOD))
    assert links(create) == {"original": GOOD} and create["traceId"] != TRACE and values(create)["punctual.replay_of"] == "01A"


def test_a_job_that_ends_without_a_start_has_a_wait_with_its_end() -> None:
    skipped = lifecycle.skip(ASKED, make.NOW + 7, reason="so")
    (wait,) = of(ASKED, skipped)
    assert (wait["name"], values(wait)["punctual.status"], wait["endTimeUnixNano"]) == ("wait log", "skipped", str((make.NOW + 7) * 10**6))
    early = lifecycle.cancel(ASKED, make.NOW - 9, reason="so")
    (wait,) = of(ASKED, early)
    assert wait["startTimeUnixNano"] == wait["endTimeUnixNano"] == str((make.NOW - 9) * 10**6)


def test_each_life_without_a_start_has_an_id_of_its_own() -> None:
    failed = lifecycle.fail(ASKED, make.NOW, reason="expired")
    again = lifecycle.fail(make.redriven(failed), make.NOW + 1, reason="expired")
    started = make.claimed(make.redriven(again))
    made = of(ASKED, failed, make.redriven(failed), again, make.redriven(again), started, make.succeeded(started))
    assert named(made) == ["wait", "wait", "wait", "process"] and len({span["spanId"] for span in made}) == 4


def test_only_a_crash_after_the_start_has_a_span() -> None:
    waiting = make.claimed(make.job(at=make.NOW + 400_000))
    unstarted = lifecycle.take_back(waiting, make.NOW + 5, slot=SLOT)
    assert unstarted.attempts and of(waiting, unstarted) == []
    crashed = make.claimed(ASKED)
    _, attempt = of(crashed, make.taken_back(crashed))
    assert attempt["status"] == {"code": 2} and values(attempt)["error.type"] == "crashed"


@pytest.mark.parametrize(
    ("response", "failure", "error"),
    [
        ({"status": 503, "headers": {}, "body": "s3cret"}, Failure(FailureKind.RETRYABLE, "HTTP 503 s3cret"), "503"),
        (None, Failure(FailureKind.TIMEOUT, "s3cret"), "timeout"),
        ({"status": 200, "headers": {}, "body": "s3cret"}, None, None),
    ],
)
def test_an_attempt_names_the_class_of_its_error(response: Any, failure: Failure | None, error: str | None) -> None:
    payload = {"url": "https://ann:s3cret@hooks.example.com:8443/s3cret?key=s3cret", "method": "POST", "headers": {"X": "s3cret"}}
    job = make.claimed(make.job(type="http", payload=payload, tags=("s3cret",)))
    result = Result("s3cret", response, failure, "s3cret")
    if failure is None:
        after = lifecycle.succeed(job, make.NOW + 9, started_at=make.NOW, result=result)
    else:
        after = lifecycle.fail(job, make.NOW + 9, started_at=make.NOW, result=result, reason="s3cret")
    attempt = of(job, after)[-1]
    found = values(attempt)
    assert found.get("error.type") == error and attempt["kind"] == spans.CLIENT and ("status" in attempt) is (error is not None)
    assert (found["http.request.method"], found["server.address"]) == ("POST", "hooks.example.com")
    assert found.get("http.response.status_code") == (None if response is None else str(response["status"]))
    assert "s3cret" not in json.dumps(of(None, job, after)), "no payload, no output, no credentials"


def test_a_host_with_a_placeholder_is_left_out() -> None:
    job = make.claimed(make.job(type="http", payload={"url": "https://{{job_key}}.example.com/"}, placeholders=True))
    assert "server.address" not in values(of(job, make.succeeded(job))[-1])


def test_a_request_whose_trace_is_not_sampled_has_no_spans() -> None:
    assert of(None, *lived(replace(ASKED, trace=f"00-{TRACE}-{SPAN}-00"))) == []
    assert of(None, *lived(make.job()), ratio=0) == [] and len(of(None, *lived(ASKED), ratio=0)) == 4


def test_the_spans_of_an_attempt_and_its_receiver_are_parent_and_child() -> None:
    job = make.claimed(ASKED)
    attempt = of(job, make.succeeded(job))[-1]
    passed = trace.passed_on(job, 1)
    assert passed is not None and passed.parent == parent_of(attempt)


# The JSON of OTLP, by the fields and types of its proto: trace.proto and common.proto of opentelemetry-proto 1.x.


def check_span(span: Span) -> None:
    texts = {"traceId": "[0-9a-f]{32}", "spanId": "[0-9a-f]{16}", "parentSpanId": "[0-9a-f]{16}", "name": ".+", "traceState": ".+"}
    texts |= {"startTimeUnixNano": "[0-9]{19}", "endTimeUnixNano": "[0-9]{19}"}
    for name, form in texts.items():
        assert name not in span or re.fullmatch(form, span[name]), name
    assert {"traceId", "spanId", "name", "kind", "startTimeUnixNano", "endTimeUnixNano"} <= span.keys()
    assert span.keys() <= texts.keys() | {"kind", "flags", "attributes", "links", "status"}
    assert span["kind"] in range(1, 6) and isinstance(span["flags"], int) and span.get("status", {"code": 1})["code"] in (0, 1, 2)
    assert int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"])
    check_attributes(span["attributes"])
    for link in span.get("links", []):
        assert re.fullmatch("[0-9a-f]{32}", link["traceId"]) and re.fullmatch("[0-9a-f]{16}", link["spanId"])
        assert link.keys() <= {"traceId", "spanId", "traceState", "attributes", "flags"}
        check_attributes(link["attributes"])


def check_attributes(attributes: Sequence[Span]) -> None:
    assert len({each["key"] for each in attributes}) == len(attributes)
    for each in attributes:
        assert each.keys() == {"key", "value"} and len(each["value"]) == 1
        ((kind, value),) = each["value"].items()
        assert kind in ("stringValue", "intValue") and isinstance(value, str), "64-bit numbers are texts in the JSON of protobuf"
        assert kind == "stringValue" or re.fullmatch("-?[0-9]+", value)


def test_the_document_has_the_shape_of_otlp() -> None:
    made = [*of(None, *lived(ASKED)), *of(None, make.job(links_to=GOOD, replay_of="01A"))]
    document = json.loads(json.dumps(spans.document(made, {"cloud.region": "eu-west-1"})))
    assert list(document) == ["resourceSpans"]
    (resource,) = document["resourceSpans"]
    check_attributes(resource["resource"]["attributes"])
    (scope,) = resource["scopeSpans"]
    assert scope["scope"] == {"name": "punctual"} and len(scope["spans"]) == 5
    for span in scope["spans"]:
        check_span(span)
