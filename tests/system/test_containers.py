"""Jobs that wait for containers and executions, on the local AWS with IAM enforced: each end, a cancel, a crash, and lost events.

The local AWS runs no image: the variables of a container say how it ends (`local/containers.py`).
"""

import json
import os
import secrets
import signal
from datetime import datetime
from typing import Any

import pytest
from punctual import ApiError, Punctual

from infra.settings import LOCAL
from tests.system.conftest import System, ended, soon, until

CLUSTER, FAMILY = (arn for arn in LOCAL.allowed_targets if arn.split(":")[2] == "ecs")
MACHINE = next(arn for arn in LOCAL.allowed_targets if arn.split(":")[2] == "states")
NEVER = "3600"


def payload(**variables: object) -> dict[str, Any]:
    """A container with these variables."""
    environment = {name.upper(): str(value) for name, value in variables.items()}
    containers = [{"name": "main", "environment": environment}]
    return {"cluster": CLUSTER, "task_definition": FAMILY, "containers": containers}


def started(client: Punctual, job: dict[str, Any]) -> dict[str, Any]:
    """Wait until the start of the container is recorded."""
    return until(300, lambda: found if (found := client.jobs.get(job["id"]).raw)["awaited"] else None)


def tasks_of(system: System, job: dict[str, Any]) -> list[dict[str, Any]]:
    """The tasks of all attempts at a job, stopped ones too."""
    ecs = system.aws("ecs")
    arns = [arn for status in ("RUNNING", "STOPPED") for arn in ecs.list_tasks(cluster=CLUSTER, desiredStatus=status)["taskArns"]]
    found = ecs.describe_tasks(cluster=CLUSTER, tasks=arns)["tasks"] if arns else []
    return [task for task in found if f"/{job['id']}/" in task.get("startedBy", "")]


@pytest.mark.parametrize(("code", "status"), [(0, "succeeded"), (3, "failed")])
def test_a_job_ends_as_its_container(system: System, client: Punctual, code: int, status: str) -> None:
    job = client.jobs.create("ecs", payload(exit_after=1, exit_code=code), max_attempts=1).raw
    (job,) = ended(client, [job], 60)
    output = json.loads(job["output"])
    assert (job["status"], output["containers"][0]["exit_code"]) == (status, code)
    assert (
        output["containers"][0]["log"] == job["awaited"]["logs"]["main"]
        and "log-events/ecs$252Fmain$252F" in job["awaited"]["logs"]["main"]
    )
    if code:
        assert job["attempts"][0]["failure"]["message"] == "the container main exited with code 3"
    else:
        assert job["duration_ms"] >= 1_000


def test_many_containers_end_at_once(client: Punctual) -> None:
    jobs = [client.jobs.create("ecs", payload(exit_after=2)).raw for _ in range(20)]
    done = ended(client, jobs, 120)
    assert {job["status"] for job in done} == {"succeeded"}


def test_a_lack_of_capacity_uses_up_no_attempt(client: Punctual) -> None:
    unique = secrets.token_hex(4)  # refusals are counted by their text
    job = client.jobs.create("ecs", payload(exit_after=0, refuse=f"1:RESOURCE:CPU {unique}"), max_attempts=1).raw
    (job,) = ended(client, [job], 120)
    assert job["status"] == "succeeded"
    assert [attempt["failure"] and attempt["failure"]["kind"] for attempt in job["attempts"]] == ["throttled", None]


def test_a_cancel_stops_the_container(system: System, client: Punctual) -> None:
    job = started(client, client.jobs.create("ecs", payload(exit_after=NEVER, stop_after=1)).raw)
    client.jobs.cancel(job["id"])
    (job,) = ended(client, [job], 60)
    ((task,)) = tasks_of(system, job)
    assert (job["status"], task["lastStatus"], task["stoppedReason"]) == (
        "cancelled",
        "STOPPED",
        "Punctual cancelled: cancelled by request",
    )


def test_a_container_is_stopped_at_the_time_out_of_its_job(system: System, client: Punctual) -> None:
    job = client.jobs.create("ecs", payload(exit_after=NEVER), timeout_seconds=3, max_attempts=1).raw
    (job,) = ended(client, [job], 60)
    assert (job["status"], tasks_of(system, job)[0]["stopCode"]) == ("killed", "UserInitiated")


@pytest.mark.parametrize("events", ["twice", "none", "late:5"])
def test_an_end_is_found_whatever_becomes_of_its_event(client: Punctual, events: str) -> None:
    job = client.jobs.create("ecs", payload(exit_after=1, exit_code=3, events=events), max_attempts=1).raw
    (job,) = ended(client, [job], 120)
    assert (job["status"], len(job["attempts"])) == ("failed", 1)


def test_an_event_before_the_record_of_the_start_ends_the_job(client: Punctual) -> None:
    job = client.jobs.create("ecs", payload(exit_after=0, answer_after=4)).raw
    (job,) = ended(client, [job], 60)
    assert (job["status"], len(job["attempts"])) == ("succeeded", 1)


def test_a_killed_executor_starts_no_second_container(system: System, client: Punctual) -> None:
    job = client.jobs.create("ecs", payload(exit_after=80, answer_after=20)).raw
    until(300, lambda: tasks_of(system, job))
    for worker in system.workers("ExecuteOneTimeFunction"):
        os.kill(worker.pid, signal.SIGKILL)
    (job,) = ended(client, [job], 240)
    assert ([attempt["outcome"] for attempt in job["attempts"]], job["status"]) == (["crashed", "succeeded"], "succeeded")
    assert len(tasks_of(system, job)) == 1


@pytest.mark.parametrize(("overlap", "statuses"), [("skip", ["succeeded", "skipped"]), ("queue_one", ["succeeded", "succeeded"])])
def test_runs_that_are_due_while_a_container_runs(system: System, client: Punctual, overlap: str, statuses: list[str]) -> None:
    name, runs = f"containers-{secrets.token_hex(4)}", payload(exit_after=8, exit_code=0)
    created = client.tasks.create(name, "ecs", runs, at=soon(3600), overlap=overlap)
    first = client.tasks.run(created.id).raw
    started(client, first)
    second = client.tasks.run(created.id).raw
    one, two = ended(client, [first, second], 90)
    assert [one["status"], two["status"]] == statuses
    assert len(tasks_of(system, one)) == 1
    if overlap == "skip":
        assert first["id"] in two["reason"] and not tasks_of(system, two)
    else:
        assert _seconds(two["started_at"]) - _seconds(one["ended_at"]) < 1 and len(tasks_of(system, two)) == 1


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def test_what_the_stage_does_not_allow_is_refused(client: Punctual) -> None:
    with pytest.raises(ApiError) as found:
        client.jobs.create("ecs", payload() | {"cluster": CLUSTER.replace("punctual-sample", "other")})
    assert found.value.status == 400 and "payload.cluster" in str(found.value.details)


def test_a_cancel_stops_the_execution(system: System, client: Punctual) -> None:
    job = client.jobs.create("stepfunctions", {"state_machine": MACHINE, "input": {"seconds": 600}, "wait": True}).raw
    execution = started(client, job)["awaited"]["id"]
    client.jobs.cancel(job["id"])
    (job,) = ended(client, [job], 60)
    found = system.aws("stepfunctions").describe_execution(executionArn=execution)
    assert (job["status"], found["status"]) == ("cancelled", "ABORTED")
