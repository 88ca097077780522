"""The target of a schedule of EventBridge Scheduler: what a task runs instead.

A target is templated, by the ARN of a resource, or universal, by the name of an API's operation and its parameters. Sources: in
https://docs.aws.amazon.com/scheduler/latest/UserGuide/ the pages managing-targets-templated and managing-targets-universal.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from punctual.plan import service_model
from punctual.plan.aws_cron import NoEqual
from punctual.plan.schedule_input import Bytes, data_of, literal, notification, object_of, parsed, replaced, with_placeholders

Body = dict[str, Any]  # the fields of a task that say what it runs
MOST_PLACEHOLDERS = 100
_EQUAL_ATTEMPTS = {"stepfunctions": "a state machine", "ecs": "a container", "aws": "a call"}  # whose attempts all send the same
OF_TYPES = ("lambda", "sqs", "sns", "states")  # with event buses: the templated targets that have a type of their own
_UNIVERSAL = re.compile(r"arn:aws[a-z-]*:scheduler:::aws-sdk:([^:]+):([^:]+)")
_NEVER = ("iam", "sts")  # services that no job may call
_OF_TARGET = ("Arn", "RoleArn", "Input", "RetryPolicy", "DeadLetterConfig")
_QUEUE_URL = re.compile(r"https://sqs\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?/(\d{12})/([A-Za-z0-9_-]{1,80}(?:\.fifo)?)")
_RENAMED = {"TaskDefinitionArn": "taskDefinition", "TaskCount": "count"}  # of EcsParameters, for RunTask
_NOT_OF_CONTAINERS = ("enableECSManagedTags", "referenceId", "startedBy", "clientToken")  # of RunTask; nothing runs otherwise without them
_OVERRIDES = {
    **{name: name for name in ("name", "command", "environment", "cpu", "memory")},
    "memoryReservation": "memory_reservation",
}


def content(schedule: Mapping[str, Any], notes: list[str], named: str | None) -> Body:
    """Return what the task runs. `named` is the target for schedules whose own one has no equal. Raises NoEqual."""
    return _Target(schedule, notes).content(named)


class _Target:
    """The target of one schedule. `notes` gets a line for each difference."""

    def __init__(self, schedule: Mapping[str, Any], notes: list[str]) -> None:
        self._schedule, self._notes = schedule, notes
        self._target: Mapping[str, Any] = schedule["Target"]
        self._arn: str = self._target["Arn"]
        self._input: str | None = self._target.get("Input")
        self._known: list[str] = []  # the parameters of the target that the task takes over

    def content(self, named: str | None) -> Body:
        service = self._arn.split(":")[2] if self._arn.count(":") >= 5 else ""
        has_type = service in OF_TYPES or (service == "events" and ":event-bus/" in self._arn)
        before = len(self._notes)
        try:
            found = self._typed(service) if has_type else self._call(*self._operation(service))
            _check_placeholders(found)
        except NoEqual:
            if named is None or has_type:
                raise
            self._known.clear()
            del self._notes[before:]
            self._notes.append(f"Its target {self._arn} has no equal here: the target {named} gets its input.")
            found = {"target": named, "payload": {"body": data_of(self._text(), self._schedule, self._notes)}}
            _check_placeholders(found)
        dropped = sorted(self._target.keys() - {*_OF_TARGET, *self._known})
        self._notes.extend(f"Dropped: {name} {_json(self._target[name])}." for name in dropped)
        return found

    def _text(self) -> str:
        """The input, or what EventBridge Scheduler delivers without one."""
        if self._input:
            return self._input
        if ":event-bus/" in self._arn or ":aws-sdk:" in self._arn:
            self._notes.append("It has no input: the task has an empty one.")
            return "{}"
        self._notes.append(
            "It has no input: the task sends a notification like that of EventBridge Scheduler, which AWS does not document."
        )
        return notification(self._schedule)

    def _typed(self, service: str) -> Body:
        """A templated target that has a type of its own."""
        text = self._text()
        if service == "lambda":
            return {"type": "lambda", "payload": {"function": self._arn, "event": self._object(text), "mode": "async"}}
        if service == "sqs":
            group = self._parameters("SqsParameters").get("MessageGroupId")
            if self._arn.endswith(".fifo") and not group:
                raise NoEqual(f"sends to {self._arn} without a message group, which Punctual requires for FIFO")
            grouped = {"group": literal(group)} if group else {}
            return {"type": "sqs", "payload": {"queue": self._arn, "body": self._replaced(text), **grouped}}
        if service == "sns":
            if self._arn.endswith(".fifo"):
                raise NoEqual(f"sends to {self._arn} without a message group, which Punctual requires for FIFO")
            return {"type": "sns", "payload": {"topic": self._arn, "message": self._replaced(text)}}
        if service == "states":
            if _is_version(self._arn):
                return self._call("sfn", "StartExecution", {"stateMachineArn": self._arn, "input": text})
            return {"type": "stepfunctions", "payload": {"state_machine": self._arn, "input": self._object(text)}}
        event = self._parameters("EventBridgeParameters")
        texts = {"source": literal(event["Source"]), "detail_type": literal(event["DetailType"])}
        return {"type": "eventbridge", "payload": {"bus": self._arn, **texts, "detail": self._object(text)}}

    def _operation(self, service: str) -> tuple[str, str, Any]:
        """The operation that the target calls: its service and name, as a universal target has them, and its parameters."""
        if universal := _UNIVERSAL.fullmatch(self._arn):
            if universal[1] in _NEVER:
                raise NoEqual(f"calls {universal[1]}:{universal[2]}, and no job may change identities and their rights")
            return universal[1], universal[2], parsed(self._text())
        resource = re.split("[:/]", self._arn)[-1]
        overrides = parsed(self._input) if self._input else {}
        if service == "ecs":
            fields = {_RENAMED.get(name, name): each for name, each in self._parameters("EcsParameters").items()}
            return "ecs", "RunTask", {**fields, "cluster": self._arn, **({"overrides": overrides} if overrides != {} else {})}
        if service == "kinesis":
            key = self._parameters("KinesisParameters")["PartitionKey"]
            return "kinesis", "PutRecord", {"StreamARN": self._arn, "PartitionKey": key, "Data": self._text()}
        if service == "firehose":
            return "firehose", "PutRecord", {"DeliveryStreamName": resource, "Record": {"Data": self._text()}}
        if service == "sagemaker":
            values = self._parameters("SageMakerPipelineParameters").get("PipelineParameterList")
            self._notes.extend(["Dropped: Input, which the parameters of a pipeline do not have."] if self._input else [])
            return "sagemaker", "StartPipelineExecution", {"PipelineName": self._arn, **({"PipelineParameters": values} if values else {})}
        started = {"codebuild": "projectName", "codepipeline": "name", "inspector": "assessmentTemplateArn"}
        if service not in started:
            raise NoEqual(f"has a target without a type here ({self._arn}): call it by a Lambda function, and give --target NAME")
        if not isinstance(overrides, dict):
            raise NoEqual(f"has an input that is no JSON object, and a target that gets one: {_json(overrides)[:40]}")
        action = {"codebuild": "StartBuild", "codepipeline": "StartPipelineExecution", "inspector": "StartAssessmentRun"}[service]
        return service, action, {**overrides, started[service]: self._arn if service == "inspector" else resource}

    def _call(self, service: str, action: str, written: Any) -> Body:
        """A job of the type that has all of a call, or of the type `aws`."""
        operation = service_model.operation(service, action)
        parameters = operation.read(written)
        convert = _CONVERSIONS.get((operation.service, operation.name))
        if convert is not None and (found := convert(self, parameters)) is not None:
            return found
        if _has_bytes(parameters):
            self._notes.append("Its bytes are base64 here, of the text in its input.")
        made = with_placeholders(parameters, self._schedule, self._notes)
        return {"type": "aws", "payload": {"service": operation.service, "action": operation.name, "parameters": made}}

    def _function(self, parameters: Body) -> Body | None:
        mode = {"Event": "async", "RequestResponse": "sync"}.get(parameters.get("InvocationType", "RequestResponse"))
        function = self._resource("lambda", "function:", parameters["FunctionName"])
        event = self._is_object(parameters.get("Payload", "{}"))
        if mode is None or function is None or event is None or not parameters.keys() <= {"FunctionName", "InvocationType", "Payload"}:
            return None
        if mode == "sync":
            self._notes.append("The job waits for the function, whose error is a failed attempt here.")
        return {"type": "lambda", "payload": {"function": function, "event": event, "mode": mode}}

    def _message(self, parameters: Body) -> Body | None:
        queue = _QUEUE_URL.fullmatch(parameters["QueueUrl"])
        group = {"group": parameters["MessageGroupId"]} if "MessageGroupId" in parameters else {}
        if queue is None or not parameters.keys() <= {"QueueUrl", "MessageBody", "MessageGroupId"}:
            return None
        if queue[3].endswith(".fifo") and not group:
            return None
        partition = ([*str(self._schedule.get("Arn") or "").split(":"), ""])[1] or "aws"
        arn = ":".join(["arn", partition, "sqs", *queue.groups()])
        return {"type": "sqs", "payload": self._made({"queue": arn, "body": parameters["MessageBody"], **group})}

    def _publication(self, parameters: Body) -> Body | None:
        names = {"TopicArn": "topic", "Message": "message", "Subject": "subject", "MessageGroupId": "group"}
        topic = parameters.get("TopicArn", "")
        if not topic or not parameters.keys() <= names.keys() or (topic.endswith(".fifo") and "MessageGroupId" not in parameters):
            return None
        return {"type": "sns", "payload": self._made({names[name]: each for name, each in parameters.items()})}

    def _execution(self, parameters: Body) -> Body | None:
        machine, data = parameters["stateMachineArn"], self._is_object(parameters.get("input", "{}"))
        if data is None or not parameters.keys() <= {"stateMachineArn", "input"} or _is_version(machine):
            return None
        return {"type": "stepfunctions", "payload": {"state_machine": machine, "input": data}}

    def _event(self, parameters: Body) -> Body | None:
        entries = parameters["Entries"]
        if parameters.keys() != {"Entries"} or len(entries) != 1:
            return None
        (event,) = entries
        bus, detail = self._resource("events", "event-bus/", event.get("EventBusName", "default")), self._is_object(event.get("Detail", ""))
        if bus is None or detail is None or event.keys() - {"EventBusName"} != {"Source", "DetailType", "Detail"}:
            return None
        texts = self._made({"source": event["Source"], "detail_type": event["DetailType"]})
        return {"type": "eventbridge", "payload": {"bus": bus, **texts, "detail": detail}}

    def _containers(self, parameters: Body) -> Body | None:
        left = dict(parameters)
        overrides, network = (dict(left.pop(name, {})) for name in ("overrides", "networkConfiguration"))
        vpc = network.get("awsvpcConfiguration", {})
        containers = [_container(each) for each in overrides.pop("containerOverrides", ())]
        payload = {
            "cluster": self._resource("ecs", "cluster/", left.pop("cluster", "default")),
            "task_definition": self._resource("ecs", "task-definition/", left.pop("taskDefinition")),
            "launch_type": left.pop("launchType", None),
            "capacity_providers": _weights(left),
            "platform_version": left.pop("platformVersion", None),
            "subnets": vpc.get("subnets"),
            "security_groups": vpc.get("securityGroups"),
            "public_ip": vpc["assignPublicIp"] == "ENABLED" if "assignPublicIp" in vpc else None,
            "containers": containers,
            "cpu": overrides.pop("cpu", None),
            "memory": overrides.pop("memory", None),
            "tags": {tag["key"]: tag.get("value", "") for tag in left.pop("tags", ())},
            "group": left.pop("group", None),
            "propagate_tags": left.pop("propagateTags", None) == "TASK_DEFINITION" or None,
            "execute_command": left.pop("enableExecuteCommand", None) or None,
        }
        dropped = {name: left.pop(name) for name in _NOT_OF_CONTAINERS if name in left}
        count = {"count": each} if (each := left.pop("count", 1)) != 1 else {}
        unmatched = sorted(name for name, each in {**left, **overrides, **count}.items() if each)
        unmatched += ["containerOverrides"] if None in containers else []
        if unmatched or None in (payload["cluster"], payload["task_definition"]):
            self._notes.append(f"It is a call of RunTask, since the type ecs has no equal for {', '.join(unmatched) or 'its names'}.")
            return None
        self._notes.extend(f"Dropped: {name} {_json(each)}." for name, each in dropped.items())
        self._notes.append(
            "The job ends when the container has started. With `wait: true` it ends with the container, and a container that fails is a "
            "failed attempt: each further one of `max_attempts` runs it again."
        )
        made = {name: each for name, each in payload.items() if each not in (None, [], {})}
        return {"type": "ecs", "payload": self._made({**made, "wait": False})}

    def _resource(self, service: str, prefix: str, text: str) -> str | None:
        """The ARN of a resource by its ARN or its name: a name is of the region and the account of the schedule. None: it is neither."""
        if text.startswith("arn:"):
            return text
        place = str(self._schedule.get("Arn") or "").split(":")
        if len(place) < 6 or re.fullmatch(r"[A-Za-z0-9_.-]+(:[A-Za-z0-9_$-]+)?", text) is None:
            return None
        return ":".join(["arn", place[1], service, place[3], place[4], f"{prefix}{text}"])

    def _is_object(self, text: str) -> Body | None:
        """A JSON object with placeholders; None: the text is none, or one that Punctual would change."""
        try:
            return object_of(text, self._schedule, self._notes)
        except NoEqual:
            return None

    def _parameters(self, name: str) -> Mapping[str, Any]:
        self._known.append(name)
        return self._target.get(name) or {}

    def _made(self, data: Body) -> Body:
        made: Body = with_placeholders(data, self._schedule, self._notes)
        return made

    def _object(self, text: str) -> Body:
        return object_of(text, self._schedule, self._notes)

    def _replaced(self, text: str) -> str:
        return replaced(text, self._schedule, self._notes)


_CONVERSIONS: Mapping[tuple[str, str], Callable[[_Target, Body], Body | None]] = {
    ("lambda", "Invoke"): _Target._function,
    ("sqs", "SendMessage"): _Target._message,
    ("sns", "Publish"): _Target._publication,
    ("stepfunctions", "StartExecution"): _Target._execution,
    ("events", "PutEvents"): _Target._event,
    ("ecs", "RunTask"): _Target._containers,
}


def _is_version(machine: str) -> bool:
    """Whether the ARN is that of a version or an alias of a state machine."""
    return machine.count(":") > 6


def _weights(left: Body) -> Mapping[str, int]:
    """The weights of the capacity providers by name, taken from the parameters. They stay there if one has a base: the type has none."""
    strategy = left.get("capacityProviderStrategy", ())
    if any(each.get("base") for each in strategy):
        return {}
    left.pop("capacityProviderStrategy", None)
    return {each["capacityProvider"]: each.get("weight", 0) for each in strategy}


def _container(override: Mapping[str, Any]) -> Body | None:
    """An override of a container; None: it has what the type `ecs` has not."""
    if "name" not in override or any(each for name, each in override.items() if name not in _OVERRIDES):
        return None
    made = {_OVERRIDES[name]: each for name, each in override.items() if name in _OVERRIDES}
    if "environment" in made:
        if any("name" not in each for each in made["environment"]):
            return None
        made["environment"] = {each["name"]: each.get("value", "") for each in made["environment"]}
    return made


def _check_placeholders(found: Body) -> None:
    """Raises NoEqual for more placeholders than a payload may have, or for one that its type does not allow."""
    plain = _json(found).replace("{{{{", "")
    if found.get("type") in _EQUAL_ATTEMPTS and "{{attempt}}" in plain:
        noun = _EQUAL_ATTEMPTS[found["type"]]
        raise NoEqual(f"has <aws.scheduler.attempt-number> in the input of {noun}, which is the same in every attempt")
    if len(re.findall(r"(?<!\{)\{\{(?!\{)", plain)) > MOST_PLACEHOLDERS:
        raise NoEqual(f"has more than {MOST_PLACEHOLDERS} keywords in its input")


def _has_bytes(data: Any) -> bool:
    if isinstance(data, Mapping | list):
        return any(_has_bytes(each) for each in (data.values() if isinstance(data, Mapping) else data))
    return isinstance(data, Bytes)


def _json(value: Any) -> str:
    return json.dumps(value, default=str)
