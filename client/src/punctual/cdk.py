"""Constructs of the CDK: tasks, named targets, calendars and monitors beside the function or queue that they call.

Install the extra `cdk`. The guide is docs/guides/templates.md.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from aws_cdk import CustomResource, Duration, Fn, RemovalPolicy, Stack
from constructs import Construct

from punctual import bodies, instants
from punctual.fields import TargetFields, TaskFields

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from punctual.fields import NotificationFields, ScheduleFields

__all__ = ["PunctualCalendar", "PunctualMonitor", "PunctualTarget", "PunctualTask", "provider"]

ANSWER_S = 60  # CloudFormation would wait for an hour
AS_JSON = ("payload", "defaults", "payload_schema")  # fields with any content: CloudFormation would make texts of their numbers


def provider(stage: str, template: str) -> str:
    """Return the ARN that a stage exports for an entry of its option `templates`. Pass it as `service_token` of a custom resource."""
    return Fn.import_value(f"punctual-{stage}-templates-{template}")


class PunctualTask(Construct):
    """A task. Its arguments are those of `client.tasks.put`."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        template: str,
        stage: str = "prod",
        key: str,
        removal_policy: RemovalPolicy | None = None,
        **fields: Unpack[TaskFields],
    ) -> None:
        """Declare the task with this key, for the owner of an entry of the stage's option `templates`.

        Another key is another task: the one before is deleted. `removal_policy` RETAIN keeps the task when the resource is removed.
        Raises TypeError for an unknown field.
        """
        _check_names(fields, TaskFields)
        super().__init__(scope, id)
        self.resource = _declared(self, "Task", provider(stage, template), {"key": key, **bodies.task(fields)}, removal_policy)

    @property
    def task_id(self) -> str:
        """The id of the task."""
        return self.resource.get_att_string("Id")

    @property
    def next_run_at(self) -> str:
        """The first run after the deployment. Empty: there is none."""
        return self.resource.get_att_string("NextRunAt")


class PunctualTarget(Construct):
    """A named target. Its arguments are those of `client.targets.replace`. The entry of the option `templates` needs `targets`."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        template: str,
        stage: str = "prod",
        name: str,
        kind: str,
        defaults: Mapping[str, Any] | None = None,
        removal_policy: RemovalPolicy | None = None,
        **fields: Unpack[TargetFields],
    ) -> None:
        """Declare the target with this name. Raises TypeError for an unknown field."""
        _check_names(fields, TargetFields)
        super().__init__(scope, id)
        content = {"name": name, "kind": kind, **bodies.present(defaults=defaults), **fields}
        self.resource = _declared(self, "Target", provider(stage, template), content, removal_policy)

    @property
    def name(self) -> str:
        """The name, for tasks that use the target: they are then made after it."""
        return self.resource.get_att_string("Key")


class PunctualCalendar(Construct):
    """A calendar of dates, for the `exclude` and `only` of schedules."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        template: str,
        stage: str = "prod",
        name: str,
        dates: Iterable[date | str],
        source: str | None = None,
        covers_until: date | str | None = None,
        removal_policy: RemovalPolicy | None = None,
    ) -> None:
        """Declare the calendar with this name."""
        super().__init__(scope, id)
        content = {"name": name, "dates": list(dates), **bodies.present(source=source, covers_until=covers_until)}
        self.resource = _declared(self, "Calendar", provider(stage, template), content, removal_policy)

    @property
    def name(self) -> str:
        """The name, for tasks that use the calendar: they are then made after it, and deleted before it."""
        return self.resource.get_att_string("Key")


class PunctualMonitor(Construct):
    """A monitor of work that pings."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        template: str,
        stage: str = "prod",
        key: str,
        name: str,
        period_seconds: int | None = None,
        grace_seconds: int | None = None,
        max_duration_seconds: int | None = None,
        notifications: NotificationFields | None = None,
        removal_policy: RemovalPolicy | None = None,
        **schedule: Unpack[ScheduleFields],
    ) -> None:
        """Declare the monitor with this key. It has a schedule or a period."""
        super().__init__(scope, id)
        content = {
            "key": key,
            "name": name,
            **bodies.present(
                period_seconds=period_seconds,
                grace_seconds=grace_seconds,
                max_duration_seconds=max_duration_seconds,
                notifications=notifications,
                schedule=bodies.schedule(schedule) or None,
            ),
        }
        self.resource = _declared(self, "Monitor", provider(stage, template), content, removal_policy)

    @property
    def ping_url(self) -> str:
        """The URL for pings. It is a secret: give it to the environment of the function that pings, not to an output."""
        return self.resource.get_att_string("PingUrl")


def _check_names(fields: Mapping[str, Any], known: Any) -> None:
    """Raise TypeError for a field that `known`, a TypedDict, does not have: Python itself accepts any."""
    for name in fields.keys() - known.__annotations__.keys():
        near = difflib.get_close_matches(name, known.__annotations__, 1)
        raise TypeError(f"{name!r} is not a known field" + (f"; did you mean {near[0]!r}?" if near else ""))


def _declared(scope: Construct, kind: str, token: str, fields: Mapping[str, Any], removal_policy: RemovalPolicy | None) -> CustomResource:
    def written(name: str, value: Any) -> Any:
        return Stack.of(scope).to_json_string(value) if name in AS_JSON and isinstance(value, Mapping) else _plain(value)

    return CustomResource(
        scope,
        "Resource",
        service_token=token,
        resource_type=f"Custom::Punctual{kind}",
        service_timeout=Duration.seconds(ANSWER_S),
        removal_policy=removal_policy,
        properties={name: written(name, value) for name, value in fields.items() if value is not None},
    )


def _plain(value: Any) -> Any:
    """The value with instants and dates as texts, and without fields that are None."""
    if isinstance(value, datetime):
        return instants.text(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items() if each is not None}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(each) for each in value]
    return value
