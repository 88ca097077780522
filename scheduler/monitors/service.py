"""The acts of the owners of monitors: put, delete, pause, resume, change the token."""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from scheduler.model import ids
from scheduler.model.errors import Invalid, NotFound, Unavailable
from scheduler.model.monitor import Monitor, MonitorState
from scheduler.model.notifications import Notifications
from scheduler.model.schedule import Once, Schedule
from scheduler.monitors import rules, tokens
from scheduler.monitors.ping_intake import expect_pings
from scheduler.monitors.writes import arm, note
from scheduler.storage.ports import Ports
from scheduler.tasks import calendar_form, schedule_form
from scheduler.tasks.schedule import Run, next_runs

TRIES = 5
PREVIEW = 5  # expected pings that are shown
OFTEN_MS = 300_000  # a schedule that expects more pings than one in this time gets a warning


@dataclass(frozen=True, slots=True)
class NewMonitor:
    """The settings of a monitor. `schedule`: the form of a schedule; without one there is a period."""

    owner: str
    key: str
    name: str
    grace_ms: int
    max_duration_ms: int
    schedule: Mapping[str, object] | None = None
    period_ms: int | None = None
    notifications: Notifications | None = None


def find(owner: str, key: str, ports: Ports) -> Monitor:
    """Raises NotFound, Unavailable."""
    monitor = ports.monitors.get(owner, key)
    if monitor is None:
        raise NotFound("there is no such monitor")
    return monitor


def put(new: NewMonitor, ports: Ports) -> tuple[Monitor, bool]:
    """Create or replace a monitor. Returns it, and whether it was created. Raises Invalid, Unavailable.

    A new schedule, period, grace or longest duration begins a new period. The token stays.
    """
    for _ in range(TRIES):
        now, before = ports.clock.now(), ports.monitors.get(new.owner, new.key)
        after = _created(new, ports, now) if before is None else _replaced(before, new, now)
        if before is None:
            expect_pings(ports, now)
        if after == before or _store(before, after, ports, now):
            return after, before is None
    raise Unavailable("the monitor keeps changing; try again")


def delete(owner: str, key: str, ports: Ports) -> Monitor:
    """Delete a monitor, and return it. Its URL is invalid from now on. Raises NotFound, Unavailable."""
    monitor = find(owner, key, ports)
    ports.monitors.delete(monitor)
    return monitor


def pause(owner: str, key: str, ports: Ports) -> Monitor:
    """Stop watching. Idempotent. Raises NotFound, Unavailable."""
    return _changed(owner, key, rules.paused, ports)


def resume(owner: str, key: str, ports: Ports) -> Monitor:
    """Begin a new period, if the monitor is paused. Idempotent. Raises NotFound, Unavailable."""

    def resumed(monitor: Monitor, now: int) -> rules.Decision:
        is_paused = monitor.pulse.state is MonitorState.PAUSED
        return rules.resumed(monitor, now) if is_paused else rules.Decision(monitor)

    return _changed(owner, key, resumed, ports)


def renew_token(owner: str, key: str, ports: Ports) -> Monitor:
    """Give the monitor another token. The former one is wrong from now on. Raises NotFound, Unavailable."""

    def renewed(monitor: Monitor, now: int) -> rules.Decision:
        salt = monitor.salt + 1
        derived = tokens.derive(monitor.id, salt, ports.secrets.keys(now)[0])
        return rules.Decision(replace(monitor, salt=salt, token_hash=tokens.hash_of(derived), updated_at=now))

    return _changed(owner, key, renewed, ports)


def preview(monitor: Monitor, now: int) -> list[Run]:
    """The next expected pings of a schedule, whatever the state of the monitor."""
    return [] if monitor.schedule is None else next_runs(monitor.schedule, now, PREVIEW)


def warning(monitor: Monitor, now: int) -> str | None:
    """A warning about a schedule that expects more pings than people usually mean."""
    times = preview(monitor, now)
    if len(times) == PREVIEW and times[-1].at - times[0].at < (PREVIEW - 1) * OFTEN_MS:
        return "the schedule expects a ping more often than every five minutes; `* 9 * * *` means each minute from 9:00 to 9:59"
    return None


def _created(new: NewMonitor, ports: Ports, now: int) -> Monitor:
    id = ids.new(now, secrets.randbits(ids.RANDOM_BITS))
    return Monitor(
        owner=new.owner,
        key=new.key,
        id=id,
        name=new.name,
        token_hash=tokens.hash_of(tokens.derive(id, 1, ports.secrets.keys(now)[0])),
        salt=1,
        grace_ms=new.grace_ms,
        max_duration_ms=new.max_duration_ms,
        created_at=now,
        updated_at=now,
        pulse=rules.created(now),
        schedule=None if new.schedule is None else _schedule(new.schedule, now),
        period_ms=new.period_ms,
        notifications=new.notifications,
    )


def _replaced(before: Monitor, new: NewMonitor, now: int) -> Monitor:
    form = new.schedule
    if form is not None and before.schedule is not None:
        form = schedule_form.with_start_of(before.schedule, form)
    after = replace(
        before,
        name=new.name,
        grace_ms=new.grace_ms,
        max_duration_ms=new.max_duration_ms,
        schedule=None if form is None else _schedule(form, now),
        period_ms=new.period_ms,
        notifications=new.notifications,
    )
    if after == before:
        return before
    times = ("schedule", "period_ms", "grace_ms", "max_duration_ms")
    same = all(getattr(after, name) == getattr(before, name) for name in times)
    if not same and before.pulse.state is not MonitorState.PAUSED:
        after = rules.resumed(after, now).monitor
    return replace(after, updated_at=now)


def _schedule(form: Mapping[str, object], now: int) -> Schedule:
    """The schedule of a monitor: one that recurs without an end. Raises Invalid."""
    for name in ("at", "max_runs", "end", "jitter_seconds"):
        if form.get(name) is not None:
            raise Invalid.field(f"schedule.{name}", "must be absent: a monitor expects pings again and again, at their times")
    for name in calendar_form.LISTS:
        if calendar_form.names({name: form.get(name)}):
            raise Invalid.field(f"schedule.{name}", "must have dates only: a change of a calendar does not reach monitors")
    try:
        schedule = schedule_form.parse(form, now)
    except Invalid as error:
        raise Invalid(error.message, details=[{**each, "field": f"schedule.{each['field']}"} for each in error.details]) from None
    assert not isinstance(schedule.spec, Once)
    return schedule


def _changed(owner: str, key: str, change: Callable[[Monitor, int], rules.Decision], ports: Ports) -> Monitor:
    for _ in range(TRIES):
        now, before = ports.clock.now(), find(owner, key, ports)
        after, events = change(before, now)
        if after == before:
            return before
        if _store(before, after, ports, now):
            note(after, events, ports)
            return after
    raise Unavailable("the monitor keeps changing; try again")


def _store(before: Monitor | None, after: Monitor, ports: Ports, now: int) -> bool:
    same_token = before is not None and before.token_hash == after.token_hash
    arm(before if same_token else None, after, ports, now)  # a timer belongs to a token
    return ports.monitors.put(before, after)
