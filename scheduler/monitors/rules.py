"""The meaning of a ping, and of silence, for a monitor. Pure.

An incident begins when a run is too long, a ping does not come, or a ping reports a failure. It ends with the next success; after
silence, also with the next start. Receivers get one notice when it begins and one when it ends, whatever happens in between.

A ping that comes a little before its time counts for that time. While a run is open, the next one is not expected: only its longest
duration is judged. The instants are those at which pings arrive.
"""

from dataclasses import replace
from typing import NamedTuple

from scheduler.model.monitor import (
    BAD,
    LONGEST_CAUSE,
    MOST_RECENT,
    EventKind,
    Monitor,
    MonitorEvent,
    MonitorState,
    NoticeKind,
    PendingNotice,
    Ping,
    PingIntake,
    PingKind,
    Pulse,
    RecentPing,
)
from scheduler.monitors.ping_intake import is_away
from scheduler.tasks.schedule import next_runs

HOUR_MS = 3_600_000
FLIPS = 6  # beginnings and ends of incidents within an hour that are notified one by one
STABLE_MS = 1_800_000  # after this time without one, receivers get the state of a monitor that was flapping
EARLY_PART = 10  # a ping may come a tenth of the interval before its time, but no more than the grace
_WATCHED = (MonitorState.NEW, MonitorState.UP)


Events = tuple[MonitorEvent, ...]


class Decision(NamedTuple):
    """A monitor after a ping, a judgement or an act of its owner, and the entries of its history."""

    monitor: Monitor
    events: Events = ()


def created(at: int) -> Pulse:
    """The pulse of a monitor that is created, changed or resumed: a new period begins."""
    return Pulse(MonitorState.NEW, since=at, basis=at)


def resumed(monitor: Monitor, at: int) -> Decision:
    """Begin a new period. An incident before it is over, without a notice."""
    fresh = replace(monitor.pulse, state=MonitorState.NEW, since=at, basis=at, started_at=None, run=None, flips=(), flapping=False)
    return _with_event(replace(monitor, pulse=fresh), EventKind.NEW, at)


def paused(monitor: Monitor, at: int) -> Decision:
    """Stop watching. No notice follows."""
    if monitor.pulse.state is MonitorState.PAUSED:
        return Decision(monitor)
    still = replace(monitor.pulse, state=MonitorState.PAUSED, since=at, started_at=None, run=None, flips=(), flapping=False, pending=())
    return _with_event(replace(monitor, pulse=still), EventKind.PAUSED, at)


def pinged(monitor: Monitor, ping: Ping, at: int) -> Decision:
    """The monitor after a ping that arrived at `at`. A ping to a paused monitor is recorded only."""
    before = monitor.pulse
    ends_run = ping.kind is not PingKind.START and before.started_at is not None and ping.run in (None, before.run)
    duration = at - before.started_at if ends_run and before.started_at is not None else None
    recent = (*before.recent, RecentPing(ping.kind, at, duration))[-MOST_RECENT:]
    pulse = replace(before, pinged_at=max(at, before.pinged_at or 0), pings=before.pings + 1, recent=recent)
    events: Events = ()
    if ping.body or ping.kind is PingKind.FAIL or ping.exit_code is not None:
        events = (MonitorEvent(at, 2 * pulse.version, EventKind(ping.kind.value), ping.exit_code, duration, ping.body),)
    if before.state is not MonitorState.PAUSED:
        if ends_run:
            pulse = replace(pulse, started_at=None, run=None)
        elif ping.kind is PingKind.START:
            pulse = replace(pulse, started_at=at, run=ping.run)
        basis = at if ends_run else at + _early(monitor, at)
        pulse = replace(pulse, basis=max(basis, before.basis))
    after, entered = _entered(replace(monitor, pulse=pulse), _state_after(before.state, ping.kind), at, _cause_of(ping))
    return Decision(after, events + entered)


def judged(monitor: Monitor, intake: PingIntake | None, at: int) -> Decision:
    """The monitor after its deadlines are compared with `at`. While the intake is away, no incident begins."""
    done = Decision(monitor)
    if not is_away(intake, at):
        if (until := _run_until(monitor, intake)) is not None and at >= until:
            done = _entered(monitor, MonitorState.LONG, until, f"a run has not ended within {monitor.max_duration_ms // 1000} s")
        elif monitor.pulse.started_at is None and (due := start_deadline(monitor, intake)) is not None and at >= due:
            done = _entered(monitor, MonitorState.DOWN, due, _silence(monitor))
    pulse = done.monitor.pulse
    if pulse.flapping and at >= pulse.flips[-1] + STABLE_MS:
        kind = NoticeKind(pulse.state.value) if pulse.state in BAD else NoticeKind.UP
        calm = _noticed(replace(pulse, flapping=False, flips=()), kind, at, "it has not changed for a while")
        done = Decision(replace(done.monitor, pulse=calm), done.events)
    return done


def expected_at(monitor: Monitor, intake: PingIntake | None) -> int | None:
    """When the next ping is expected; None: none is, as the monitor is not watched, an incident goes on, or the schedule is over."""
    if monitor.pulse.state not in _WATCHED:
        return None
    due = _following(monitor, monitor.pulse.basis)
    if due is not None and _excuses(intake, monitor.pulse.basis, due + monitor.grace_ms):
        assert intake is not None and intake.back_at is not None
        return _following(monitor, max(intake.back_at, monitor.pulse.basis))
    return due


def start_deadline(monitor: Monitor, intake: PingIntake | None) -> int | None:
    """When the monitor goes down if no ping comes; None: never."""
    due = expected_at(monitor, intake)
    return None if due is None else due + monitor.grace_ms


def wake_at(monitor: Monitor, intake: PingIntake | None, now: int) -> int | None:
    """When the monitor must be judged next; None: a ping or its owner comes first. It may have passed."""
    pulse = monitor.pulse
    if pulse.pending:
        return pulse.pending[0].at
    start = start_deadline(monitor, intake)
    if start is not None and pulse.started_at is not None and start <= now:
        start = None  # the run that is open goes on
    stable = pulse.flips[-1] + STABLE_MS if pulse.flapping else None
    return min((each for each in (start, _run_until(monitor, intake), stable) if each is not None), default=None)


def must_arm(before: int | None, after: int | None, now: int) -> bool:
    """Whether a write that changes the instant of the next judgement must arm a timer: the one that is armed would come too late."""
    return after is not None and (before is None or before <= now or after < before)


def without_pending(monitor: Monitor, sent: tuple[PendingNotice, ...]) -> Monitor:
    """The monitor once these notices are in the queue."""
    left = tuple(each for each in monitor.pulse.pending if each not in sent)
    return replace(monitor, pulse=replace(monitor.pulse, pending=left))


def _state_after(state: MonitorState, kind: PingKind) -> MonitorState:
    if state is MonitorState.PAUSED:
        return state
    if kind is PingKind.START:
        return state if state in (MonitorState.LONG, MonitorState.FAILED) else MonitorState.UP
    return MonitorState.UP if kind is PingKind.SUCCESS else MonitorState.FAILED


def _entered(monitor: Monitor, state: MonitorState, at: int, cause: str) -> Decision:
    """The monitor in the state, with a notice if an incident begins or ends with it."""
    before = monitor.pulse
    if state is before.state:
        return Decision(monitor)
    pulse = replace(before, state=state, since=at)
    if (before.state in BAD) is not (state in BAD):
        pulse = _flipped(pulse, NoticeKind(state.value), at, cause)
    return Decision(replace(monitor, pulse=pulse), (MonitorEvent(at, 2 * pulse.version + 1, EventKind(state.value)),))


def _flipped(pulse: Pulse, kind: NoticeKind, at: int, cause: str) -> Pulse:
    flips = (*(each for each in pulse.flips if each > at - HOUR_MS), at)[-FLIPS - 1 :]
    pulse = replace(pulse, flips=flips)
    if pulse.flapping:
        return pulse
    if len(flips) > FLIPS:
        return _noticed(replace(pulse, flapping=True), NoticeKind.FLAPPING, at, cause)
    return _noticed(pulse, kind, at, cause)


def _noticed(pulse: Pulse, kind: NoticeKind, at: int, cause: str) -> Pulse:
    number = pulse.notices + 1
    return replace(pulse, notices=number, pending=(*pulse.pending, PendingNotice(number, kind, at, cause)))


def _with_event(monitor: Monitor, kind: EventKind, at: int) -> Decision:
    return Decision(monitor, (MonitorEvent(at, 2 * monitor.pulse.version + 1, kind),))


def _run_until(monitor: Monitor, intake: PingIntake | None) -> int | None:
    """When the open run becomes too long."""
    pulse = monitor.pulse
    if pulse.started_at is None or pulse.state not in _WATCHED:
        return None
    until = pulse.started_at + monitor.max_duration_ms
    if _excuses(intake, pulse.started_at, until):
        assert intake is not None and intake.back_at is not None
        return max(intake.back_at + monitor.max_duration_ms, until)
    return until


def _excuses(intake: PingIntake | None, since: int, until: int) -> bool:
    """Whether a ping that was expected in this time may have been lost in the last outage."""
    if intake is None or intake.away_since is None or intake.back_at is None:
        return False
    return intake.away_since <= until and intake.back_at > since


def _following(monitor: Monitor, instant: int) -> int | None:
    """The first expected ping after the instant."""
    if monitor.schedule is None:
        assert monitor.period_ms is not None
        return instant + monitor.period_ms
    runs = next_runs(monitor.schedule, instant, 1)
    return runs[0].at if runs else None


def _early(monitor: Monitor, at: int) -> int:
    """The time by which a ping may come before its own and counts for it."""
    if monitor.schedule is None:
        return 0
    runs = next_runs(monitor.schedule, at, 2)
    interval = runs[1].at - runs[0].at if len(runs) == 2 else EARLY_PART * monitor.grace_ms
    return min(interval // EARLY_PART, monitor.grace_ms)


def _silence(monitor: Monitor) -> str:
    return "no ping has come" if monitor.pulse.pinged_at is None else "the expected ping has not come"


def _cause_of(ping: Ping) -> str:
    if ping.kind is not PingKind.FAIL:
        return ""
    code = "" if ping.exit_code is None else f"exit code {ping.exit_code}"
    return ": ".join(filter(None, (code, ping.body)))[:LONGEST_CAUSE] or "a ping reported a failure"
