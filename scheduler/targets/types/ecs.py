"""`ecs`: runs a container in Amazon ECS, and waits for its end unless told otherwise."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal
from urllib.parse import quote

from annotated_types import Ge, Le, MaxLen, MinLen, Predicate

from scheduler.model import instants, lifecycle
from scheduler.model.job import Awaited, Failure, FailureKind, Job, JobKey, Result
from scheduler.targets import arns, awaited_ends, aws_call
from scheduler.targets.awaited_ends import AwaitedEnds, Detail, Started
from scheduler.targets.base import Context, NotAllowed, Reach
from scheduler.targets.calls import Calls, Refused, Request
from scheduler.targets.job_context import JobContext
from scheduler.targets.target_type import Permission, Resource, TargetType

MOST_OVERRIDES = 8_192  # characters of RunTask's `overrides` (ECS API Reference, RunTask)
STOPPED = "STOPPED"
TRACE = "TRACEPARENT"  # https://opentelemetry.io/docs/specs/otel/context/env-carriers/
STARTED_BY = "punctual/"  # the beginning of `startedBy` of a task whose end is awaited
CAPACITY = ("RESOURCE:", "AGENT", "CAPACITY", "Capacity is unavailable")  # beginnings of reasons: there is no room at the moment
TAKEN_AWAY = ("SpotInterruption", "TerminationNotice", "InfrastructureHealth")  # stop codes: AWS took the machine
DENIED = "; see the options allowed_targets, with the task definition and the cluster, and container_roles, with the roles of the task"
LONGEST_REASON = 255  # characters of the reason of StopTask


def _tasks(cluster: str) -> str:
    """The tasks of a cluster, or of the clusters of a pattern."""
    return f"{cluster.replace(':cluster/', ':task/')}/*"


def _revisions(definition: str) -> str:
    """The ARN that IAM checks of a task definition: AWS resolves the revision before it authorizes the call."""
    return definition if definition.endswith("*") or re.search(r":[0-9]+$", definition) else f"{definition}:*"


def _is_cluster(text: str) -> bool:
    if re.fullmatch(r"arn:aws[a-z-]*:ecs:[a-z0-9-]+:\d{12}:cluster/[A-Za-z0-9_-]{1,255}", text) is None:
        raise ValueError("must be the ARN of a cluster, such as arn:aws:ecs:eu-west-1:123456789012:cluster/jobs")
    return True


RESOURCE = Resource(
    "task_definition",
    service="ecs",
    form=r"task-definition/[A-Za-z0-9_-]{1,255}(:[0-9]{1,9})?",
    noun="the ARN of a task definition, with or without its revision",
    permissions=(
        Permission("ecs:RunTask", on=_revisions, kind="task-definition/", only=("ecs:cluster", "cluster/")),
        Permission("ecs:DescribeTasks", kind="cluster/", on=_tasks),
        Permission("ecs:StopTask", kind="cluster/", on=_tasks),
        Permission("ecs:TagResource", kind="cluster/", on=_tasks),  # of a task that starts with tags
        Permission("ecs:DescribeTaskDefinition", kind="task-definition/", on=lambda arn: "*"),  # AWS checks no resource of it
    ),
)


@dataclass(frozen=True, slots=True)
class Container:
    """The differences for one container of the task definition."""

    __pydantic_config__: ClassVar = {"extra": "forbid", "use_attribute_docstrings": True}

    name: Annotated[str, MinLen(1), MaxLen(255)]
    """The name of the container in the task definition."""
    command: Annotated[list[str], MaxLen(1000)] = field(default_factory=list)
    """The command, instead of that of the task definition."""
    environment: dict[str, str] = field(default_factory=dict)
    """Environment variables, in addition to those of the task definition."""
    cpu: Annotated[int, Ge(0), Le(200_000)] = 0
    """CPU units of the container. 0: as the task definition says, here and below."""
    memory: Annotated[int, Ge(0), Le(4_000_000)] = 0
    """The hard limit of its memory in MiB."""
    memory_reservation: Annotated[int, Ge(0), Le(4_000_000)] = 0
    """The soft limit of its memory in MiB."""


@dataclass(frozen=True, slots=True)
class Payload:
    """A container, or several that run together as one task."""

    __pydantic_config__: ClassVar = {"extra": "forbid", "use_attribute_docstrings": True}

    cluster: Annotated[str, MaxLen(300), Predicate(_is_cluster)]
    """The ARN of the cluster."""
    task_definition: Annotated[str, MaxLen(350), Predicate(RESOURCE.is_arn)]
    """The ARN of the task definition. Without a revision, the latest active one runs."""
    launch_type: Literal["", "FARGATE", "EC2", "EXTERNAL"] = ""
    """The kind of machine that runs the task. Empty: as the cluster says."""
    capacity_providers: Annotated[dict[str, Annotated[int, Ge(0), Le(1000)]], MaxLen(20)] = field(default_factory=dict)
    """The capacity providers, instead of a launch type: the weight of each, by its name, such as FARGATE_SPOT."""
    platform_version: Annotated[str, MaxLen(32)] = ""
    """The platform version of Fargate. Default: LATEST."""
    subnets: Annotated[list[str], MaxLen(16)] = field(default_factory=list)
    """The subnets of a task with the network mode awsvpc, as Fargate requires."""
    security_groups: Annotated[list[str], MaxLen(5)] = field(default_factory=list)
    """The security groups of such a task. Default: the default group of the network."""
    public_ip: bool = False
    """Whether such a task gets a public address."""
    containers: Annotated[list[Container], MaxLen(50)] = field(default_factory=list)
    """The differences for containers of the task definition. The exit codes of these containers decide whether the job succeeds, or
    those of all essential containers if none is named."""
    cpu: Annotated[str, MaxLen(16)] = ""
    """CPU units of the whole task, such as 1024, or 1 vCPU. Default: those of the task definition."""
    memory: Annotated[str, MaxLen(16)] = ""
    """The memory of the whole task in MiB, such as 2048, or 2 GB. Default: that of the task definition."""
    group: Annotated[str, MaxLen(255)] = ""
    """The task group. Default: the family of the task definition."""
    tags: Annotated[dict[str, str], MaxLen(50)] = field(default_factory=dict)
    """Tags of the task."""
    propagate_tags: bool = False
    """Whether the task gets the tags of the task definition, too."""
    execute_command: bool = False
    """Whether ECS Exec may open a shell in the containers."""
    wait: bool = True
    """Whether the job runs until the containers have stopped, and fails if one of them does. If not, the job succeeds once ECS has accepted
    the task."""
    start_seconds: Annotated[int, Ge(30), Le(86_400)] = 900
    """If the containers have not begun to run after this time, the task is stopped, and the attempt fails. Only with `wait`."""


def check(payload: Mapping[str, Any], reach: Reach) -> None:
    """Raises NotAllowed if a field contradicts another one, if the overrides are too long, or if the stage does not allow the cluster."""
    if payload.get("launch_type") and payload.get("capacity_providers"):
        raise NotAllowed("capacity_providers", "excludes launch_type: AWS accepts one of them")
    for name in ("security_groups", "public_ip"):
        if payload.get(name) and not payload.get("subnets"):
            raise NotAllowed(name, "needs subnets")
    if (length := len(json.dumps(_overrides(payload)))) > MOST_OVERRIDES:
        raise NotAllowed("containers", f"are {length:,} characters as overrides of RunTask; AWS accepts {MOST_OVERRIDES:,}")
    cluster, definition = payload.get("cluster"), payload.get("task_definition")
    if cluster is None:
        return
    if definition is not None and cluster.split(":")[3:5] != definition.split(":")[3:5]:
        raise NotAllowed("cluster", "must be in the region and account of the task definition")
    if not arns.is_allowed(cluster, reach.arns):
        allowed = [each for each in arns.of_service("ecs", reach.arns) if ":cluster/" in each]
        shown = ", ".join(allowed) or "none (operators set the option allowed_targets)"
        raise NotAllowed("cluster", f"is not allowed for jobs of this stage; allowed: {shown}")


def _overrides(payload: Mapping[str, Any], parent: str | None = None) -> dict[str, Any]:
    """The overrides of RunTask. `parent`: a traceparent for the containers in them, as far as there is room."""
    containers = [_override(Container(**each), parent) for each in payload.get("containers") or ()]
    found = {"containerOverrides": containers, "cpu": payload.get("cpu"), "memory": payload.get("memory")}
    written = {name: value for name, value in found.items() if value}
    return written if parent is None or len(json.dumps(written)) <= MOST_OVERRIDES else _overrides(payload)


def _override(container: Container, parent: str | None) -> dict[str, Any]:
    trace = {} if parent is None else {TRACE: parent}
    environment = [{"name": name, "value": each} for name, each in (trace | dict(container.environment)).items()]
    found = {
        "name": container.name,
        "command": container.command,
        "environment": environment,
        "cpu": container.cpu,
        "memory": container.memory,
        "memoryReservation": container.memory_reservation,
    }
    return {name: value for name, value in found.items() if value}


def _parameters(payload: Mapping[str, Any], token: str, started_by: str, parent: str | None) -> dict[str, Any]:
    """The parameters of RunTask, the same for the same token. `parent`: see `_overrides`."""
    request = Payload(**payload)
    addresses = {
        "subnets": list(request.subnets),
        "securityGroups": list(request.security_groups),
        "assignPublicIp": "ENABLED" if request.public_ip else "DISABLED",
    }
    found = {
        "cluster": request.cluster,
        "taskDefinition": request.task_definition,
        "clientToken": token,
        "startedBy": started_by,
        "launchType": request.launch_type,
        "capacityProviderStrategy": [{"capacityProvider": name, "weight": weight} for name, weight in request.capacity_providers.items()],
        "platformVersion": request.platform_version,
        "networkConfiguration": {"awsvpcConfiguration": addresses} if request.subnets else None,
        "overrides": _overrides(payload, parent),
        "group": request.group,
        "tags": [{"key": name, "value": value} for name, value in request.tags.items()],
        "propagateTags": "TASK_DEFINITION" if request.propagate_tags else None,
        "enableExecuteCommand": request.execute_command or None,
    }
    return {name: value for name, value in found.items() if value}


def _request(payload: Mapping[str, Any], job: Job, context: JobContext) -> str:
    """RunTask's parameters, to be repeated as they are. `startedBy` names the attempt: the events of the task have it."""
    started_by = f"{STARTED_BY}{job.owner}/{job.id}/{job.fence}"
    return json.dumps(_parameters(payload, f"{job.id}-{job.fence}", started_by, context.traceparent), ensure_ascii=False)


def run(payload: Mapping[str, Any], context: Context) -> Result:
    """Start the task once. With `wait`, the result says that it goes on; else the output is the ARN of the task.

    An attempt after one whose answer was lost repeats the stored request, so that AWS answers with the task that runs already.
    """
    awaited, waits = context.awaited, payload.get("wait", True)
    if not waits:
        parameters = _parameters(payload, context.job_id, "punctual", context.job.steady_parent)
    elif awaited is not None and awaited.request is not None:
        parameters = json.loads(awaited.request)
    else:
        return Result(failure=Failure(FailureKind.RETRYABLE, "the request could not be prepared; the log of the executor has the reason"))

    def call(calls: Calls) -> Result:
        try:
            answer = calls.send(Request("ecs", "run_task", parameters, arns.region(parameters["cluster"])), left=context.left)
        except Refused as refused:
            if not refused.is_denied:
                raise
            return Result(failure=Failure(FailureKind.PERMANENT, f"{refused}{DENIED}"[:500]))
        if not answer.get("tasks"):
            return Result(failure=_no_place(answer.get("failures") or ()))
        task = answer["tasks"][0]
        if awaited is None or not waits:
            return Result(output=task["taskArn"])
        start_by = context.now() + Payload(**payload).start_seconds * 1000
        facts = _facts(calls, task.get("taskDefinitionArn") or parameters["taskDefinition"], parameters, task["taskArn"], context)
        return awaited_ends.goes_on(replace(awaited, id=task["taskArn"], start_by=start_by, facts=facts))

    return (aws_call.started if waits else aws_call.attempt)("ecs", payload, context, call)


def _no_place(failures: Sequence[Mapping[str, Any]]) -> Failure:
    """The failure of a task that ECS did not start: a lack of capacity uses up no attempt."""
    reasons = sorted({": ".join(filter(None, (each.get("reason"), each.get("detail")))) for each in failures})
    lacks = bool(reasons) and all(reason.startswith(CAPACITY) for reason in reasons)
    text = f"ECS did not start the task: {'; '.join(reasons) or 'without a reason'}"[:500]
    return Failure(FailureKind.THROTTLED if lacks else FailureKind.RETRYABLE, text)


def _facts(calls: Calls, definition: str, parameters: Mapping[str, Any], task: str, context: Context) -> dict[str, Any]:
    """The containers that decide the end, and links to their logs. Empty if the task definition cannot be read."""
    try:
        found = _definition(calls, definition, context)
    except Refused:
        return {}
    named = [each["name"] for each in (parameters.get("overrides") or {}).get("containerOverrides", ())]
    essential = [each["name"] for each in found if each.get("essential", True)]
    logs = {each["name"]: link for each in found if (link := _log_link(each, task)) is not None}
    return {"decide": named or essential, "logs": logs}


def _definition(calls: Calls, arn: str, context: Context) -> Sequence[Mapping[str, Any]]:
    """The containers of a task definition. Raises Refused."""
    known = _known_definitions(arns.region(arn))
    if arn not in known:
        answer = calls.send(Request("ecs", "describe_task_definition", {"taskDefinition": arn}, arns.region(arn)), left=context.left)
        if len(known) >= 100:
            known.clear()
        known[arn] = answer["taskDefinition"]["containerDefinitions"]
    return known[arn]


@lru_cache
def _known_definitions(region: str) -> dict[str, Sequence[Mapping[str, Any]]]:
    """The task definitions that this process has read, by ARN: a revision never changes."""
    return {}


def _log_link(container: Mapping[str, Any], task: str) -> str | None:
    """The page of a container's log in the AWS console, if it writes to CloudWatch Logs with a prefix; `task`: the ARN of the task."""
    how = container.get("logConfiguration") or {}
    options = how.get("options") or {}
    if how.get("logDriver") != "awslogs" or not options.get("awslogs-group") or not options.get("awslogs-stream-prefix"):
        return None
    stream = f"{options['awslogs-stream-prefix']}/{container['name']}/{task.rpartition('/')[2]}"
    region = options.get("awslogs-region") or arns.region(task)
    place = f"log-groups/log-group/{_in_link(options['awslogs-group'])}/log-events/{_in_link(stream)}"
    return f"{arns.console(task, region)}/cloudwatch/home?region={region}#logsV2:{place}"


def _in_link(text: str) -> str:
    return quote(quote(text, safe=""), safe="").replace("%", "$")


def check_end(job: Job, context: Context, now: int) -> Result:
    """Describe the task; stop it if the job must stop, or if it has not begun to run in time."""
    awaited = job.awaited
    assert awaited is not None and awaited.id is not None
    task_arn, cluster, region = awaited.id, json.loads(awaited.request or "{}").get("cluster", ""), arns.region(awaited.id)

    def call(calls: Calls) -> Result:
        of_task = {"cluster": cluster, "tasks": [task_arn]}
        answer = calls.send(Request("ecs", "describe_tasks", of_task, region), left=context.left)
        if not answer.get("tasks"):
            return awaited_ends.unknown(job, awaited, "the task", now, lifecycle.started_at(job))
        task = answer["tasks"][0]
        if (ended := judged(task, awaited)) is not None:
            return ended
        begun = task.get("startedAt") is not None or task.get("lastStatus") == "RUNNING"
        why = context.must_stop
        if why is None and not begun and awaited.start_by is not None and now >= awaited.start_by:
            why = Failure(FailureKind.RETRYABLE, "its containers did not begin to run within the start_seconds of its payload")
        if why is not None:
            reason = awaited_ends.stop_reason(why)[:LONGEST_REASON]
            calls.send(Request("ecs", "stop_task", {"cluster": cluster, "task": task_arn, "reason": reason}, region), left=context.left)
        stopping = awaited.stopping if why is None else f"the task is being stopped: {why.message}"
        return awaited_ends.goes_on(replace(awaited, start_by=None if begun else awaited.start_by, stopping=stopping))

    return aws_call.checked(job, context, now, call)


def _link(task: str) -> str:
    region, (cluster, id) = arns.region(task), task.split("/")[-2:]
    return f"{arns.console(task)}/ecs/v2/clusters/{cluster}/tasks/{id}?region={region}"


def _started_by(detail: Detail) -> Started | None:
    found = re.fullmatch(STARTED_BY + r"([^/]+)/([^/]+)/(\d+)", detail.get("startedBy") or "")
    return None if found is None else Started(JobKey(found[1], found[2]), int(found[3]), str(detail.get("taskArn")))


def judged(task: Detail, awaited: Awaited) -> Result | None:
    """The result of a task by its description, or by an event of it; None: it has not stopped.

    A task that the scheduler stopped has the failure for which it was stopped, whatever its exit codes are.
    """
    if task.get("lastStatus") != STOPPED:
        return None
    output, code, reason = json.dumps(_shown(task, awaited), ensure_ascii=False), task.get("stopCode"), task.get("stoppedReason") or ""
    if code == "UserInitiated":
        by_us = awaited_ends.stopped_by_us(reason)
        return Result(output, failure=by_us or Failure(FailureKind.PERMANENT, f"the task was stopped in AWS: {reason}"[:500]))
    if code in TAKEN_AWAY:
        return Result(output, failure=Failure(FailureKind.THROTTLED, f"AWS took the task's capacity away ({code}): {reason}"[:500]))
    if code == "TaskFailedToStart":
        lacks = any(text in reason for text in CAPACITY)
        kind = FailureKind.THROTTLED if lacks else FailureKind.RETRYABLE
        return Result(output, failure=Failure(kind, f"the task did not start: {_why(task, reason)}"[:500]))
    decide = set(awaited.facts.get("decide") or ()) or {each.get("name") for each in task.get("containers") or ()}
    bad = [each for each in task.get("containers") or () if each.get("name") in decide and each.get("exitCode") != 0]
    if not bad and task.get("containers"):
        return Result(output)
    return Result(output, failure=Failure(FailureKind.RETRYABLE, _exits(bad, reason)[:500]))


def _why(task: Detail, reason: str) -> str:
    """The reasons of the containers, such as an image that cannot be pulled; else the reason of the task."""
    return "; ".join(sorted({each["reason"] for each in task.get("containers") or () if each.get("reason")})) or reason


def _exits(bad: Sequence[Mapping[str, Any]], reason: str) -> str:
    shown = [
        f"the container {each.get('name')} "
        + (f"exited with code {each['exitCode']}" if each.get("exitCode") is not None else "has no exit code")
        + (f": {each['reason']}" if each.get("reason") else "")
        for each in bad
    ]
    return "; ".join(shown) or f"the task stopped: {reason}"


def _shown(task: Detail, awaited: Awaited) -> dict[str, Any]:
    """The end of a task, as the output of its job shows it. Instants are RFC 3339 texts."""
    logs = awaited.facts.get("logs") or {}
    containers = [
        {"name": each.get("name"), "exit_code": each.get("exitCode"), "reason": each.get("reason"), "log": logs.get(each.get("name"))}
        for each in sorted(task.get("containers") or (), key=lambda each: str(each.get("name")))
    ]
    return {
        "task": (arn := task.get("taskArn")),
        "url": None if arn is None else _link(arn),
        "status": task.get("lastStatus"),
        "stop_code": task.get("stopCode"),
        "stopped_reason": task.get("stoppedReason"),
        "started_at": _instant(task.get("startedAt")),
        "stopped_at": _instant(task.get("stoppedAt")),
        "containers": containers,
    }


def _instant(value: Any) -> str | None:
    """An instant of a description (a datetime) or of an event (a text)."""
    return value if value is None or isinstance(value, str) else instants.render(round(value.timestamp() * 1000))


TYPE = TargetType(
    payload=Payload,
    run=run,
    check=check,
    content=("containers", "tags"),
    resource=RESOURCE,
    equal_attempts=True,
    ends=AwaitedEnds(
        are_awaited=lambda payload: bool(payload.get("wait", True)),
        request=_request,
        check=check_end,
        source="aws.ecs",
        detail_type="ECS Task State Change",
        pattern=lambda allowed: {"startedBy": [{"prefix": STARTED_BY}], "lastStatus": [STOPPED]},
        started_by=_started_by,
        link=_link,
        judged=judged,
    ),
)
