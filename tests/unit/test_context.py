"""The context of a run, as the receiver of each type gets it."""

import json
import logging
import threading
import time
from dataclasses import replace
from typing import Any

import pytest

from scheduler.model.job import Overlap, RunInfo, TaskHead
from scheduler.targets import aws_call, fetch_call, registry
from scheduler.targets.base import CallBackAddress, Context, Reach
from scheduler.targets.calls import Refused
from scheduler.targets.job_context import HEADERS, JobContext
from scheduler.targets.placeholders import rendered
from scheduler.targets.types import ecs, http
from tests.conftest import NOW, ScriptedPool, a_job
from tests.unit.fake_calls import BUS, EXECUTION, FUNCTION, MACHINE, QUEUE, TOPIC, FakeCalls, context, raising
from tests.unit.test_run_gate import MINUTE, TASK, a_run, a_stage, late_runs, run
from tests.unit.test_target_http import PLAIN, Receiver, serving

RUN = JobContext("01JOB", 2, NOW + 250, NOW, task_id="01TASK", task_name="Grüße", task_key="greet")
FACTS = {
    "scheduled_at": "2026-11-20T10:00:00.250Z",
    "nominal_at": "2026-11-20T10:00:00.000Z",
    "attempt": 2,
    "task_id": "01TASK",
    "task_name": "Grüße",
    "task_key": "greet",
}
IDS = {"job_id": "01JOB", "idempotency_key": "01JOB"}
AS_HEADERS = {
    "Punctual-Scheduled-At": FACTS["scheduled_at"],
    "Punctual-Nominal-At": FACTS["nominal_at"],
    "Punctual-Attempt": "2",
    "Punctual-Task-Id": "01TASK",
    "Punctual-Task-Name": "Gr%C3%BC%C3%9Fe",
    "Punctual-Task-Key": "greet",
}
NOTICE = JobContext("notice_01")
PAYLOADS: dict[str, dict[str, Any]] = {
    "lambda": {"function": FUNCTION, "event": {"order": 7}},
    "sqs": {"queue": QUEUE, "body": "b"},
    "sns": {"topic": TOPIC, "message": "m"},
    "eventbridge": {"bus": BUS, "source": "shop", "detail_type": "Paid", "detail": {"order": 7}},
    "stepfunctions": {"state_machine": MACHINE, "input": {"order": 7}},
    "email": {"to": ["ann@example.com"], "subject": "s", "text": "t"},
}


def sent(kind: str, job: JobContext, payload: dict[str, Any] | None = None, **fields: Any) -> Any:
    """The parameters of the request that an attempt makes."""
    calls = FakeCalls()
    assert registry.load(kind).run(payload or PAYLOADS[kind], replace(context(calls), job=job, **fields)).failure is None
    return calls.asked[0].parameters


def attribute(parameters: Any, name: str = "Punctual-Context") -> Any:
    return json.loads(parameters["MessageAttributes"][name]["StringValue"])


def test_a_function_an_event_and_a_message_carry_the_same_facts() -> None:
    assert json.loads(sent("lambda", RUN)["Payload"]) == {"order": 7, "punctual": IDS | FACTS}
    assert json.loads(sent("eventbridge", RUN)["Entries"][0]["Detail"]) == {"order": 7, "punctual": IDS | FACTS}
    assert attribute(sent("sqs", RUN)) == attribute(sent("sns", RUN)) == IDS | FACTS


def test_an_execution_gets_all_but_the_number_of_the_attempt() -> None:
    given = json.loads(sent("stepfunctions", RUN)["input"])
    assert given == {"order": 7, "punctual": IDS | {name: value for name, value in FACTS.items() if name != "attempt"}}


def test_every_attempt_at_an_execution_has_the_same_name_and_input() -> None:
    first, second = (sent("stepfunctions", replace(RUN, attempt=number)) for number in (1, 2))
    assert (first["name"], first["input"]) == (second["name"], second["input"])


@pytest.mark.parametrize("former", [{"order": 7, "punctual": IDS}, {"order": 7, "punctual": IDS | FACTS | {"task_name": "before"}}])
def test_an_execution_of_an_earlier_version_or_name_is_the_jobs(former: dict[str, Any]) -> None:
    exists = raising(Refused("ExecutionAlreadyExists", retryable=False))
    calls = FakeCalls(start_execution=exists, describe_execution=lambda: {"status": "RUNNING", "input": json.dumps(former)})
    result = registry.load("stepfunctions").run(PAYLOADS["stepfunctions"], replace(context(calls), job=RUN))
    assert (result.output, result.failure) == (EXECUTION, None)


@pytest.mark.parametrize("other", ['{"order": 8, "punctual": {}}', "", "[1]"])
def test_an_execution_with_another_input_is_not_the_jobs(other: str) -> None:
    exists = raising(Refused("ExecutionAlreadyExists", retryable=False))
    calls = FakeCalls(start_execution=exists, describe_execution=lambda: {"status": "RUNNING", "input": other})
    failure = registry.load("stepfunctions").run(PAYLOADS["stepfunctions"], replace(context(calls), job=RUN)).failure
    assert failure is not None and "with another input" in failure.message


def test_an_e_mail_has_the_facts_as_headers_in_ascii() -> None:
    headers = {each["Name"]: each["Value"] for each in sent("email", RUN)["Content"]["Simple"]["Headers"]}
    assert headers == {"Idempotency-Key": "01JOB", "Punctual-Job-Id": "01JOB"} | AS_HEADERS


def test_a_url_is_called_with_the_facts_as_headers() -> None:
    with serving() as port:
        given = Context(RUN, time.monotonic() + 60, threading.Event(), allow_private=True, reach=PLAIN)
        assert http.run({"url": f"http://127.0.0.1:{port}/echo"}, given).failure is None
    seen = Receiver.seen[-1]["headers"]
    assert {name: value for name, value in seen.items() if name in HEADERS.values()} == AS_HEADERS


def test_a_header_of_a_stored_job_stays_as_its_owner_gave_it() -> None:
    with serving() as port:
        given = Context(RUN, time.monotonic() + 60, threading.Event(), allow_private=True, reach=PLAIN)
        http.run({"url": f"http://127.0.0.1:{port}/echo", "headers": {"punctual-attempt": "mine"}}, given)
    seen = [(name, value) for name, value in Receiver.seen[-1]["headers"].items() if name.lower() == "punctual-attempt"]
    assert seen == [("punctual-attempt", "mine")]


def test_the_function_that_calls_urls_gets_the_whole_context() -> None:
    given = Context(RUN, time.monotonic() + 60, threading.Event())
    event = json.loads(fetch_call.encode_event({}, {}, given))
    _, _, received = fetch_call.decode_event(event, Reach(), allow_private=False)
    assert received.job == RUN
    former = {name: value for name, value in event.items() if name not in HEADERS or name == "attempt"}
    _, _, old = fetch_call.decode_event(former | {"of_the_future": 1}, Reach(), allow_private=False)
    assert (old.job, old.job.headers()) == (JobContext("01JOB", 2), {}), "an executor of an earlier version sends ids alone"


def test_only_the_log_line_of_a_run_has_the_facts(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        for job in (RUN, JobContext("01JOB", 1, NOW, NOW)):
            registry.load("log").run({"message": "m"}, replace(context(), job=job))
    of_run, of_job = (vars(record) for record in caplog.records)
    assert {name: of_run[name] for name in (*FACTS, "job_id")} == FACTS | {"job_id": "01JOB"}
    assert (of_job["job_id"], of_job["attempt"], "scheduled_at" in of_job) == ("01JOB", 1, False)


def test_a_notice_has_no_context() -> None:
    assert "Punctual-Context" not in sent("sqs", NOTICE)["MessageAttributes"]
    assert (NOTICE.facts(), NOTICE.headers()) == ({}, {})


@pytest.mark.parametrize("kind", ["sqs", "sns"])
@pytest.mark.parametrize(("given", "callback", "has_room"), [(7, False, True), (8, False, False), (5, True, True), (6, True, False)])
def test_a_message_has_at_most_ten_attributes(kind: str, given: int, callback: bool, has_room: bool) -> None:
    payload = PAYLOADS[kind] | {"attributes": {f"a{number}": "v" for number in range(given)}}
    found = sent(kind, RUN, payload, callback=CallBackAddress("https://x", "t", 1) if callback else None)["MessageAttributes"]
    assert ("Punctual-Context" in found) == has_room and len(found) == 10


def test_an_attribute_of_a_stored_job_stays_as_its_owner_gave_it() -> None:
    found = sent("sqs", RUN, PAYLOADS["sqs"] | {"attributes": {"Punctual-Context": '"mine"'}})
    assert attribute(found) == "mine"


@pytest.mark.parametrize("letter", ["a", "é"])
def test_a_payload_near_the_limit_of_its_service_goes_without_context(letter: str) -> None:
    large = letter * (255_500 // len(letter.encode()))
    assert "Punctual-Context" not in sent("sqs", RUN, {"queue": QUEUE, "body": large})["MessageAttributes"]
    event = {"function": FUNCTION, "event": {"text": large}}
    assert json.loads(sent("lambda", RUN, event)["Payload"])["punctual"] == IDS


# Of which job


def test_a_one_time_job_has_its_time_as_nominal_time_too() -> None:
    assert JobContext.of(a_job(id="01JOB"), None) == JobContext("01JOB", 1, NOW, NOW)


def test_a_run_has_the_name_that_its_task_has_at_the_start() -> None:
    job = a_job(id="01JOB", origin=RunInfo("01TASK", 4, NOW - 30, Overlap.SKIP))
    assert JobContext.of(job, TaskHead(5, name="now")) == JobContext("01JOB", 1, NOW, NOW - 30, task_id="01TASK", task_name="now")
    assert JobContext.of(job, None).task_name is None


class Contexts(ScriptedPool):
    """Keeps the context of each started job."""

    seen: list[JobContext]

    def start(self, job: Any, not_after: int | None = None, task: TaskHead | None = None) -> None:
        self.seen = [*getattr(self, "seen", []), JobContext.of(job, task)]
        super().start(job)


@pytest.mark.parametrize("overlap", [Overlap.ALLOW, Overlap.SKIP, Overlap.QUEUE_ONE])
def test_an_executor_reads_the_name_of_the_task_with_its_gate(overlap: Overlap) -> None:
    stage = a_stage(replace(TASK, name="Nightly"))
    for early in (0, 5_000):
        pool = Contexts(stage.clock)
        run(stage, a_run(stage.clock.now() + early, overlap), pool=pool)
        assert [each.task_name for each in pool.seen] == ["Nightly"]


def test_each_late_run_of_run_all_carries_its_own_nominal_time() -> None:
    stage = a_stage()
    row = late_runs(3, 2, 1)
    pool = Contexts(stage.clock)
    run(stage, *reversed(row), pool=pool)
    for _ in row[1:]:
        run(stage, *stage.receive(row[0].lane), pool=pool)
    assert [each.nominal_at for each in pool.seen] == [NOW - minutes * MINUTE for minutes in (3, 2, 1)]
    payload = {"message": "{{nominal_at:time}}"}
    assert [rendered(payload, each, {})["message"] for each in pool.seen] == ["09:57:00", "09:58:00", "09:59:00"]
    assert {each.task_id for each in pool.seen} == {TASK.id}


TRACED = replace(RUN, traceparent="00-1", tracestate="a=1", steady_parent="00-2")
TRACE = {"traceparent": "00-1", "tracestate": "a=1"}


def carried(parameters: Any) -> dict[str, str]:
    return {name: value["StringValue"] for name, value in parameters["MessageAttributes"].items()}


def test_each_target_gets_the_trace_in_the_place_of_its_context() -> None:
    assert json.loads(sent("lambda", TRACED)["Payload"])["punctual"] == IDS | FACTS | TRACE
    assert json.loads(sent("eventbridge", TRACED)["Entries"][0]["Detail"])["punctual"] == IDS | FACTS | TRACE
    for name in ("sqs", "sns"):
        assert TRACE.items() <= carried(sent(name, TRACED)).items() and attribute(sent(name, TRACED)) == IDS | FACTS | TRACE
    assert "00-1" not in json.dumps(sent("email", TRACED)), "people read it"


def test_every_attempt_at_an_execution_passes_the_same_trace_on() -> None:
    first, second = (json.loads(sent("stepfunctions", each)["input"]) for each in (TRACED, replace(TRACED, traceparent="00-3")))
    assert first == second and first["punctual"]["traceparent"] == "00-2"


@pytest.mark.parametrize(("own", "found"), [(7, ["Punctual-Context"]), (6, ["Punctual-Context", "traceparent"]), (8, [])])
def test_a_message_gets_the_trace_as_far_as_it_has_room(own: int, found: list[str]) -> None:
    attributes = {f"own-{number}": "x" for number in range(own)}
    made = aws_call.envelope("m", attributes, None, replace(context(), job=TRACED), is_fifo=False)
    assert [name for name in carried(made) if not name.startswith("own-") and name not in aws_call.IDS] == found
    assert len(carried(made)) <= 10 and (own == 8 or attribute(made)["traceparent"] == "00-1")


def test_a_trace_that_the_payload_names_goes_first() -> None:
    made = aws_call.envelope("m", {"traceparent": "mine"}, None, replace(context(), job=TRACED), is_fifo=False)
    assert carried(made)["traceparent"] == "mine" and "tracestate" not in carried(made)
    with serving() as port:
        for headers, expected in (({}, ("00-1", "a=1")), ({"TraceParent": "mine"}, ("mine", None))):
            given = Context(TRACED, time.monotonic() + 60, threading.Event(), allow_private=True, reach=PLAIN)
            assert http.run({"url": f"http://127.0.0.1:{port}/echo", "headers": headers}, given).failure is None
            seen = {name.lower(): value for name, value in Receiver.seen[-1]["headers"].items()}
            assert (seen.get("traceparent"), seen.get("tracestate")) == expected


def test_the_trace_reaches_the_function_that_calls_urls() -> None:
    given = Context(TRACED, time.monotonic() + 60, threading.Event())
    event = json.loads(fetch_call.encode_event({}, {}, given))
    assert fetch_call.decode_event(event, Reach(), allow_private=False)[2].job == TRACED


def test_the_containers_that_a_job_names_get_the_trace_as_a_variable() -> None:
    containers = [{"name": "a", "environment": {"X": "1"}}, {"name": "b", "environment": {"TRACEPARENT": "mine"}}]
    made = ecs._overrides({"containers": containers}, "00-1")["containerOverrides"]
    assert [each["environment"] for each in made] == [
        [{"name": "TRACEPARENT", "value": "00-1"}, {"name": "X", "value": "1"}],
        [{"name": "TRACEPARENT", "value": "mine"}],
    ]
    full = {"containers": [{"name": "a", "environment": {"X": "x" * (ecs.MOST_OVERRIDES - 100)}}]}
    assert len(json.dumps(ecs._overrides(full))) <= ecs.MOST_OVERRIDES
    assert ecs._overrides(full, "00-" + "1" * 52) == ecs._overrides(full), "a job that was accepted is started"


def test_a_job_without_a_trace_passes_none_on() -> None:
    assert JobContext.of(a_job(), None).trace() == {} and "trace" not in json.dumps(JobContext.of(a_job(), None).encoded())
