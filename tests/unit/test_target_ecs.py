"""The `ecs` target: the request that is stored and repeated, refusals, the end of a task, its stop, and links to its logs."""

import json
import threading
from dataclasses import replace
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from scheduler.model.job import Awaited, Claim, Failure, FailureKind, Job, Result
from scheduler.targets import registry
from scheduler.targets.awaited_ends import GIVE_UP_MS, SETTLES_MS
from scheduler.targets.base import Context, NotAllowed, Reach
from scheduler.targets.calls import Refused
from scheduler.targets.job_context import JobContext
from scheduler.targets.types import ecs
from tests.conftest import NOW, a_job
from tests.unit.fake_calls import REGION, FakeCalls, context, raising

CLUSTER, DEFINITION = f"arn:aws:ecs:{REGION}:cluster/jobs", f"arn:aws:ecs:{REGION}:task-definition/report"
TASK = f"arn:aws:ecs:{REGION}:task/jobs/0123"
REACH = Reach((CLUSTER, f"{DEFINITION}*"))
MINIMAL: dict[str, Any] = {"cluster": CLUSTER, "task_definition": DEFINITION}
WHOLE = MINIMAL | {
    "launch_type": "FARGATE",
    "subnets": ["subnet-1"],
    "security_groups": ["sg-1"],
    "containers": [{"name": "main", "command": ["report.py"], "environment": {"DAY": "1"}, "memory_reservation": 256}],
    "cpu": "512",
    "tags": {"team": "data"},
}
CONTAINERS = [
    {"name": "main", "logConfiguration": {"logDriver": "awslogs", "options": {"awslogs-group": "/ecs/a", "awslogs-stream-prefix": "p"}}},
    {"name": "proxy", "essential": False},
    {"name": "agent", "logConfiguration": {"logDriver": "splunk"}},
]
type_ = registry.load("ecs")
ended = type_.ends
assert ended is not None


def fake(**answers: Any) -> FakeCalls:
    usual = {
        "run_task": lambda: {"tasks": [{"taskArn": TASK, "taskDefinitionArn": f"{DEFINITION}:7"}]},
        "describe_task_definition": lambda: {"taskDefinition": {"containerDefinitions": CONTAINERS}},
        "stop_task": lambda: {},
    }
    ecs._known_definitions.cache_clear()
    return FakeCalls(**usual | answers)


def claimed(payload: dict[str, Any] = MINIMAL, **fields: Any) -> Job:
    claim = Claim("m", "n", NOW, True, NOW + 30_000)
    return replace(a_job(type="ecs", payload=payload, timeout_ms=3_600_000), claim=claim, started_at=NOW, **fields)


def of(calls: FakeCalls, job: Job, **fields: Any) -> Context:
    return replace(context(calls, reach=REACH), owner=job.owner, now=lambda: NOW, awaited=job.awaited, **fields)


def started(calls: FakeCalls, payload: dict[str, Any] = MINIMAL) -> tuple[Job, Result]:
    job = claimed(payload)
    job = replace(job, awaited=type_.intent(payload, job, JobContext.of(job, None)))
    return job, type_.run(payload, of(calls, job))


def test_the_request_is_stored_and_sent_as_it_was_stored() -> None:
    job, result = started(calls := fake(), WHOLE)
    sent = calls.asked[0].parameters
    assert job.awaited is not None and sent == json.loads(job.awaited.request or "")
    assert (sent["clientToken"], sent["startedBy"]) == (f"{job.id}-1", f"punctual/{job.owner}/{job.id}/1")
    assert sent["networkConfiguration"]["awsvpcConfiguration"]["assignPublicIp"] == "DISABLED"
    override = {"name": "main", "command": ["report.py"], "environment": [{"name": "DAY", "value": "1"}], "memoryReservation": 256}
    assert sent["overrides"] == {"containerOverrides": [override], "cpu": "512"} and sent["tags"] == [{"key": "team", "value": "data"}]
    assert result.awaited is not None and result.awaited.id == TASK and result.awaited.start_by == NOW + 900_000
    edited = WHOLE | {"cpu": "1024"}
    type_.run(edited, of(calls, job))
    assert calls.asked[-1].parameters == sent or calls.asked[-2].parameters == sent, "whatever the payload is by now"


def test_every_request_is_one_that_aws_accepts() -> None:
    from scheduler.targets import service_models

    job = claimed(WHOLE)
    service_models.operation("ecs", "RunTask").converted(json.loads(ecs._request(WHOLE, job, JobContext.of(job, None))), are_final=True)


def test_the_named_containers_decide_else_the_essential_ones() -> None:
    _, named = started(fake(), WHOLE)
    _, others = started(fake())
    assert named.awaited is not None and named.awaited.facts["decide"] == ["main"]
    assert others.awaited is not None and others.awaited.facts["decide"] == ["main", "agent"]
    assert others.awaited.facts["logs"] == {
        "main": "https://eu-west-1.console.aws.amazon.com/cloudwatch/home?region=eu-west-1#logsV2:log-groups/log-group/$252Fecs$252Fa"
        "/log-events/p$252Fmain$252F0123"
    }


def test_a_task_whose_definition_cannot_be_read_runs_nevertheless() -> None:
    _, result = started(fake(describe_task_definition=raising(Refused("AccessDeniedException", retryable=False))))
    assert result.awaited is not None and result.awaited.facts == {}


def test_without_wait_the_job_ends_once_the_task_is_accepted() -> None:
    calls = fake()
    assert type_.run(MINIMAL | {"wait": False}, replace(context(calls, reach=REACH))) == Result(output=TASK)
    assert calls.asked[0].parameters["clientToken"] == "01JOB"
    assert not type_.awaits(MINIMAL | {"wait": False}) and type_.awaits(MINIMAL)


@pytest.mark.parametrize(
    ("answer", "kind", "unclear"),
    [
        (lambda: {"failures": [{"reason": "RESOURCE:CPU"}]}, FailureKind.THROTTLED, False),
        (lambda: {"failures": [{"reason": "AGENT"}, {"reason": "RESOURCE:MEMORY"}]}, FailureKind.THROTTLED, False),
        (lambda: {"failures": [{"reason": "MISSING"}]}, FailureKind.RETRYABLE, False),
        (raising(Refused("ThrottlingException", retryable=True, throttled=True)), FailureKind.THROTTLED, False),
        (raising(Refused("ClientException", "no such revision", retryable=False)), FailureKind.PERMANENT, False),
        (raising(Refused("AccessDeniedException", retryable=False)), FailureKind.PERMANENT, False),
        (raising(Refused("ConnectionClosed", retryable=True, unclear=True)), FailureKind.THROTTLED, True),
    ],
)
def test_a_refused_start(answer: Any, kind: FailureKind, unclear: bool) -> None:
    _, result = started(fake(run_task=answer))
    assert result.failure is not None and (result.failure.kind, result.unclear) == (kind, unclear)


def test_a_start_without_an_answer_is_unclear() -> None:
    never, job = threading.Event(), claimed()
    job = replace(job, awaited=type_.intent(MINIMAL, job, JobContext.of(job, None)))
    calls = fake(run_task=lambda: never.wait(60))
    result = type_.run(MINIMAL, replace(of(calls, job), deadline=0.0))
    assert result.unclear and result.failure is not None and result.failure.kind is FailureKind.THROTTLED


def task(code: int | None = 0, **fields: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"taskArn": TASK, "lastStatus": "STOPPED", "stopCode": "EssentialContainerExited"}
    return found | {"containers": [{"name": "main"} | ({} if code is None else {"exitCode": code})]} | fields


AWAITED = Awaited(1, json.dumps({"cluster": CLUSTER}), TASK, NOW + 900_000, facts={"decide": ["main"], "logs": {"main": "https://log"}})


@pytest.mark.parametrize(
    ("found", "kind", "message"),
    [
        (task(0), None, ""),
        (task(0, containers=[{"name": "main", "exitCode": 0}, {"name": "proxy", "exitCode": 137}]), None, ""),
        (task(3), FailureKind.RETRYABLE, "the container main exited with code 3"),
        (
            task(137, containers=[{"name": "main", "exitCode": 137, "reason": "OutOfMemoryError: Container killed"}]),
            FailureKind.RETRYABLE,
            "the container main exited with code 137: OutOfMemoryError: Container killed",
        ),
        (task(None), FailureKind.RETRYABLE, "the container main has no exit code"),
        (task(containers=[]), FailureKind.RETRYABLE, "the task stopped: "),
        (task(None, stopCode="TaskFailedToStart", stoppedReason="Capacity is unavailable at this time."), FailureKind.THROTTLED, None),
        (task(None, stopCode="TaskFailedToStart", stoppedReason="CannotPullContainerError"), FailureKind.RETRYABLE, None),
        (task(137, stopCode="SpotInterruption", stoppedReason="Your Spot Task was interrupted."), FailureKind.THROTTLED, None),
        (task(143, stopCode="UserInitiated", stoppedReason="by hand"), FailureKind.PERMANENT, "the task was stopped in AWS: by hand"),
        (task(0, stopCode="UserInitiated", stoppedReason="Punctual timeout: too long"), FailureKind.TIMEOUT, "too long"),
    ],
)
def test_the_end_of_a_task(found: dict[str, Any], kind: FailureKind | None, message: str | None) -> None:
    result = ecs.judged(found, AWAITED)
    assert result is not None and (result.failure and result.failure.kind) == kind
    logs = {each["name"]: each["log"] for each in json.loads(result.output or "")["containers"]}
    assert logs.get("main", "https://log") == "https://log" and logs.get("proxy") is None
    if kind is not None and message is not None:
        assert result.failure == Failure(kind, message)


@pytest.mark.parametrize("found", [task(3), task(143, stopCode="UserInitiated", stoppedReason="Punctual timeout: too long"), task(None)])
def test_a_check_that_finds_the_end_of_a_task_ends_the_attempt(found: dict[str, Any]) -> None:
    result, _ = checked({"tasks": [found]})
    assert result.awaited is None and result.failure == (ecs.judged(found, AWAITED) or result).failure


def test_a_check_without_an_answer_goes_on() -> None:
    never = threading.Event()
    job = claimed(awaited=AWAITED)
    calls = fake(describe_tasks=lambda: never.wait(60))
    assert type_.check_end(job, replace(of(calls, job), deadline=0.0), NOW + 60_000).awaited == AWAITED


@pytest.mark.parametrize("status", ["PROVISIONING", "PENDING", "RUNNING", "DEPROVISIONING"])
def test_a_task_that_has_not_stopped_has_no_end(status: str) -> None:
    assert ecs.judged(task(lastStatus=status), AWAITED) is None


def checked(found: Any, *, now: int = NOW + 60_000, must_stop: Failure | None = None, **fields: Any) -> tuple[Result, FakeCalls]:
    calls = fake(describe_tasks=found if callable(found) else lambda: found)
    job = claimed(awaited=replace(AWAITED, **fields))
    return type_.check_end(job, of(calls, job, must_stop=must_stop), now), calls


def stops(calls: FakeCalls) -> list[str]:
    return [each.parameters["reason"] for each in calls.asked if each.operation == "stop_task"]


def test_a_check_that_finds_a_running_task_notes_that_it_has_begun() -> None:
    result, calls = checked({"tasks": [{"lastStatus": "RUNNING"}]})
    assert result.awaited == replace(AWAITED, start_by=None) and not stops(calls)


def test_a_task_is_stopped_with_the_reason_that_its_end_tells() -> None:
    why = Failure(FailureKind.TIMEOUT, "its time-out of 3600 s passed")
    result, calls = checked({"tasks": [{"lastStatus": "RUNNING"}]}, must_stop=why)
    assert result.awaited is not None and result.awaited.stopping is not None
    (reason,) = stops(calls)
    assert (end := ecs.judged(task(0, stopCode="UserInitiated", stoppedReason=reason), AWAITED)) is not None and end.failure == why


def test_a_container_that_does_not_begin_in_time_is_stopped() -> None:
    _, calls = checked({"tasks": [{"lastStatus": "PENDING"}]}, now=NOW + 899_999)
    assert not stops(calls)
    _, calls = checked({"tasks": [{"lastStatus": "PENDING"}]}, now=NOW + 900_000)
    assert len(stops(calls)) == 1
    _, calls = checked({"tasks": [{"lastStatus": "RUNNING"}]}, now=NOW + 900_000)
    assert not stops(calls)


def test_a_task_that_aws_does_not_know_is_a_crash_once_it_would_be_shown() -> None:
    missing = {"tasks": [], "failures": [{"reason": "MISSING"}]}
    early, _ = checked(missing, now=NOW + SETTLES_MS - 1)
    late, _ = checked(missing, now=NOW + SETTLES_MS)
    assert early.awaited == AWAITED and late.failure is not None and late.failure.kind is FailureKind.CRASHED


def test_while_aws_refuses_a_check_the_work_goes_on_but_not_for_ever() -> None:
    refused = raising(Refused("AccessDeniedException", retryable=False))
    over = NOW + 3_600_000 + GIVE_UP_MS
    early, _ = checked(refused, now=over - 1)
    late, _ = checked(refused, now=over)
    assert early.awaited == AWAITED and late.failure is not None and late.failure.kind is FailureKind.CRASHED


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"cluster": CLUSTER.replace("/jobs", "/other")}, "cluster"),
        ({"cluster": CLUSTER.replace("eu-west-1", "eu-west-2")}, "cluster"),
        ({"cluster": CLUSTER.replace("123456789012", "210987654321")}, "cluster"),
        ({"launch_type": "FARGATE", "capacity_providers": {"FARGATE_SPOT": 1}}, "capacity_providers"),
        ({"public_ip": True}, "public_ip"),
        ({"containers": [{"name": "main", "command": ["x" * 9_000]}]}, "containers"),
    ],
)
def test_a_contradiction_is_refused_with_its_field(change: dict[str, Any], field: str) -> None:
    type_.check(MINIMAL, REACH)
    with pytest.raises(NotAllowed) as found:
        type_.check(MINIMAL | change, REACH)
    assert found.value.field == field


@pytest.mark.parametrize("change", [{"cluster": "jobs"}, {"task_definition": "report:3"}, {"containers": [{"name": "a", "role": "x"}]}])
def test_a_wrong_value_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(ecs.Payload).validate_python(MINIMAL | change)
