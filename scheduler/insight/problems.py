"""The problems of a stage in the order of their severity, each with the request that mends it. Pure."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from scheduler.model.breaker import Breaker
from scheduler.model.instants import render
from scheduler.model.job import LaneState
from scheduler.pipeline.lag import SHORT_MS, Lag

LATE_MS = 5_000  # a job that is late by less usually starts within the next second
VERY_LATE_MS = 60_000
MOST = 50  # problems in one answer
API = "/api/v1"


class Severity(StrEnum):
    """The urgency of a problem."""

    CRITICAL = "critical"  # now: the scheduler itself does not start jobs that are due
    WARNING = "warning"  # today: jobs fail, wait or are skipped
    INFO = "info"  # a user has decided it


class Kind(StrEnum):
    """The kind of a problem."""

    SCHEDULER_BEHIND = "scheduler_behind"
    LANE_PAUSED = "lane_paused"
    BREAKER_OPEN = "breaker_open"
    LATE_JOBS = "late_jobs"
    FAILURES = "failures"
    TASK_SKIPS = "task_skips"
    USER_DISABLED = "user_disabled"
    TASK_PAUSED = "task_paused"


@dataclass(frozen=True, slots=True)
class Remedy:
    """The request behind a button, and the command, that mend a problem."""

    label: str
    method: str
    path: str
    body: Mapping[str, Any] | None
    command: str


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong. `title` is one sentence, `inspect` the command that shows more of it."""

    kind: Kind
    severity: Severity
    title: str
    inspect: str
    since: int | None = None
    last_at: int | None = None  # of failures: the end of the latest job
    by: str | None = None  # the id of the user who decided it
    by_name: str | None = None
    reason: str | None = None
    count: int | None = None
    lane: str | None = None
    circuit: str | None = None
    what: str | None = None  # as of `Failures`
    owner: str | None = None
    owner_name: str | None = None
    task: str | None = None
    task_name: str | None = None
    fingerprint: str | None = None
    remedy: Remedy | None = None


@dataclass(frozen=True, slots=True)
class Late:
    """Jobs whose time has passed by over a second and that have not started. `at_least`: the read was cut."""

    count: int = 0
    at_least: bool = False
    longest_ms: int = 0


@dataclass(frozen=True, slots=True)
class LaneWait:
    """A lane, and how many of its jobs are due and wait, for whatever reason."""

    state: LaneState
    waiting: int
    at_least: bool


@dataclass(frozen=True, slots=True)
class OwnerWait:
    """The jobs of one owner that are due and wait."""

    owner: str
    count: int
    command: str = ""  # counts them; without its last word it cancels them


@dataclass(frozen=True, slots=True)
class Failures:
    """The dead letters of the last hour of one owner that called the same and failed with the same error."""

    what: str  # the host, function, queue, named target or type that failed
    owner: str
    count: int
    first_at: int
    last_at: int
    fingerprint: str | None
    error: str
    job: str  # the latest one
    task: str | None = None


@dataclass(frozen=True, slots=True)
class Skips:
    """A task of whose last runs at least half were skipped."""

    task: str
    task_name: str
    owner: str
    skipped: int
    of: int
    reason: str


@dataclass(frozen=True, slots=True)
class PausedTask:
    """A task that its owner, or an administrator, has paused."""

    task: str
    name: str
    owner: str
    since: int
    reason: str | None


@dataclass(frozen=True, slots=True)
class Disabled:
    """A disabled user whose jobs wait."""

    owner: str
    count: int


@dataclass(frozen=True, slots=True)
class Status:
    """The state of the stage as read at the instant `at`.

    `names`: of users, by id. `unexplained`: late jobs that wait for no pause and no limit; `crowd`: the owner of at least half of them.
    """

    at: int
    everybody: bool  # of all owners; else of one
    lag: Lag
    names: Mapping[str, str]
    named: str | None = None  # of one owner that is not the caller's: its id, which all requests and commands must name
    stage: str = ""
    late: Late = Late()
    unexplained: Late = Late()
    crowd: OwnerWait | None = None
    lanes: Sequence[LaneWait] = ()
    breakers: Sequence[Breaker] = ()
    waiting: Sequence[OwnerWait] = ()
    failures: Sequence[Failures] = ()
    skipping: Sequence[Skips] = ()
    paused_tasks: Sequence[PausedTask] = ()
    disabled: Sequence[Disabled] = ()
    problems: Sequence[Problem] = field(default=(), compare=False)


def problems(found: Status) -> list[Problem]:
    """All problems, the most severe first; those of one severity in the order of their kinds, the oldest first."""
    listed = [
        *_behind(found),
        *[_paused(lane, found) for lane in found.lanes if lane.state.paused_at is not None],
        *[_open(breaker, found) for breaker in found.breakers],
        *_late(found),
        *[_failing(group, found) for group in found.failures],
        *[_skipping(skips, found) for skips in found.skipping],
        *[_disabled(user, found) for user in found.disabled],
        *[_inactive(task, found) for task in found.paused_tasks],
    ]
    severities, kinds = list(Severity), list(Kind)
    return sorted(listed, key=lambda each: (severities.index(each.severity), kinds.index(each.kind), each.since or 0, -(each.count or 0)))


def _behind(found: Status) -> list[Problem]:
    if found.lag.ms < SHORT_MS:
        return []
    title = f"The scheduler is behind by {_time(found.lag.ms)}: minutes since {found.lag.minute} (UTC) are not done"
    doctor = f"make doctor STAGE={found.stage}" if found.everybody and found.stage else _command("doctor")
    return [Problem(Kind.SCHEDULER_BEHIND, Severity.CRITICAL, title, doctor, since=found.at - found.lag.ms)]


def _paused(lane: LaneWait, found: Status) -> Problem:
    state, count = lane.state, lane.waiting
    waits = _jobs(count, "wait", lane.at_least) if count else "no job waits"
    return Problem(
        Kind.LANE_PAUSED,
        Severity.CRITICAL if count else Severity.WARNING,
        f"The lane {state.lane} is paused: {waits}",
        _queued(found),
        since=state.paused_at,
        by=state.paused_by,
        by_name=state.paused_by_name,
        reason=state.reason,
        count=lane.waiting,
        lane=state.lane.value,
        remedy=Remedy("Resume", "POST", f"{API}/system/resume", {"lane": state.lane.value}, _command("system", "resume", state.lane.value)),
    )


def _open(breaker: Breaker, found: Status) -> Problem:
    circuit, owner = breaker.circuit.name, breaker.circuit.owner
    whose = "all users" if owner is None else found.names.get(owner, owner)
    wait = f"no job starts before {render(breaker.until)}" if found.at < breaker.until else "one job tries it, the others wait"
    named = [] if owner is None else ["--owner", found.names.get(owner, owner)]
    return Problem(
        Kind.BREAKER_OPEN,
        Severity.WARNING,
        f"{circuit[:1].upper()}{circuit[1:]} does not answer the jobs of {whose}: {wait}",
        _command("system", "breakers") if found.everybody else _queued(found),
        since=breaker.opened_at,
        circuit=circuit,
        owner=owner,
        owner_name=None if owner is None else found.names.get(owner),
        remedy=Remedy(
            "Close the breaker",
            "POST",
            f"{API}/system/breakers/close",
            {"circuit": circuit, "owner": owner},
            _command("system", "close-breaker", circuit, *named),
        ),
    )


def _late(found: Status) -> list[Problem]:
    late = found.unexplained
    if late.longest_ms < LATE_MS:
        return []
    severity = Severity.CRITICAL if late.longest_ms >= VERY_LATE_MS else Severity.WARNING
    title = f"{_jobs(late.count, 'are late', late.at_least)}, the longest by {_time(late.longest_ms)}"
    crowd = found.crowd if found.everybody else None
    if crowd is not None:
        title += f"; {crowd.count:,} of them {'is' if crowd.count == 1 else 'are'} of {found.names.get(crowd.owner, crowd.owner)}"
    inspect = _queued(found, None if crowd is None else crowd.owner)
    return [Problem(Kind.LATE_JOBS, severity, title, inspect, since=found.at - late.longest_ms, count=late.count)]


def cancelling(owner: str, found: Status) -> str:
    """The command that counts the jobs of an owner that are due and wait, and cancels them without its last word."""
    return _command("jobs", "cancel", "--status", "queued", *_owner(owner, found), "--dry-run")


def _queued(found: Status, owner: str | None = None) -> str:
    """The command that lists the jobs that are due and wait: those of an owner, or of all that the status is of."""
    of = owner or found.named
    whose = _owner(of, found) if of is not None else ["--everyone"] if found.everybody else []
    return _command("jobs", "list", "--status", "queued", *whose)


def _failing(group: Failures, found: Status) -> Problem:
    what = f"{group.what}, {group.error}" if group.error else group.what
    return Problem(
        Kind.FAILURES,
        Severity.WARNING,
        f"{_jobs(group.count, 'failed', False)} in the last hour: {what}",
        _command("jobs", "show", group.job, *_owner(group.owner, found)),
        since=group.first_at,
        last_at=group.last_at,
        reason=group.error or None,
        count=group.count,
        what=group.what,
        owner=group.owner,
        owner_name=found.names.get(group.owner),
        task=group.task,
        fingerprint=group.fingerprint,
        remedy=None if group.fingerprint is None else _redrive(group.owner, group.fingerprint, found),
    )


def _redrive(owner: str, fingerprint: str, found: Status) -> Remedy:
    """Runs all jobs of this error again, whatever they call."""
    command = _command("dead-letters", "redrive", "--fingerprint", fingerprint, *_owner(owner, found))
    path = f"{API}/dead-letters/redrive{_query(owner, found)}"
    groups = [group.count for group in found.failures if (group.owner, group.fingerprint) == (owner, fingerprint)]
    label = "Run them again" if len(groups) == 1 else f"Run all {sum(groups):,} of this error again, of {len(groups)} places"
    return Remedy(label, "POST", path, {"fingerprint": fingerprint}, command)


def _skipping(skips: Skips, found: Status) -> Problem:
    body = {"overlap": "queue_one"}
    mends = skips.reason.startswith("overlap")
    return Problem(
        Kind.TASK_SKIPS,
        Severity.WARNING,
        f"The task {skips.task_name} skipped {skips.skipped} of its last {skips.of} runs",
        _command("jobs", "list", "--task", skips.task, "--status", "skipped", *_owner(skips.owner, found)),
        reason=skips.reason,
        count=skips.skipped,
        owner=skips.owner,
        owner_name=found.names.get(skips.owner),
        task=skips.task,
        task_name=skips.task_name,
        remedy=Remedy(
            "Let a run wait for the one before it",
            "PATCH",
            f"{API}/tasks/{skips.task}{_query(skips.owner, found)}",
            body,
            _command("tasks", "update", skips.task, "--overlap", "queue_one", *_owner(skips.owner, found)),
        )
        if mends
        else None,
    )


def _disabled(user: Disabled, found: Status) -> Problem:
    name = found.names.get(user.owner, user.owner)
    return Problem(
        Kind.USER_DISABLED,
        Severity.INFO,
        f"The user {name} is disabled: {_jobs(user.count, 'wait', False)}",
        _queued(found, user.owner),
        count=user.count,
        owner=user.owner,
        owner_name=found.names.get(user.owner),
        remedy=Remedy("Enable the user", "POST", f"{API}/users/{user.owner}/enable", None, _command("users", "enable", name)),
    )


def _inactive(task: PausedTask, found: Status) -> Problem:
    return Problem(
        Kind.TASK_PAUSED,
        Severity.INFO,
        f"The task {task.name} is paused",
        _command("tasks", "show", task.task, *_owner(task.owner, found)),
        since=task.since,
        reason=task.reason,
        owner=task.owner,
        owner_name=found.names.get(task.owner),
        task=task.task,
        task_name=task.name,
        remedy=Remedy(
            "Resume",
            "POST",
            f"{API}/tasks/{task.task}/resume{_query(task.owner, found)}",
            None,
            _command("tasks", "resume", task.task, *_owner(task.owner, found)),
        ),
    )


def _query(owner: str, found: Status) -> str:
    """Names the owner in a request; a caller who sees their own objects needs no name."""
    return f"?owner={owner}" if _is_named(found) else ""


def _owner(owner: str, found: Status) -> list[str]:
    return ["--owner", found.names.get(owner, owner)] if _is_named(found) else []


def _is_named(found: Status) -> bool:
    return found.everybody or found.named is not None


def _command(*words: str) -> str:
    return " ".join(["punctual", *map(shlex.quote, words)])


def _jobs(count: int, verb: str, at_least: bool) -> str:
    """`1 job waits`, `14 jobs wait`, `at least 500 jobs wait`: `verb` is the plural."""
    number = f"at least {count:,}" if at_least else f"{count:,}"
    singular = {"wait": "waits", "are late": "is late"}.get(verb, verb)
    return f"{number} job {singular}" if count == 1 and not at_least else f"{number} jobs {verb}"


def _time(ms: int) -> str:
    """A duration in words: `39 s`, `5 min`, `2 h`."""
    seconds = ms // 1000
    return f"{seconds} s" if seconds < 120 else f"{seconds // 60} min" if seconds < 7_200 else f"{seconds // 3600} h"
