"""The containers of the local AWS, by a clock that each test sets."""

import asyncio
import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from ministack.services import ecs, eventbridge, sqs

from local import containers
from local.containers import Containers, answering


@dataclass
class Local:
    """A cluster with a task definition `report` of two containers, and a queue that gets the events of its tasks."""

    now: float = 0.0
    name: str = field(default_factory=lambda: f"c{secrets.token_hex(4)}")
    during: Callable[[], None] = lambda: None  # happens while an answer of RunTask is late

    def __post_init__(self) -> None:
        self.tasks = Containers(clock=lambda: self.now, pause=self.pause)
        ecs._create_cluster({"clusterName": self.name})
        defined = [{"name": name, "image": "example"} for name in ("main", "sidecar")]
        ecs._register_task_definition({"family": self.name, "containerDefinitions": defined})
        send(sqs.handle_request, "AmazonSQS.CreateQueue", QueueName=self.name)
        pattern = {"source": ["aws.ecs"], "detail": {"startedBy": [{"prefix": f"{self.name}/"}]}}
        send(eventbridge.handle_request, "AWSEvents.PutRule", Name=self.name, EventPattern=json.dumps(pattern))
        queue = {"Id": "1", "Arn": f"arn:aws:sqs:us-east-1:000000000000:{self.name}"}
        send(eventbridge.handle_request, "AWSEvents.PutTargets", Rule=self.name, Targets=[queue])

    def pause(self, seconds: float) -> None:
        self.now += seconds
        self.during()

    def request(self, variables: Mapping[str, str] | None = None, **more: Any) -> dict[str, Any]:
        environment = [{"name": name, "value": value} for name, value in (variables or {}).items()]
        overrides = {"containerOverrides": [{"name": "main", "environment": environment}]}
        return {"cluster": self.name, "taskDefinition": self.name, "startedBy": f"{self.name}/1", "overrides": overrides, **more}

    def run(self, variables: Mapping[str, str] | None = None, **more: Any) -> str:
        """Run a task. Returns its ARN."""
        return str(answered(self.tasks.run_task, self.request(variables, **more))["tasks"][0]["taskArn"])

    def stop(self, arn: str, **more: Any) -> Any:
        return answered(self.tasks.stop_task, {"cluster": self.name, "task": arn, **more})

    def described(self, arn: str, after: float = 0.0) -> Any:
        """What DescribeTasks answers after these seconds: the task, or why there is none."""
        self.now += after
        found = answered(self.tasks.describe_tasks, {"cluster": self.name, "tasks": [arn]})
        return found["tasks"][0] if found["tasks"] else found["failures"][0]["reason"]

    def events(self, after: float = 0.0) -> list[dict[str, Any]]:
        """The details of the events that the queue got since the last call."""
        self.now += after
        self.tasks.catch_up()
        url = f"http://localhost:4566/000000000000/{self.name}"
        found = send(sqs.handle_request, "AmazonSQS.ReceiveMessage", QueueUrl=url, MaxNumberOfMessages=10)
        return [json.loads(each["Body"])["detail"] for each in found.get("Messages", ())]


def send(handle: Any, target: str, **fields: Any) -> Any:
    status, _, body = asyncio.run(handle("POST", "/", {"x-amz-target": target, "host": "localhost:4566"}, json.dumps(fields).encode(), {}))[
        :3
    ]
    assert status == 200, body
    return json.loads(body)


def answered(call: Callable[[Any], Any], request: dict[str, Any], status: int = 200) -> Any:
    found, _, body = answering(call)(request)
    assert found == status, body
    return json.loads(body)


@pytest.fixture
def local(monkeypatch: pytest.MonkeyPatch) -> Local:
    monkeypatch.setattr(ecs, "_get_docker", lambda: None)
    return Local()


def ended(task: Any) -> tuple[str, str, dict[str, int | None]]:
    """How a task ended: code, reason, and exit codes of its containers."""
    assert task["lastStatus"] == task["desiredStatus"] == "STOPPED" and task["stoppedAt"]
    return task["stopCode"], task["stoppedReason"], {each["name"]: each.get("exitCode") for each in task["containers"]}


def test_each_change_of_a_task_has_its_time_and_its_event(local: Local) -> None:
    arn = local.run({"START_AFTER": "5", "EXIT_AFTER": "10", "EXIT_CODE": "3"})
    assert [local.described(arn, after)["lastStatus"] for after in (0, 4.9, 0.1, 9.9)] == ["PENDING", "PENDING", "RUNNING", "RUNNING"]
    task = local.described(arn, after=0.1)
    assert ended(task) == ("EssentialContainerExited", "Essential container in task exited", {"main": 3, "sidecar": 0})
    events = local.events()
    assert [each["lastStatus"] for each in events] == ["PENDING", "RUNNING", "STOPPED"]
    assert [each["version"] for each in events] == [2, 3, 5] and events[-1]["updatedAt"] == events[-1]["stoppedAt"]
    assert events[-1]["containers"] == task["containers"] and {each["startedBy"] for each in events} == {f"{local.name}/1"}


def test_a_task_without_variables_runs_until_it_is_stopped(local: Local) -> None:
    assert local.described(local.run(), after=1e6)["lastStatus"] == "RUNNING"


@pytest.mark.parametrize(
    ("variables", "reason", "code", "started"),
    [
        ({"STOP_CODE": "TaskFailedToStart"}, "CannotPullContainerError: the image does not exist", None, False),
        ({"STOP_CODE": "SpotInterruption", "EXIT_AFTER": "1"}, "SpotInterruption", None, True),
        ({"STOP_CODE": "InfrastructureHealth", "EXIT_AFTER": "1", "EXIT_CODE": "137", "REASON": "Lost"}, "Lost", 137, True),
    ],
)
def test_an_abnormal_end_has_an_exit_code_only_if_it_is_set(
    local: Local, variables: dict[str, str], reason: str, code: int | None, started: bool
) -> None:
    task = local.described(local.run(variables | {"CONTAINER_REASON": "OutOfMemoryError"}), after=1)
    assert ended(task) == (variables["STOP_CODE"], reason, {"main": code, "sidecar": None})
    assert ("startedAt" in task) is started and task["containers"][0]["reason"] == "OutOfMemoryError"


@pytest.mark.parametrize(
    ("variables", "code"),
    [
        ({}, 143),
        ({"EXIT_AFTER": "100", "STOP_AFTER": "7"}, 143),
        ({"EXIT_AFTER": "3", "EXIT_CODE": "5", "STOP_AFTER": "7"}, 5),  # its program ends before SIGTERM does
        ({"START_AFTER": "60"}, None),
        ({"STOP_CODE": "TaskFailedToStart", "START_AFTER": "3", "STOP_AFTER": "7"}, None),
    ],
)
def test_a_task_that_is_stopped_ends_once_with_the_reason_of_its_caller(local: Local, variables: dict[str, str], code: int | None) -> None:
    arn = local.run(variables)
    local.described(arn)
    stopping = local.stop(arn, reason="cancelled")["task"]
    assert stopping["desiredStatus"] == "STOPPED" != stopping["lastStatus"]
    local.stop(arn, reason="again")
    task = local.described(arn, after=200)
    assert ended(task)[:2] == ("UserInitiated", "cancelled") and ended(task)[2]["main"] == code
    assert local.stop(arn, reason="late")["task"] == task | {name: ecs._tasks[arn][name] for name in task if name.endswith("At")}
    assert [each["lastStatus"] for each in local.events()].count("STOPPED") == 1


def test_a_client_token_starts_one_task_until_it_is_forgotten(local: Local) -> None:
    request = local.request({"EXIT_AFTER": "10"}, clientToken="once")
    first = answered(local.tasks.run_task, request)
    local.now = 3_609
    assert answered(local.tasks.run_task, dict(reversed(request.items()))) == first
    arn = first["tasks"][0]["taskArn"]
    conflict = answered(local.tasks.run_task, request | {"startedBy": "another"}, 400)
    assert conflict["__type"] == "ConflictException" and conflict["resourceIds"] == [arn]
    ecs._create_cluster({"clusterName": f"{local.name}-2"})
    assert local.run({"EXIT_AFTER": "10"}, clientToken="once", cluster=f"{local.name}-2") != arn
    assert local.described(arn, after=10) == "MISSING"
    assert local.run({"EXIT_AFTER": "10"}, clientToken="once") != arn


def test_a_client_token_lasts_for_a_day_at_most(local: Local) -> None:
    arn = local.run(clientToken="once")
    local.now = 86_399
    assert local.run(clientToken="once") == arn
    local.now = 86_400
    assert local.run(clientToken="once") != arn


def test_stopped_tasks_are_forgotten_after_a_set_time(local: Local) -> None:
    arn = local.run({"EXIT_AFTER": "0", "FORGET_AFTER": "20"})
    assert local.described(arn, after=0)["lastStatus"] == "STOPPED" and local.described(arn, after=20) == "MISSING"
    assert answered(local.tasks.stop_task, {"cluster": local.name, "task": arn}, 400)["__type"] == "InvalidParameterException"


def test_capacity_is_refused_as_often_as_the_variable_says(local: Local) -> None:
    request = local.request({"REFUSE": "2:RESOURCE:CPU"}, clientToken="token")
    answers = [answered(local.tasks.run_task, request) for _ in range(3)]
    assert [[each["reason"] for each in answer["failures"]] for answer in answers] == [["RESOURCE:CPU"], ["RESOURCE:CPU"], []]
    assert [len(answer["tasks"]) for answer in answers] == [0, 0, 1]


@pytest.mark.parametrize(("events", "stopped"), [("none", (0, 0)), ("twice", (2, 0)), ("late:5", (0, 1))])
def test_events_are_lost_doubled_or_late(local: Local, events: str, stopped: tuple[int, int]) -> None:
    local.run({"EXIT_AFTER": "0", "EVENTS": events})
    found = [[each["lastStatus"] for each in local.events(after)].count("STOPPED") for after in (4.9, 0.1)]
    assert tuple(found) == stopped


def test_a_late_answer_of_run_task_comes_after_the_end_of_the_task(local: Local) -> None:
    before: list[str] = []
    local.during = lambda: before.extend(each["lastStatus"] for each in local.events())
    arn = local.run({"ANSWER_AFTER": "2", "EXIT_AFTER": "1"}, clientToken="once")
    assert before == ["PENDING", "RUNNING", "STOPPED"]
    assert local.run({"ANSWER_AFTER": "2", "EXIT_AFTER": "1"}, clientToken="once") == arn and local.now == 2


LONG = {"containerOverrides": [{"name": "main", "command": ["x" * containers.OVERRIDES]}]}
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"cluster": "unknown"}, "ClusterNotFoundException"),
    ({"taskDefinition": "unknown"}, "ClientException"),
    ({"startedBy": "x" * 129}, "InvalidParameterException"),
    ({"startedBy": "job:1"}, "InvalidParameterException"),
    ({"clientToken": "x" * 65}, "InvalidParameterException"),
    ({"clientToken": "a b"}, "InvalidParameterException"),
    ({"count": 11}, "InvalidParameterException"),
    ({"overrides": LONG}, "InvalidParameterException"),
    ({"overrides": {"containerOverrides": [{"name": "other"}]}}, "InvalidParameterException"),
    ({"launchType": "FARGATE", "capacityProviderStrategy": [{"capacityProvider": "FARGATE"}]}, "InvalidParameterException"),
]


@pytest.mark.parametrize(("fields", "code"), REFUSED)
def test_a_request_that_aws_refuses_starts_no_task(local: Local, fields: dict[str, Any], code: str) -> None:
    before = len(ecs._tasks)
    assert answered(local.tasks.run_task, local.request() | fields, 400)["__type"] == code
    assert len(ecs._tasks) == before


@pytest.mark.parametrize("variable", [{"EXIT_AFTER": "soon"}, {"EXIT_CODE": "x"}, {"EVENTS": "often"}, {"REFUSE": "CPU"}])
def test_a_wrong_variable_is_refused_by_its_name(local: Local, variable: dict[str, str]) -> None:
    assert next(iter(variable)) in answered(local.tasks.run_task, local.request(variable), 400)["message"]


def test_calls_with_an_unknown_cluster_are_refused(local: Local) -> None:
    for call in (local.tasks.stop_task, local.tasks.describe_tasks, local.tasks.list_tasks):
        assert answered(call, {"cluster": "unknown", "task": "x", "tasks": ["x"]}, 400)["__type"] == "ClusterNotFoundException"
