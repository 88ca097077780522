"""Shapes of monitors: work that runs elsewhere and pings a URL."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from lambdas.rest.form_models import RunShape, ScheduleRequest
from lambdas.rest.models import LINE, Request
from lambdas.rest.notification_answers import NotificationsShape
from lambdas.rest.notification_models import NotificationsRequest
from lambdas.rest.resolution import Broken, Stage
from lambdas.rest.shapes import Json, ListShape, Shape, WrittenTime, optional, seconds
from lambdas.rest.task_models import ScheduleShape
from scheduler.model.monitor import EventKind, Monitor, MonitorEvent, MonitorState, PingIntake
from scheduler.monitors import rules, service
from scheduler.monitors.service import NewMonitor
from scheduler.tasks import schedule_form

DAY_S = 86_400


class MonitorRequest(Request):
    """A monitor: the times of expected pings, and the receivers of notices."""

    name: Annotated[str, Field(min_length=1, max_length=120), LINE]
    """The name for people, on one line."""
    schedule: ScheduleRequest | None = None
    """When pings are expected: cron or rate. Give a schedule or a period."""
    period_seconds: Annotated[int, Field(ge=30, le=366 * DAY_S)] | None = None
    """The longest time from one ping to the next."""
    grace_seconds: Annotated[int, Field(ge=1, le=30 * DAY_S)] = 300
    """The time by which a ping may be late."""
    max_duration_seconds: Annotated[int, Field(ge=1, le=30 * DAY_S)] = 3_600
    """The longest time from the start of a run to its end. It applies after a start ping."""
    notifications: NotificationsRequest | None = None
    """The receivers of notices; an empty object means your default receivers. The occasions and their limits do not apply to monitors."""

    @model_validator(mode="after")
    def _one_rhythm(self) -> Self:
        if (self.schedule is None) is (self.period_seconds is None):
            raise ValueError("give a schedule or period_seconds, and not both")
        return self

    def broken(self, stage: Stage) -> Iterator[Broken]:
        if self.notifications is not None:
            for name in ("on", "after_failures", "digest_seconds"):
                if name in self.notifications.model_fields_set:
                    yield ("notifications", name), "must be absent: a monitor has one notice when it goes down and one when it is up again"
            yield from ((("notifications", *place), rule) for place, rule in self.notifications.broken(stage))

    def new_monitor(self, owner: str, key: str) -> NewMonitor:
        return NewMonitor(
            owner=owner,
            key=key,
            name=self.name,
            grace_ms=self.grace_seconds * 1_000,
            max_duration_ms=self.max_duration_seconds * 1_000,
            schedule=None if self.schedule is None else self.schedule.form,
            period_ms=None if self.period_seconds is None else self.period_seconds * 1_000,
            notifications=None if self.notifications is None else self.notifications.record,
        )


class MonitorShape(Shape):
    """A monitor. A field without a value is null."""

    key: str
    """The name that you chose for it; it never changes."""
    name: str
    """The name for people."""
    state: MonitorState
    """`new`: no ping yet in this period. `long`: a run takes too long. `down`: a ping is missing. `failed`: a ping reported a failure."""
    since: WrittenTime
    """When it entered this state."""
    schedule: ScheduleShape | None
    """The times of the schedule. Null: it has a period."""
    period_seconds: int | None
    """The longest time from one ping to the next. Null: it has a schedule."""
    grace_seconds: int
    """The time by which a ping may be late."""
    max_duration_seconds: int
    """The longest time from a start to its end."""
    notifications: NotificationsShape | None
    """The receivers of notices. Null: none."""
    ping_path: str | None
    """The ping URL below the address of the API. Null: the signing key was rotated; the URL is valid, but only a new token can be shown."""
    expected_at: WrittenTime | None
    """When the next ping is expected."""
    down_at: WrittenTime | None
    """When it goes down if no ping comes."""
    next_expected: list[RunShape]
    """The next five times of the schedule."""
    running_since: WrittenTime | None
    """The start of the run that is open."""
    pinged_at: WrittenTime | None
    """The last ping."""
    flapping: bool
    """True: it changes again and again, and no notice is sent until it stays the same for half an hour."""
    warning: str | None
    """Something that is probably a mistake."""
    created_at: WrittenTime
    updated_at: WrittenTime

    @classmethod
    def of(cls, monitor: Monitor, intake: PingIntake | None, token: str | None, now: int) -> Json:
        return cls.from_record(
            monitor,
            state=monitor.pulse.state,
            since=monitor.pulse.since,
            schedule=optional(schedule_form.write, monitor.schedule),
            period_seconds=seconds(monitor.period_ms),
            grace_seconds=seconds(monitor.grace_ms),
            max_duration_seconds=seconds(monitor.max_duration_ms),
            notifications=optional(NotificationsShape.of, monitor.notifications),
            ping_path=None if token is None else f"/api/v1/ping/{token}",
            expected_at=rules.expected_at(monitor, intake),
            down_at=rules.start_deadline(monitor, intake),
            next_expected=[RunShape.of(run) for run in service.preview(monitor, now)],
            running_since=monitor.pulse.started_at,
            pinged_at=monitor.pulse.pinged_at,
            flapping=monitor.pulse.flapping,
            warning=service.warning(monitor, now),
        )


class MonitorsShape(ListShape):
    items: list[MonitorShape]


class MonitorEventShape(Shape):
    """A ping, or a change of the state."""

    at: WrittenTime
    kind: EventKind
    """`start`, `success`, `fail`: a ping. Any other kind is a state that the monitor entered."""
    exit_code: int | None
    """The exit code that the ping reported."""
    duration_seconds: float | None
    """From the start of the run to its end."""
    body: str
    """The text of the ping, for people: up to 10 kB."""

    @classmethod
    def of(cls, event: MonitorEvent) -> Json:
        return cls.from_record(event, duration_seconds=seconds(event.duration_ms))


class MonitorHistoryShape(Shape):
    """The last pings and changes, newest first."""

    items: list[MonitorEventShape]

    @classmethod
    def of(cls, events: Sequence[MonitorEvent]) -> Json:
        return {"items": [MonitorEventShape.of(event) for event in events]}


class DeletedMonitorShape(Shape):
    key: str
    """The key of the deleted monitor."""


class PingShape(Shape):
    """The monitor after a ping."""

    state: MonitorState
    """The state that it has now."""


EXAMPLES: dict[str, Any] = {
    "cron": {
        "summary": "A nightly backup, which may take two hours",
        "value": {
            "name": "Backup",
            "schedule": {"cron": "30 2 * * *", "time_zone": "Europe/Berlin"},
            "grace_seconds": 600,
            "max_duration_seconds": 7_200,
        },
    },
    "period": {"summary": "A ping every five minutes", "value": {"name": "Sync", "period_seconds": 300, "grace_seconds": 60}},
}
