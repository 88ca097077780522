"""Containers of the local AWS: tasks of ECS start, run and end as on AWS, without a container engine.

MiniStack runs each task at once and until it is stopped, ignores client tokens, sends no events, creates unknown clusters, and checks each
call of ECS on its cluster. Here:

- A task is PROVISIONING, PENDING, RUNNING, then STOPPED. Each change after the first sends "ECS Task State Change" to the default bus.
- A client token is idempotent in its cluster for 24 hours, or until its task is forgotten.
- Unknown clusters and task definitions are refused, and requests beyond AWS's limits.
- Policies are checked on task definitions and tasks, with the condition key `ecs:cluster`. RunTask needs `iam:PassRole`.

No program runs, not even where there is Docker. The environment of the containers says what their task does. As on AWS, overrides replace
variables of the task definition.

- `START_AFTER`: seconds until the task is RUNNING. Default: 0.
- `EXIT_AFTER`: seconds from RUNNING until the containers exit. Default: the task runs until it is stopped.
- `EXIT_CODE`: the exit code of the container that has this variable. Default: 0.
- `STOP_CODE`, `REASON`, `CONTAINER_REASON`: the end of the task if it is not `EssentialContainerExited`, and its texts. With
  `TaskFailedToStart` the task stops instead of running. Only `EXIT_CODE` gives the containers of such an end an exit code.
- `STOP_AFTER`: seconds from StopTask to the end of the task, whose containers then exit with 143. Default: 0.
- `FORGET_AFTER`: seconds for which a stopped task can be described. Default: 3600.
- `REFUSE`: `2:RESOURCE:CPU` lets the first two RunTask fail for this reason. They are counted by cluster, task definition and this text.
- `ANSWER_AFTER`: seconds by which the answer of RunTask is late, while the task runs. Default: 0.
- `EVENTS`: `none`, `twice` (each event is sent twice) or `late:5` (each event is sent 5 seconds late).
"""

import heapq
import itertools
import json
import logging
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from ministack.core import iam_actions
from ministack.core.responses import error_response_json, get_account_id, get_region, json_response, request_scope
from ministack.services import ecs, eventbridge

# https://docs.aws.amazon.com/AmazonECS/latest/APIReference/API_RunTask.html
STARTED_BY = r"[A-Za-z0-9/_-]{1,128}"
TOKEN = r"[!-~]{1,64}"
OVERRIDES = 8_192  # characters of their JSON
COUNT = 10
# https://docs.aws.amazon.com/AmazonECS/latest/APIReference/API_DescribeTasks.html
DESCRIBED = 100
FORGET_AFTER_S = 3_600.0
# https://docs.aws.amazon.com/AmazonECS/latest/APIReference/ECS_Idempotency.html
TOKEN_LASTS_S = 86_400.0

TERMINATED = 143  # exit code of a container that SIGTERM ended
EXITED, NOT_STARTED, BY_USER = "EssentialContainerExited", "TaskFailedToStart", "UserInitiated"
REASONS = {EXITED: "Essential container in task exited", NOT_STARTED: "CannotPullContainerError: the image does not exist"}
INVALID = "InvalidParameterException"
PASSED_TO = {"iam:PassedToService": "ecs-tasks.amazonaws.com"}

Fields = dict[str, Any]
# Returns the message of a denial: action, resource, condition keys. None: the caller of this request is allowed, or IAM is not enforced.
Check = Callable[[str, str, Fields], str | None]

log = logging.getLogger(__name__)


class Refused(Exception):
    """A call that AWS refuses: the code, message and further fields of its answer."""

    def __init__(self, code: str, message: str, **fields: Any) -> None:
        super().__init__(message)
        self.code = code
        self.fields = fields


@dataclass(frozen=True)
class Behavior:
    """The variables of a task, as the module describes them. Times are in seconds; `exit_after` None: it runs until it is stopped."""

    exit_codes: Mapping[str, int]  # by name of container
    start_after: float
    exit_after: float | None
    stop_after: float
    forget_after: float
    answer_after: float
    stop_code: str
    reason: str
    container_reason: str | None
    refusals: int
    refusal: str
    copies: int  # of each event
    late: float


def behavior(environments: Mapping[str, Mapping[str, str]]) -> Behavior:
    """Return the behavior of a task with these environments, by name of container. Raises Refused if a variable is not valid."""
    variables = {name: value for each in environments.values() for name, value in each.items()}

    def number(kind: Callable[[str], Any], name: str, value: str | None, default: Any) -> Any:
        try:
            return default if value is None else kind(value)
        except ValueError:
            raise Refused(INVALID, f"{name} must be a number: {value}") from None

    def seconds(name: str, default: float | None = 0.0) -> Any:
        return number(float, name, variables.get(name), default)

    stop_code = variables.get("STOP_CODE", EXITED)
    exits = {
        name: number(int, "EXIT_CODE", each.get("EXIT_CODE"), 0 if stop_code == EXITED else None) for name, each in environments.items()
    }
    times, _, refusal = variables.get("REFUSE", "0").partition(":")
    events, _, late = variables.get("EVENTS", "once").partition(":")
    copies = {"none": 0, "once": 1, "twice": 2, "late": 1}
    if events not in copies:
        raise Refused(INVALID, f"EVENTS must be none, twice or late:<seconds>: {events}")
    return Behavior(
        exit_codes={name: code for name, code in exits.items() if code is not None},
        start_after=seconds("START_AFTER"),
        exit_after=seconds("EXIT_AFTER", None),
        stop_after=seconds("STOP_AFTER"),
        forget_after=seconds("FORGET_AFTER", FORGET_AFTER_S),
        answer_after=seconds("ANSWER_AFTER"),
        stop_code=stop_code,
        reason=variables.get("REASON", REASONS.get(stop_code, stop_code)),
        container_reason=variables.get("CONTAINER_REASON"),
        refusals=number(int, "REFUSE", times, 0),
        refusal=refusal,
        copies=copies[events],
        late=number(float, "EVENTS", late or None, 0.0),
    )


class Containers:
    """The tasks of the local AWS. `clock` returns seconds; `pause` waits for seconds."""

    def __init__(
        self, check: Check = lambda *_: None, clock: Callable[[], float] = time.time, pause: Callable[[float], None] = time.sleep
    ) -> None:
        self._check, self._clock, self._pause = check, clock, pause
        self._run, self._stop, self._describe, self._list = ecs._run_task, ecs._stop_task, ecs._describe_tasks, ecs._list_tasks
        self._changed = threading.Condition()  # protects all that follows
        self._now = clock()
        self._due: list[tuple[float, int, tuple[str, str], Callable[[], None]]] = []
        self._number = itertools.count()
        self._behaviors: dict[str, Behavior] = {}  # by ARN of task
        self._answers: dict[tuple[str, ...], tuple[Fields, Any, list[str]]] = {}  # by token: request, answer, ARNs
        self._refusals: Counter[tuple[str, ...]] = Counter()

    def install(self) -> None:
        """Let MiniStack call this, and never use a container engine, which some machines have. Call once, before it starts."""
        ecs._get_docker = lambda: None
        calls = {"RunTask": self.run_task, "StopTask": self.stop_task, "DescribeTasks": self.describe_tasks, "ListTasks": self.list_tasks}
        ecs._ACTION_MAP.update({name: answering(call) for name, call in calls.items()})
        iam_actions.extract_resource_arn = on_tasks(iam_actions.extract_resource_arn)
        iam_actions.request_tag_context = with_cluster(iam_actions.request_tag_context)
        threading.Thread(target=self._follow, name="containers", daemon=True).start()

    def run_task(self, request: Fields) -> Any:
        """Answer RunTask. A repeated client token gets the first answer. Raises Refused."""
        with self._changed:
            self.catch_up()
            cluster = known_cluster(request)
            refuse_beyond_limits(request)
            definition = known_definition(request.get("taskDefinition", ""))
            for action, resource, keys in passed_roles(request, definition):
                self._refuse_denied(action, resource, keys)
            token = (get_account_id(), get_region(), cluster, request.get("clientToken", ""))
            if token in self._answers:
                first, answer, tasks = self._answers[token]
                if first != request:
                    text = "The provided clientToken is already in use with a different RunTask request."
                    raise Refused("ConflictException", text, resourceIds=tasks)
                return answer
            does = behavior(environments(request, definition))
            count = (cluster, definition["taskDefinitionArn"], f"{does.refusals}:{does.refusal}")
            if self._refusals[count] < does.refusals:
                self._refusals[count] += 1
                instance = f"arn:aws:ecs:{get_region()}:{get_account_id()}:container-instance/{cluster}/{'0' * 32}"
                return json_response({"tasks": [], "failures": [{"arn": instance, "reason": does.refusal}]})
            answer = self._run(request)
            if answer[0] != 200:
                return answer
            started = [ecs._tasks[each["taskArn"]] for each in json.loads(answer[2])["tasks"]]
            for task in started:
                task["group"] = task["group"] or f"family:{definition['family']}"
                self._begin(task, does)
            answer = json_response({"tasks": [ecs._sanitize(task) for task in started], "failures": []})
            if request.get("clientToken"):
                self._answers[token] = (request, answer, [task["taskArn"] for task in started])
                self._after(TOKEN_LASTS_S, partial(self._answers.pop, token, None))
        if does.answer_after:
            self._pause(does.answer_after)
        return answer

    def stop_task(self, request: Fields) -> Any:
        """Answer StopTask: the task ends later. A task that has ended, or that ends already, stays as it is. Raises Refused."""
        with self._changed:
            self.catch_up()
            task = ecs._resolve_task(request.get("task", ""), known_cluster(request))
            does = self._behaviors.get(task["taskArn"]) if task else None
            if task is None or does is None:
                return self._stop(request)
            if task["desiredStatus"] != "STOPPED":
                self._stopping(task, BY_USER, request.get("reason") or "Task stopped by user")
                self._send(task)
                self._after(does.stop_after, partial(self._end, task, dict.fromkeys(does.exit_codes, TERMINATED)))
            return json_response({"task": ecs._sanitize(task)})

    def describe_tasks(self, request: Fields) -> Any:
        """Answer DescribeTasks. Raises Refused."""
        with self._changed:
            self.catch_up()
            cluster, references = known_cluster(request), request.get("tasks") or []
            if not 1 <= len(references) <= DESCRIBED:
                raise Refused(INVALID, f"Tasks must have 1 to {DESCRIBED} elements.")
            for reference in references[1:]:  # MiniStack has checked the first
                self._refuse_denied("ecs:DescribeTasks", task_arn(cluster, reference), {"ecs:cluster": cluster_arn(cluster)})
            return self._describe(request)

    def list_tasks(self, request: Fields) -> Any:
        """Answer ListTasks. Raises Refused."""
        with self._changed:
            self.catch_up()
            known_cluster(request)
            return self._list(request)

    def catch_up(self) -> None:
        """Carry out all that is due by the clock, each at the time at which it was due."""
        with self._changed:
            while self._due and self._due[0][0] <= self._clock():
                self._now, _, scope, act = heapq.heappop(self._due)
                with request_scope(*scope):
                    act()
            self._now = self._clock()

    def _follow(self) -> None:
        """Carry out what is due until the process ends: one thread for all tasks."""
        while True:
            with self._changed:
                try:
                    self.catch_up()
                except Exception:
                    log.exception("a change of a task failed")
                self._changed.wait(max(0.0, self._due[0][0] - self._clock()) if self._due else None)

    def _after(self, seconds: float, act: Callable[[], Any]) -> None:
        heapq.heappush(self._due, (self._now + seconds, next(self._number), (get_account_id(), get_region()), act))
        self._changed.notify()

    def _refuse_denied(self, action: str, resource: str, keys: Fields) -> None:
        if denied := self._check(action, resource, keys):
            raise Refused("AccessDeniedException", denied)

    def _begin(self, task: Fields, does: Behavior) -> None:
        """Let a task of MiniStack, which runs already, begin again as PROVISIONING."""
        missing = dict.fromkeys(("startedAt", "pullStartedAt", "pullStoppedAt", "stopCode", "stoppedReason"))
        task.update(missing, lastStatus="PROVISIONING", version=1)
        for container in task["containers"]:
            container["lastStatus"] = "PENDING"
        self._behaviors[task["taskArn"]] = does
        self._after(0, partial(self._pend, task))
        if does.stop_code == NOT_STARTED:
            self._after(does.start_after, partial(self._exit, task))
            return
        self._after(does.start_after, partial(self._start, task))
        if does.exit_after is not None:
            self._after(does.start_after + does.exit_after, partial(self._exit, task))

    def _pend(self, task: Fields) -> None:
        if ecs._mark_task_pending(task["taskArn"], task):
            self._send(task)

    def _start(self, task: Fields) -> None:
        if ecs._mark_task_running(task["taskArn"], task):
            for container in task["containers"]:
                container["lastStatus"] = "RUNNING"
            self._send(task)

    def _exit(self, task: Fields) -> None:
        """Let the containers exit by themselves."""
        does = self._behaviors[task["taskArn"]]
        if task["desiredStatus"] != "STOPPED":
            self._stopping(task, does.stop_code, does.reason)
        self._end(task, does.exit_codes, does.container_reason)

    def _stopping(self, task: Fields, code: str, reason: str) -> None:
        task.update(desiredStatus="STOPPED", stoppingAt=ecs._iso(), stopCode=code, stoppedReason=reason)
        ecs._bump_task_version(task)

    def _end(self, task: Fields, exit_codes: Mapping[str, int], reason: str | None = None) -> None:
        """Stop a task, unless it has stopped. Containers that never ran have no exit code."""
        if task["lastStatus"] == "STOPPED":
            return
        now = ecs._iso()
        task.update(lastStatus="STOPPED", executionStoppedAt=now, stoppedAt=now)
        for container in task["containers"]:
            container.update(lastStatus="STOPPED", reason=reason)
            if task["startedAt"]:
                container["exitCode"] = exit_codes.get(container["name"])
        ecs._bump_task_version(task)
        ecs._recount_cluster(ecs._cluster_name_from_arn(task["clusterArn"]))
        self._send(task)
        self._after(self._behaviors[task["taskArn"]].forget_after, partial(self._forget, task["taskArn"]))

    def _forget(self, arn: str) -> None:
        ecs._tasks.pop(arn, None)
        self._behaviors.pop(arn, None)
        self._answers = {token: found for token, found in self._answers.items() if arn not in found[2]}

    def _send(self, task: Fields) -> None:
        """Send the event of a change of a task, as its behavior says."""
        does = self._behaviors[task["taskArn"]]
        detail = ecs._sanitize(task) | {"updatedAt": task.get("stoppedAt") or ecs._iso()}
        detail.pop("tags", None)
        entry = {
            "Source": "aws.ecs",
            "DetailType": "ECS Task State Change",
            "Detail": json.dumps(detail),
            "Resources": [task["taskArn"]],
        }
        for _ in range(does.copies):
            self._after(does.late, lambda: eventbridge._put_events({"Entries": [entry]}, allow_aws_source=True))


def answering(call: Callable[[Fields], Any]) -> Callable[[Fields], Any]:
    """Wrap a call: answer its refusal."""

    def wrapped(request: Fields) -> Any:
        try:
            return call(request)
        except Refused as refused:
            return error_response_json(refused.code, str(refused), 400, refused.fields)

    return wrapped


def cluster_arn(name: str) -> str:
    return f"arn:aws:ecs:{get_region()}:{get_account_id()}:cluster/{name}"


def task_arn(cluster: str, reference: str) -> str:
    """The ARN of a task, which a request names by its ARN or its id."""
    return reference if reference.startswith("arn:") else f"arn:aws:ecs:{get_region()}:{get_account_id()}:task/{cluster}/{reference}"


def known_cluster(request: Fields) -> str:
    """The name of a request's cluster. Raises Refused if there is none."""
    name = ecs._resolve_cluster_name(request.get("cluster") or "default")
    if name is None or ecs._clusters.get(name, {}).get("status") != "ACTIVE":
        raise Refused("ClusterNotFoundException", "Cluster not found.")
    return str(name)


def known_definition(reference: str) -> Fields:
    """The task definition that a request names: by its ARN, its family and revision, or its family. Raises Refused."""
    definition: Fields | None = ecs._task_defs.get(ecs._resolve_td_key(reference))
    if definition is None:
        raise Refused("ClientException", "TaskDefinition not found.")
    if definition["status"] != "ACTIVE":
        raise Refused("ClientException", "TaskDefinition is inactive")
    return definition


def refuse_beyond_limits(request: Fields) -> None:
    """Refuse what AWS's model of RunTask documents and boto3 does not check."""
    for name, form in (("startedBy", STARTED_BY), ("clientToken", TOKEN)):
        if name in request and re.fullmatch(form, request[name]) is None:
            raise Refused(INVALID, f"{name} must match {form}.")
    if len(json.dumps(request.get("overrides") or {}, separators=(",", ":"))) > OVERRIDES:
        raise Refused(INVALID, f"Overrides must have at most {OVERRIDES} characters.")
    if not 1 <= request.get("count", 1) <= COUNT:
        raise Refused(INVALID, f"Count must be 1 to {COUNT}.")


def environments(request: Fields, definition: Fields) -> dict[str, dict[str, str]]:
    """The environment of each container of a task. Raises Refused if the request overrides another container."""
    overrides = {each.get("name"): each for each in (request.get("overrides") or {}).get("containerOverrides") or ()}
    containers = {each["name"]: each for each in definition["containerDefinitions"]}
    if unknown := [name for name in overrides if name not in containers]:
        raise Refused(INVALID, f"Override for container named {unknown[0]} is not a container in the TaskDefinition.")

    def variables(places: Iterable[Fields]) -> dict[str, str]:
        return {each["name"]: each.get("value", "") for place in places for each in place.get("environment") or ()}

    return {name: variables((container, overrides.get(name, {}))) for name, container in containers.items()}


def passed_roles(request: Fields, definition: Fields) -> list[tuple[str, str, Fields]]:
    """The grants that RunTask needs for the roles of its task: those of the overrides, else of the task definition."""
    overrides = request.get("overrides") or {}
    roles = {overrides.get(name) or definition.get(name) for name in ("taskRoleArn", "executionRoleArn")}
    return [("iam:PassRole", role, PASSED_TO) for role in sorted(filter(None, roles))]


def _request(headers: Mapping[str, str], body: bytes) -> tuple[str, Fields]:
    """The action of a call of ECS, and its fields; without fields if they are not valid."""
    try:
        fields = json.loads(body or b"{}")
    except ValueError:
        fields = {}
    return headers.get("x-amz-target", "").rpartition(".")[2], fields if isinstance(fields, dict) else {}


def on_tasks(resource: Callable[..., str]) -> Callable[..., str]:
    """Wrap the resource that a call is checked on, as AWS documents it for ECS:
    https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonelasticcontainerservice.html"""

    def wrapped(service: str, method: str, path: str, headers: Mapping[str, str], body: bytes, *rest: Any) -> str:
        action, request = _request(headers, body) if service == "ecs" else ("", {})
        cluster = ecs._resolve_cluster_name(request.get("cluster") or "default") or ""
        if action == "RunTask":
            reference = str(request.get("taskDefinition", ""))
            definition = ecs._task_defs.get(ecs._resolve_td_key(reference)) or {}
            missing = (
                reference if reference.startswith("arn:") else f"arn:aws:ecs:{get_region()}:{get_account_id()}:task-definition/{reference}"
            )
            return str(definition.get("taskDefinitionArn", missing))
        if action in ("StopTask", "DescribeTasks"):
            references = [request.get("task")] if action == "StopTask" else request.get("tasks")
            return task_arn(cluster, str((references or [""])[0]))
        if action in ("DescribeTaskDefinition", "ListTaskDefinitions"):  # AWS knows no resource for them
            return "*"
        return resource(service, method, path, headers, body, *rest)

    return wrapped


def with_cluster(context: Callable[..., Fields]) -> Callable[..., Fields]:
    """Wrap the condition keys of a call: those of tasks get `ecs:cluster`."""

    def wrapped(service: str, action: str, body: bytes, *rest: Any) -> Fields:
        found = context(service, action, body, *rest)
        if action not in ("ecs:RunTask", "ecs:StopTask", "ecs:DescribeTasks", "ecs:ListTasks"):
            return found
        cluster = ecs._resolve_cluster_name(_request({}, body)[1].get("cluster") or "default")
        return found | {"ecs:cluster": cluster_arn(cluster or "")}

    return wrapped
