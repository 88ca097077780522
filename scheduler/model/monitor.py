"""Monitors of work that runs elsewhere: it pings a URL, and silence is reported. The record, its pulse, pings, notices and timers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:  # the worker loads no schedules with its timers
    from scheduler.model.notifications import Notifications
    from scheduler.model.schedule import Schedule

MOST_RECENT = 30  # pings in a pulse: with them its item fits into one write unit
LONGEST_BODY = 10_240  # bytes of the text of a ping that are stored
LONGEST_RUN = 40  # characters of the id of a run
LONGEST_CAUSE = 200  # characters of a text that a notice quotes


class MonitorState(StrEnum):
    """The state of a monitor."""

    NEW = "new"  # no ping has come since it was created, changed or resumed
    UP = "up"
    LONG = "long"  # a run has not ended within its longest duration
    DOWN = "down"  # the expected ping has not come
    FAILED = "failed"  # the last ping reported a failure
    PAUSED = "paused"


BAD = frozenset({MonitorState.LONG, MonitorState.DOWN, MonitorState.FAILED})


class PingKind(StrEnum):
    """The message of a ping."""

    START = "start"
    SUCCESS = "success"
    FAIL = "fail"


class EventKind(StrEnum):
    """The kind of an entry of the history."""

    START = "start"
    SUCCESS = "success"
    FAIL = "fail"
    NEW = "new"  # created, changed or resumed: a new period begins
    PAUSED = "paused"
    UP = "up"  # the monitor enters a state
    LONG = "long"
    DOWN = "down"
    FAILED = "failed"


class NoticeKind(StrEnum):
    """The content of a notice. Beside `FLAPPING`, it is the state that the monitor has entered."""

    UP = "up"
    LONG = "long"
    DOWN = "down"
    FAILED = "failed"
    FLAPPING = "flapping"


@dataclass(frozen=True, slots=True)
class Ping:
    """A ping as it arrived. `run`: the caller's id of the run, if it has one."""

    kind: PingKind
    exit_code: int | None = None
    run: str | None = None
    body: str = ""


class RecentPing(NamedTuple):
    """A ping in the pulse. `duration_ms`: of the run that it ended."""

    kind: PingKind
    at: int
    duration_ms: int | None = None


@dataclass(frozen=True, slots=True)
class MonitorEvent:
    """An entry of the history that is stored apart: a change of the state, a failure, a ping with a text."""

    at: int
    number: int  # tells entries of one instant apart
    kind: EventKind
    exit_code: int | None = None
    duration_ms: int | None = None
    body: str = ""


class PendingNotice(NamedTuple):
    """A notice that is decided, and stays in the pulse until it is in the queue. Its number makes a repeat recognizable."""

    number: int
    kind: NoticeKind
    at: int
    cause: str


@dataclass(frozen=True, slots=True)
class Pulse:
    """The part of a monitor that pings change: one item, one write unit."""

    state: MonitorState
    since: int  # when it entered the state
    basis: int  # the next ping is expected after this instant
    pinged_at: int | None = None
    started_at: int | None = None  # of the run that has started and not ended
    run: str | None = None  # its id, if the caller gave one
    pings: int = 0
    notices: int = 0  # decided so far
    flips: tuple[int, ...] = ()  # the last beginnings and ends of incidents
    flapping: bool = False
    pending: tuple[PendingNotice, ...] = ()
    recent: tuple[RecentPing, ...] = ()  # oldest first
    version: int = 0  # 0: not stored yet


@dataclass(frozen=True, slots=True)
class Monitor:
    """A monitor: what its owner set, and its pulse. It has a schedule or a period."""

    owner: str
    key: str
    id: str  # of its notices and its history: another monitor of this key has another one
    name: str
    token_hash: str  # of the token in its ping URL
    salt: int  # the number of the token
    grace_ms: int
    max_duration_ms: int
    created_at: int
    updated_at: int
    pulse: Pulse
    schedule: Schedule | None = None
    period_ms: int | None = None
    notifications: Notifications | None = None


class MonitorTimer(NamedTuple):
    """An instant at which a monitor is judged. `armed_at`: when the timer was stored."""

    at: int
    token_hash: str
    armed_at: int


@dataclass(frozen=True, slots=True)
class PingIntake:
    """Whether pings could arrive: each minute the engine checks the address of pings."""

    seen_at: int  # when the last check succeeded
    away_since: int | None = None  # the last outage: from the last success before it ...
    back_at: int | None = None  # ... to the first one after it
