"""The worker wakes with the timers: it judges their monitors, sends the notices, and arms the next timers."""

import logging
from dataclasses import replace
from functools import partial

from scheduler.model.errors import Unavailable
from scheduler.model.monitor import Monitor, MonitorTimer, PingIntake
from scheduler.monitors import rules, timers
from scheduler.monitors.notices import sendings
from scheduler.monitors.writes import note
from scheduler.notify.receivers import with_default
from scheduler.storage.ports import Ports
from scheduler.tasks.timers import AHEAD_MS, EARLY_MS, START

STEP_MS = 10_000  # a step ends after this time; the next minute continues
PAGE = 50  # monitors judged at once
TRIES = 3
SETTLED_MS = 60_000  # the process that armed a timer has stored its change by then, or never will

log = logging.getLogger(__name__)


def wake(part: int, ports: Ports) -> int:
    """Judge the monitors whose timers are due in a partition, and those due in a moment. Returns their number."""
    until, after, judged = ports.clock.now() + STEP_MS, START, 0
    intake = ports.monitors.intake()
    while ports.clock.now() < until:
        found = ports.monitors.timers(part, after, ports.clock.now() + EARLY_MS, PAGE)
        if not found:
            break
        ports.clock.sleep_until(found[0].at)
        due = [timer for timer in found if timer.at <= ports.clock.now()]
        after, judged = (due[-1].at, due[-1].token_hash), judged + len(due)
        monitors = ports.monitors.of_tokens([timer.token_hash for timer in due])
        armed = list[MonitorTimer]()
        ports.side_by_side(*(partial(_tolerant, timer, monitors.get(timer.token_hash), intake, ports, armed) for timer in due))
        timers.wake_soon(armed, ports, ports.clock.now())
    return judged


def _tolerant(timer: MonitorTimer, monitor: Monitor | None, intake: PingIntake | None, ports: Ports, armed: list[MonitorTimer]) -> None:
    """Judge one monitor, and add the next timer to `armed`. An error leaves its timer for the next wake, and stops no other one."""
    try:
        for _ in range(TRIES):
            if _judge(timer, monitor, intake, ports, armed):
                return
            monitor = ports.monitors.of_tokens([timer.token_hash]).get(timer.token_hash)
    except Exception as error:
        level = logging.WARNING if isinstance(error, Unavailable) else logging.ERROR
        log.log(level, "a monitor was not judged; the next minute tries it again", extra={"timer": timer.at, "error": repr(error)})


def _judge(timer: MonitorTimer, monitor: Monitor | None, intake: PingIntake | None, ports: Ports, armed: list[MonitorTimer]) -> bool:
    """False: the monitor has changed meanwhile. Raises Unavailable."""
    now = ports.clock.now()
    if monitor is not None:
        decision = rules.judged(monitor, intake, now)
        if decision.monitor != monitor:
            if not ports.monitors.write_pulse(monitor, decision.monitor):
                return False
            note(decision.monitor, decision.events, ports)
            monitor = _stored(monitor, decision.monitor)
        if monitor.pulse.pending:
            _send(monitor, ports)
            sent = rules.without_pending(monitor, monitor.pulse.pending)
            if not ports.monitors.write_pulse(monitor, sent):
                return False
            monitor = _stored(monitor, sent)
    at = None if monitor is None else rules.wake_at(monitor, intake, now)
    if at is not None and at > now:
        _arm(MonitorTimer(at, timer.token_hash, now), ports, armed)
    if (at is None or at > now) and timer.armed_at + SETTLED_MS <= now:
        ports.monitors.drop(timer)
    return True


def _arm(timer: MonitorTimer, ports: Ports, armed: list[MonitorTimer]) -> None:
    """Store the next timer of a monitor, unless an earlier judgement has: its message would bring one more wake each time."""
    if timer.at <= timer.armed_at + AHEAD_MS:
        there = ports.monitors.timers(timers.part_of(timer.token_hash), (timer.at, ""), timer.at, PAGE)
        if any(each.token_hash == timer.token_hash for each in there):
            return
        armed.append(timer)
    ports.monitors.arm(timer)


def _send(monitor: Monitor, ports: Ports) -> None:
    """Enqueue the pending notices. They are sent once, however often they are enqueued: their ids follow from their numbers."""
    barred = ports.users.barred()
    if monitor.notifications is None or monitor.owner in barred.disabled | barred.deleted:
        return
    whole = replace(monitor, notifications=with_default(monitor.notifications, monitor.owner, ports))
    if messages := sendings(whole):
        ports.notices.send(messages, ports.clock.now())


def _stored(before: Monitor, after: Monitor) -> Monitor:
    return replace(after, pulse=replace(after.pulse, version=before.pulse.version + 1))
