"""The options that a stage needs for imported tasks: it refuses targets and actions that it does not list."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

RESOURCES: Mapping[str, Sequence[str]] = {  # the fields of payloads with ARNs of `allowed_targets`, by type
    "lambda": ("function",),
    "sqs": ("queue",),
    "sns": ("topic",),
    "eventbridge": ("bus",),
    "stepfunctions": ("state_machine",),
    "ecs": ("cluster", "task_definition"),
}
# Operations that have other names in IAM, as far as schedules use them often. All of `cloudwatch` have the names of `monitoring` otherwise.
# https://docs.aws.amazon.com/service-authorization/latest/reference/reference_policies_actions-resources-contextkeys.html
IAM: Mapping[str, Sequence[str]] = {
    "lambda:Invoke": ("lambda:InvokeFunction",),
    "s3:CopyObject": ("s3:GetObject", "s3:PutObject"),
    "s3:DeleteObjects": ("s3:DeleteObject",),
    "sns:PublishBatch": ("sns:Publish",),
    "sqs:SendMessageBatch": ("sqs:SendMessage",),
}
_ROLE = re.compile(r"arn:aws[a-z-]*:iam::\d{12}:role/.+")


class StageOptions:
    """The options `allowed_targets` and `allowed_actions` for tasks, as lines of TOML."""

    def __init__(self) -> None:
        self._targets: set[str] = set()
        self._actions: dict[str, tuple[set[str], set[str]]] = {}  # resources and roles
        self._regions: set[str] = set()
        self._has_containers = False

    def add(self, body: Mapping[str, Any], schedule: Mapping[str, Any]) -> None:
        """Add what the task of a schedule needs."""
        kind, payload = body.get("type"), body["payload"]
        self._targets.update(payload[name] for name in RESOURCES.get(str(kind), ()))
        self._has_containers |= kind == "ecs"
        if kind != "aws":
            return
        action = f"{payload['service']}:{payload['action']}"
        resources, roles = self._actions.setdefault(action, (set(), set()))
        resources.add(_resource(action, payload["parameters"], schedule["Target"]["Arn"]))
        roles.update(text for text in _texts(payload["parameters"]) if _ROLE.fullmatch(text))
        self._regions.update(str(schedule.get("Arn") or "").split(":")[3:4])

    def lines(self) -> Sequence[str]:
        """The options. Empty: a stage needs none."""
        made = ["allowed_targets = [", *(f"    {_text(arn)}," for arn in sorted(self._targets)), "]"] if self._targets else []
        if self._has_containers:
            made.append("# container_roles lists the roles of the task definitions: the task role and the execution role.")
        if self._actions:
            made.append("# An action with another name in IAM needs `iam`: docs/reference/targets.md#which-actions-are-allowed")
            made.append(
                f"# The calls go to the region of the stage; the schedules are of {', '.join(sorted(self._regions)) or 'another one'}."
            )
        for action, (resources, roles) in sorted(self._actions.items()):
            listed = ["*"] if "*" in resources else sorted(resources)
            hint = "  # any resource: name those of your calls" if listed == ["*"] else ""
            made += ["[[allowed_actions]]", f"action = {_text(action)}", f"resources = {_list(listed)}{hint}"]
            iam = IAM.get(action, (action,) if action.startswith("cloudwatch:") else ())
            made += [f"iam = {_list(iam)}"] if iam else []
            made += [f"pass_roles = {_list(sorted(roles))}"] if roles else []
        return made


def _resource(action: str, parameters: Mapping[str, Any], target: str) -> str:
    """The resource of a call, as IAM has it; `*` for any."""
    if action == "ecs:RunTask":
        definition = str(parameters["taskDefinition"])
        found = definition if definition.startswith("arn:") else "*"
        return found if re.search(r":\d+$", found) or found == "*" else f"{found}:*"
    return "*" if ":aws-sdk:" in target else target


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(each)


def _list(texts: Sequence[str]) -> str:
    return f"[{', '.join(map(_text, texts))}]"


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
